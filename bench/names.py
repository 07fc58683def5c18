"""Made-up names in the text of bench/prose.py, and which stand where: what bench/graph.py searches.

20,000 names of people, teams, services and places. Which one is named follows a Zipf-Mandelbrot law: the
commonest in one chunk of fifteen, the rarest in a handful. A document has some of its own, which it repeats;
half of the documents are about one, by their title. A chunk names about eight and relates two of them. One
name stands in every document, and one document, a register, names 10,000. All from fixed seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bench.prose import SEED, SYLLABLES, Prose, Written

COUNT = 20_000
SHIFT, STEEPNESS = 20, 1.1
OWN, OWN_SHARE, EACH = 10, 0.5, 8
EVERYWHERE = COUNT
REGISTER, REGISTERED, REGISTERED_EACH = 7, 10_000, 200
REGISTER_TITLE = "Register of names"
SAID = {
    "OWNED_BY": "is owned by",
    "PART_OF": "is part of",
    "DEPENDS_ON": "depends on",
    "REPORTS_TO": "reports to",
    "LOCATED_IN": "is located in",
    "MEMBER_OF": "is a member of",
    "LED_BY": "is led by",
}
TYPES = tuple(SAID)
# Between the words of a number and those of its neighbours nothing is to be alike.
SCATTER = 1_299_709
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Naming:
    """What a chunk names, by numbers, how prominently, and how the first two are related, if they are."""

    names: tuple[int, ...]
    weights: tuple[float, ...]
    relation: str | None
    confidence: float


def name(number: int) -> str:
    """Seven of ten are people: one of 600 first names, one of 6,000 others. Then services, places, teams."""
    if number == EVERYWHERE:
        return "Norvane Holding"
    scattered = number * SCATTER
    first, last = _word(scattered % 600, 2), _word(scattered % 6_007, 3)
    return {7: f"{last} Service", 8: _word(scattered % 999_983, 4), 9: f"{last} Team"}.get(
        number % 10, f"{first} {last}"
    )


def kind(number: int) -> str:
    return {7: "service", 8: "place", 9: "team"}.get(number % 10, "person")


def _word(number: int, syllables: int) -> str:
    rest, parts = (number + 1) * 7_919, []
    for _ in range(syllables):
        rest, syllable = divmod(rest, len(SYLLABLES))
        parts.append(SYLLABLES[syllable])
    return "".join(parts).capitalize()


class Names:
    """Who is named in a document, by its number and how many chunks it has."""

    def __init__(self) -> None:
        weights = 1 / (np.arange(1, COUNT + 1) + SHIFT) ** STEEPNESS
        self._law = np.cumsum(weights) / weights.sum()

    def drawn(self, draw: np.random.Generator, count: int) -> Numbers:
        return np.searchsorted(self._law, draw.random(count))

    def subject(self, document: int) -> int | None:
        """Whom a document's title names: half of them, each as likely as another."""
        draw = np.random.default_rng([SEED, document, 2])
        return int(draw.integers(COUNT)) if draw.integers(2) else None

    def namings(self, document: int, chunks: int) -> list[Naming]:
        if document == REGISTER:
            return [_registered(chunk) for chunk in range(chunks)]
        draw = np.random.default_rng([SEED, document, 3])
        own, subject = self.drawn(draw, OWN), self.subject(document)
        if subject is not None:
            own[0] = subject
        return [self._naming(draw, own, chunk) for chunk in range(chunks)]

    def _naming(self, draw: np.random.Generator, own: Numbers, chunk: int) -> Naming:
        count = max(2, int(draw.poisson(EACH)))
        chosen = np.where(
            draw.random(count) < OWN_SHARE, own[draw.integers(OWN, size=count)], self.drawn(draw, count)
        )
        names = dict.fromkeys(map(int, chosen))
        if chunk == 0:
            names[EVERYWHERE] = None
        weights = np.round(0.3 + 0.7 * draw.random(len(names)), 2)
        relation = TYPES[int(draw.integers(len(TYPES)))] if len(names) > 1 and draw.integers(3) else None
        return Naming(
            tuple(names), tuple(map(float, weights)), relation, float(round(0.5 + draw.random() / 2, 2))
        )


def _registered(chunk: int) -> Naming:
    first = chunk * REGISTERED_EACH
    names = tuple(range(first, first + REGISTERED_EACH))
    return Naming(names, (0.5,) * len(names), None, 0)


class NamedProse(Prose):
    """Prose whose chunks end with whom they name."""

    @cached_property
    def names(self) -> Names:
        return Names()

    def document(self, number: int) -> Written:
        if number == REGISTER:
            chunks = ("Listed here.",) * (REGISTERED // REGISTERED_EACH)
            written = Written(REGISTER_TITLE, chunks)
        else:
            written = super().document(number)
        namings = self.names.namings(number, len(written.chunks))
        subject = self.names.subject(number)
        titled = written.title if subject is None or number == REGISTER else name(subject)
        return Written(titled, tuple(map(_with_names, written.chunks, namings)))


def _with_names(chunk: str, naming: Naming) -> str:
    names = list(map(name, naming.names))
    if len(names) == 1:
        return f"{chunk} {names[0]} was there."
    first, second, *others = names
    if naming.relation is None:
        return f"{chunk} {', '.join([first, *others])} and {second} were there."
    related = f"{chunk} {first} {SAID[naming.relation]} {second}."
    return f"{related} {' and '.join(others)} were there." if others else related


def misspelled(said: str, draw: np.random.Generator) -> str:
    """One letter of each longer word lost, doubled or changed for its neighbour, never the first."""
    return " ".join(_mistaken(word, draw) if len(word) > 4 else word for word in said.split())


def _mistaken(word: str, draw: np.random.Generator) -> str:
    place, way = int(draw.integers(1, len(word) - 1)), int(draw.integers(3))
    middle: Sequence[str] = ("", word[place] * 2, word[place + 1] + word[place])
    return word[:place] + middle[way] + word[place + (2 if way == 2 else 1) :]
