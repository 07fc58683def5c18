"""Families of documents: their kinds, and the keywords by which a question asks for them."""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from shared.retrieval.query import MAX_LENGTH
from shared.text.word_lists import read_toml


class Family(StrEnum):
    """In the order of precedence: rarer and more distinct families first."""

    INCIDENTS = "incidents"
    TICKETS = "tickets"
    CODE = "code"
    MESSAGES = "messages"
    SUMMARIES = "summaries"
    DOCS = "docs"


_DATA = read_toml(Path(__file__).with_suffix(".toml"))
# Source types by family.
KINDS: Mapping[Family, tuple[str, ...]] = {
    Family(name): tuple(kinds) for name, kinds in _DATA["kinds"].items()
}


def _pattern(phrase: str) -> str:
    plural = "" if phrase[-1] in "s?]y)" else "s?"
    return phrase.replace(" ?", r"[\s-]?").replace(" ", r"[\s-]+") + plural


_PATTERNS = {
    family: re.compile(
        rf"(?<![\w./@#-])(?:{'|'.join(map(_pattern, _DATA['keywords'][family]))})(?![\w@]|[-./:]\w)",
        re.IGNORECASE,
    )
    for family in Family
}


def family_of(text: str) -> tuple[Family, str] | None:
    """The first family that a keyword of the text names, with that keyword."""
    for family, pattern in _PATTERNS.items():
        if match := pattern.search(text, 0, MAX_LENGTH):
            return family, " ".join(match.group().split())
    return None
