"""Phrases and nouns of relations (relations.toml), as regular expressions."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path

from shared.text.word_lists import read_toml, word_sets

_TABLES: Mapping[str, Mapping[str, str]] = read_toml(Path(__file__).with_name("relations.toml"))


def _variants(phrases: str) -> Iterator[str]:
    """The phrases between bars. A slash in a phrase makes several."""
    for phrase in phrases.split("|"):
        yield from map(" ".join, product(*(word.split("/") for word in phrase.split())))


def _by_phrase(table: str) -> dict[str, str]:
    return {phrase: name for name, phrases in _TABLES[table].items() for phrase in _variants(phrases)}


# The type that each phrase or noun states.
PASSIVE, ACTIVE, REVERSE = _by_phrase("passive"), _by_phrase("active"), _by_phrase("reverse")
OBJECTS, SUBJECTS, WORKS = _by_phrase("objects"), _by_phrase("subjects"), _by_phrase("works")
KEYS = {**OBJECTS, **PASSIVE, **_by_phrase("keys")}
SUBJECT_KINDS, OBJECT_KINDS = _by_phrase("subject_kinds"), _by_phrase("object_kinds")
SYMMETRIC = frozenset({"SPOUSE_OF", "SIBLING_OF"})
# The types, and the words that state each.
WORDS_BY_TYPE: dict[str, frozenset[str]] = {}
for _types in (PASSIVE, ACTIVE, REVERSE, OBJECTS, SUBJECTS, WORKS, KEYS):
    for _phrase, _type in _types.items():
        _words = frozenset(_phrase.split()) - word_sets(__file__)["function_words"]
        WORDS_BY_TYPE[_type] = WORDS_BY_TYPE.get(_type, frozenset()) | _words


def alternatives(words: Iterable[str]) -> str:
    """A pattern of any of the words, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))).replace(r"\ ", " ")


def types_named_in(text: str) -> set[str]:
    """The types that have a word in the text."""
    words = set(re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text.lower()))
    return {type_ for type_, its_words in WORDS_BY_TYPE.items() if not words.isdisjoint(its_words)}
