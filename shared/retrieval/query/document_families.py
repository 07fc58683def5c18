"""Families of documents: their kinds, and the keywords by which a question asks for them."""

import re
from collections.abc import Mapping
from enum import StrEnum
from itertools import chain
from pathlib import Path

from shared.retrieval.query import MAX_LENGTH
from shared.text.word_lists import read_toml


class Family(StrEnum):
    """In the order that breaks ties: rarer and more distinct families first."""

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
_PHRASES = "|".join(chain(*_DATA["other_senses"].values()))
_OTHER_SENSES = re.compile(rf"(?<!\w)(?:{_PHRASES})(?!\w)", re.IGNORECASE)
_NAME = re.compile(rf"(?<![\w/@.-])(?:{_DATA['name']})(?![\w@])")
MIN_SCORE = 2


def _pattern(phrase: str) -> str:
    plural = "" if phrase[-1] in "s?]y+)" else "s?"
    return phrase.replace(" ?", r"[\s-]?").replace(" ", r"[\s-]+") + plural


_WEIGHTS = {
    (family, int(weight)): re.compile(
        rf"(?<![\w./@#-])(?:{'|'.join(map(_pattern, phrases))})(?![\w@]|[-./:]\w)", re.IGNORECASE
    )
    for family in Family
    for weight, phrases in _DATA["keywords"][family].items()
}


def family_of(text: str) -> tuple[Family, str] | None:
    """The family with the highest score, with its strongest keyword; None below MIN_SCORE."""
    text = _OTHER_SENSES.sub(" , ", text[:MAX_LENGTH])
    keywords: dict[Family, str] = {}
    scores: dict[Family, int] = {}
    for (family, weight), pattern in _WEIGHTS.items():
        words = [" ".join(match.group().split()) for match in pattern.finditer(text)]
        if words:
            keywords.setdefault(family, words[0])
            distinct = {word.lower().removesuffix("s") for word in words}
            scores[family] = scores.get(family, 0) + weight * len(distinct)
    if Family.CODE in scores and _NAME.search(text):
        scores[Family.CODE] += 1
    best = max(Family, key=lambda family: scores.get(family, 0))
    return (best, keywords[best]) if scores.get(best, 0) >= MIN_SCORE else None
