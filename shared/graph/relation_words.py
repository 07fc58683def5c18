"""Phrases and nouns of relations (relations.toml), as regular expressions."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.text.word_lists import read_toml, word_sets

RELATIONS: Mapping[str, Mapping[str, Any]] = read_toml(Path(__file__).with_name("relations.toml"))
_LISTS = word_sets(__file__)


def _phrases(type_: str, key: str) -> Iterator[str]:
    """The phrases of a relation under a key. A slash in a phrase makes several."""
    for phrase in RELATIONS[type_].get(key, "").split("|"):
        variants = [""]
        for word in phrase.split():
            variants = [f"{start} {each}".strip() for start in variants for each in word.split("/")]
        yield from filter(None, variants)


def _nouns(type_: str, key: str) -> list[str]:
    nouns: str = RELATIONS[type_].get(key, "")
    return [noun.replace("_", " ") for noun in nouns.split()]


def _types_of(key: str) -> dict[str, str]:
    """The type that each phrase or noun under that key states."""
    read = _nouns if key in {"objects", "subjects", "works"} else _phrases
    return {words: type_ for type_ in RELATIONS for words in read(type_, key)}


PASSIVE, ACTIVE, REVERSE = _types_of("passive"), _types_of("active"), _types_of("reverse")
OBJECTS, SUBJECTS, WORKS = _types_of("objects"), _types_of("subjects"), _types_of("works")
KEYS = {**OBJECTS, **PASSIVE, **_types_of("keys")}
# The words that state each type.
WORDS_BY_TYPE: Mapping[str, frozenset[str]] = {
    type_: frozenset(
        word
        for table in (PASSIVE, ACTIVE, REVERSE, OBJECTS, SUBJECTS, WORKS, KEYS)
        for words, its_type in table.items()
        if its_type == type_
        for word in words.split()
    )
    - _LISTS["function_words"]
    for type_ in RELATIONS
}
_TYPES_BY_WORD: dict[str, list[str]] = defaultdict(list)
for _type, _words in WORDS_BY_TYPE.items():
    for _word in _words:
        _TYPES_BY_WORD[_word].append(_type)
ROLES = frozenset(OBJECTS) | frozenset(SUBJECTS)


def alternatives(words: Iterable[str]) -> str:
    """A pattern of any of the words, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))).replace(r"\ ", " ")


def types_named_in(text: str) -> dict[str, None]:
    """The types that have a word in the text, in the order of the text."""
    words = re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text.lower())
    return {type_: None for word in words for type_ in _TYPES_BY_WORD.get(word, ())}
