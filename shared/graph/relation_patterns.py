"""The phrases and nouns of relations, looked up by their first words."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.graph.relation_verbs import VERBS
from shared.graph.role_nouns import ROLES

SURE = 0.9
UNSURE = 0.6


@dataclass(frozen=True, slots=True)
class Phrase:
    """`rest`: for each word behind the first, what it may be. Forward: its subject stands before it."""

    type: str
    rest: tuple[frozenset[str], ...]
    forward: bool
    sure: float


@dataclass(frozen=True, slots=True)
class Role:
    """Who is a noun of somebody: the object of the relation, or its subject."""

    type: str
    is_object: bool


def _phrases() -> Mapping[str, tuple[Phrase, ...]]:
    found: dict[str, list[Phrase]] = defaultdict(list)
    for type_, sides in VERBS.items():
        for side, forward in zip(sides, (True, False), strict=True):
            for said in filter(None, map(str.strip, side.split("|"))):
                first, *rest = said.removeprefix("~").split()
                phrase = Phrase(
                    type_,
                    tuple(frozenset(word.split("/")) for word in rest),
                    forward,
                    UNSURE if said.startswith("~") else SURE,
                )
                for word in first.split("/"):
                    found[word].append(phrase)
    # Directed by is longer than directed, and meant where it stands.
    return {word: tuple(sorted(list_, key=lambda one: -len(one.rest))) for word, list_ in found.items()}


def _roles() -> Mapping[str, Role]:
    return {
        noun: Role(type_, is_object)
        for type_, sides in ROLES.items()
        for side, is_object in zip(sides, (True, False), strict=True)
        for noun in side.split()
    }


PHRASES = _phrases()
NOUNS = _roles()
TRIGGERS = frozenset(PHRASES) | frozenset(noun.split("-")[-1] for noun in NOUNS) | frozenset(NOUNS)


def phrase_at(tokens: list[str], place: int) -> tuple[Phrase, int] | None:
    """The longest phrase that begins there, and where it ends."""
    for phrase in PHRASES.get(tokens[place], ()):
        end = place + 1 + len(phrase.rest)
        if end <= len(tokens) and all(
            word in allowed for word, allowed in zip(tokens[place + 1 : end], phrase.rest, strict=True)
        ):
            return phrase, end
    return None


def role_at(tokens: list[str], place: int) -> Role | None:
    """Of the noun there, or of two: root cause, line manager."""
    word = tokens[place]
    if place and (role := NOUNS.get(f"{tokens[place - 1]}-{word}")) is not None:
        return role
    return NOUNS.get(word)


def words_of(type_: str) -> Iterator[str]:
    """The words that a question on it would use: the first of each phrase, and its nouns."""
    for side in VERBS.get(type_, ("", "")):
        for said in side.split("|"):
            if first := said.strip().removeprefix("~").split(" ")[0]:
                yield from first.split("/")
    for side in ROLES.get(type_, ("", "")):
        yield from side.split()
