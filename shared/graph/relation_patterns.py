"""Phrases and nouns of relations by their first words. The words are in relations.toml."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.text.word_lists import read_toml

RELATIONS: Mapping[str, Mapping[str, Any]] = read_toml(Path(__file__).with_name("relations.toml"))

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


def phrases_under(type_: str, key: str) -> list[str]:
    """The phrases of a relation under that key of relations.toml."""
    phrases = RELATIONS.get(type_, {}).get(key, "").split("|")
    return [" ".join(phrase.split()) for phrase in phrases if phrase.strip()]


def words_under(type_: str, key: str) -> list[str]:
    """The single words of a relation under that key."""
    words: list[str] = RELATIONS.get(type_, {}).get(key, "").split()
    return words


def _phrases() -> Mapping[str, tuple[Phrase, ...]]:
    by_word: dict[str, list[Phrase]] = defaultdict(list)
    for type_ in RELATIONS:
        for key in ("forward", "backward"):
            for text in phrases_under(type_, key):
                first, *rest = text.removeprefix("~").split()
                phrase = Phrase(
                    type_,
                    tuple(frozenset(word.split("/")) for word in rest),
                    key == "forward",
                    UNSURE if text.startswith("~") else SURE,
                )
                for word in first.split("/"):
                    by_word[word].append(phrase)
    # Directed by is longer than directed, and meant where it stands.
    return {word: tuple(sorted(each, key=lambda one: -len(one.rest))) for word, each in by_word.items()}


def _roles() -> Mapping[str, Role]:
    return {
        noun: Role(type_, key == "objects")
        for type_ in RELATIONS
        for key in ("objects", "subjects")
        for noun in words_under(type_, key)
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
    for key in ("forward", "backward"):
        for phrase in phrases_under(type_, key):
            yield from phrase.removeprefix("~").split(" ")[0].split("/")
    for key in ("objects", "subjects"):
        yield from words_under(type_, key)
