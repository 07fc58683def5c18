"""Phrases and nouns of relations (relations.toml) by their first words."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.text.word_lists import read_toml

RELATIONS: Mapping[str, Mapping[str, Any]] = read_toml(Path(__file__).with_name("relations.toml"))

CERTAIN = 0.9
UNCERTAIN = 0.6


@dataclass(frozen=True, slots=True)
class Phrase:
    """`following`: the alternatives for each word behind the first. The subject precedes a forward phrase."""

    type: str
    following: tuple[frozenset[str], ...]
    is_forward: bool
    confidence: float


@dataclass(frozen=True, slots=True)
class Role:
    """The argument of a relation that a noun names: its object, or its subject."""

    type: str
    is_object: bool


def phrases_of_key(type_: str, key: str) -> list[str]:
    """The phrases of a relation under that key of relations.toml."""
    phrases = RELATIONS.get(type_, {}).get(key, "").split("|")
    return [" ".join(phrase.split()) for phrase in phrases if phrase.strip()]


def words_of_key(type_: str, key: str) -> list[str]:
    """The single words of a relation under that key."""
    words: list[str] = RELATIONS.get(type_, {}).get(key, "").split()
    return words


def _phrases() -> Mapping[str, tuple[Phrase, ...]]:
    by_word: dict[str, list[Phrase]] = defaultdict(list)
    for type_ in RELATIONS:
        for key in ("forward", "backward"):
            for text in phrases_of_key(type_, key):
                first, *following = text.removeprefix("~").split()
                phrase = Phrase(
                    type_,
                    tuple(frozenset(word.split("/")) for word in following),
                    key == "forward",
                    UNCERTAIN if text.startswith("~") else CERTAIN,
                )
                for word in first.split("/"):
                    by_word[word].append(phrase)
    # The longest phrase first: "directed by" before "directed".
    return {word: tuple(sorted(each, key=lambda one: -len(one.following))) for word, each in by_word.items()}


def _roles() -> Mapping[str, Role]:
    return {
        noun: Role(type_, key == "objects")
        for type_ in RELATIONS
        for key in ("objects", "subjects")
        for noun in words_of_key(type_, key)
    }


PHRASES = _phrases()
NOUNS = _roles()
TRIGGERS = frozenset(PHRASES) | frozenset(noun.split("-")[-1] for noun in NOUNS) | frozenset(NOUNS)


def phrase_at(tokens: list[str], index: int) -> tuple[Phrase, int] | None:
    """The longest phrase that begins there, and where it ends."""
    for phrase in PHRASES.get(tokens[index], ()):
        end = index + 1 + len(phrase.following)
        if end <= len(tokens) and all(
            word in allowed for word, allowed in zip(tokens[index + 1 : end], phrase.following, strict=True)
        ):
            return phrase, end
    return None


def role_at(tokens: list[str], index: int) -> Role | None:
    """The role of the noun there, or of two words: root cause, line manager."""
    word = tokens[index]
    if index and (role := NOUNS.get(f"{tokens[index - 1]}-{word}")) is not None:
        return role
    return NOUNS.get(word)


def question_words(type_: str) -> Iterator[str]:
    """The words of questions about a relation: the first of each phrase, and its nouns."""
    for key in ("forward", "backward"):
        for phrase in phrases_of_key(type_, key):
            yield from phrase.removeprefix("~").split(" ")[0].split("/")
    for key in ("objects", "subjects"):
        yield from words_of_key(type_, key)
