"""Synthetic names in the text of bench/synthetic_text.py, for bench/graph_search.py.

20,000 names of people, teams, services and places follow a Zipf-Mandelbrot law: the most common is in one
chunk of fifteen, the rarest in a handful. A document has names of its own, which it repeats; half of the
documents have a title that is a name. A chunk has about eight names and relates two of them. One name is in
every document, and one document, a register, has 10,000 names. All from fixed seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bench.synthetic_text import SEED, SYLLABLES, Prose, SyntheticDocument

COUNT = 20_000
SHIFT, STEEPNESS = 20, 1.1
OWN, OWN_SHARE, EACH = 10, 0.5, 8
EVERYWHERE = COUNT
REGISTER, REGISTERED, REGISTERED_EACH = 7, 10_000, 200
REGISTER_TITLE = "Register of names"
PHRASES = {
    "OWNED_BY": "is owned by",
    "PART_OF": "is part of",
    "DEPENDS_ON": "depends on",
    "REPORTS_TO": "reports to",
    "LOCATED_IN": "is located in",
    "MEMBER_OF": "is a member of",
    "LED_BY": "is led by",
}
TYPES = tuple(PHRASES)
# Between the words of a number and those of its neighbours nothing is to be alike.
SCATTER = 1_299_709
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class ChunkNames:
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


def entity_type(number: int) -> str:
    return {7: "service", 8: "place", 9: "team"}.get(number % 10, "person")


def _word(number: int, syllables: int) -> str:
    rest, parts = (number + 1) * 7_919, []
    for _ in range(syllables):
        rest, syllable = divmod(rest, len(SYLLABLES))
        parts.append(SYLLABLES[syllable])
    return "".join(parts).capitalize()


class NameSampler:
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

    def namings(self, document: int, chunks: int) -> list[ChunkNames]:
        if document == REGISTER:
            return [_register_names(chunk) for chunk in range(chunks)]
        draw = np.random.default_rng([SEED, document, 3])
        own, subject = self.drawn(draw, OWN), self.subject(document)
        if subject is not None:
            own[0] = subject
        return [self._naming(draw, own, chunk) for chunk in range(chunks)]

    def _naming(self, draw: np.random.Generator, own: Numbers, chunk: int) -> ChunkNames:
        count = max(2, int(draw.poisson(EACH)))
        chosen = np.where(
            draw.random(count) < OWN_SHARE, own[draw.integers(OWN, size=count)], self.drawn(draw, count)
        )
        names = dict.fromkeys(map(int, chosen))
        if chunk == 0:
            names[EVERYWHERE] = None
        weights = np.round(0.3 + 0.7 * draw.random(len(names)), 2)
        relation = TYPES[int(draw.integers(len(TYPES)))] if len(names) > 1 and draw.integers(3) else None
        return ChunkNames(
            tuple(names), tuple(map(float, weights)), relation, float(round(0.5 + draw.random() / 2, 2))
        )


def _register_names(chunk: int) -> ChunkNames:
    first = chunk * REGISTERED_EACH
    names = tuple(range(first, first + REGISTERED_EACH))
    return ChunkNames(names, (0.5,) * len(names), None, 0)


class NamedProse(Prose):
    """Prose whose chunks end with whom they name."""

    @cached_property
    def names(self) -> NameSampler:
        return NameSampler()

    def document(self, number: int) -> SyntheticDocument:
        if number == REGISTER:
            chunks = ("Listed here.",) * (REGISTERED // REGISTERED_EACH)
            documents = SyntheticDocument(REGISTER_TITLE, chunks)
        else:
            documents = super().document(number)
        namings = self.names.namings(number, len(documents.chunks))
        subject = self.names.subject(number)
        titled = documents.title if subject is None or number == REGISTER else name(subject)
        return SyntheticDocument(titled, tuple(map(_append_names, documents.chunks, namings)))


def _append_names(chunk: str, naming: ChunkNames) -> str:
    names = list(map(name, naming.names))
    if len(names) == 1:
        return f"{chunk} {names[0]} was there."
    first, second, *others = names
    if naming.relation is None:
        return f"{chunk} {', '.join([first, *others])} and {second} were there."
    related = f"{chunk} {first} {PHRASES[naming.relation]} {second}."
    return f"{related} {' and '.join(others)} were there." if others else related


def misspell(text: str, draw: np.random.Generator) -> str:
    """One letter of each longer word lost, doubled or changed for its neighbour, never the first."""
    return " ".join(_misspell_word(word, draw) if len(word) > 4 else word for word in text.split())


def _misspell_word(word: str, draw: np.random.Generator) -> str:
    place, method = int(draw.integers(1, len(word) - 1)), int(draw.integers(3))
    middle: Sequence[str] = ("", word[place] * 2, word[place + 1] + word[place])
    return word[:place] + middle[method] + word[place + (2 if method == 2 else 1) :]
