"""Phrases and nouns of relations (relations.toml), as regular expressions."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path

from shared.text.word_lists import read_toml

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


def alternatives(words: Iterable[str]) -> str:
    """A pattern of any of the words, the longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))).replace(r"\ ", " ")
