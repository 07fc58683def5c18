"""Versions of a document: documents whose titles differ by a year or a revision."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

from shared.generation.value_tokens import NUMBER_TOKEN, YEAR_TOKEN, tokens_of
from shared.text.function_words import STOPWORDS
from shared.text.language_detection import MONTHS
from shared.text.word_lists import word_sets
from shared.types import Match

_REVISION = re.compile(r"(?:v|r|rev)\.?\d+(?:\.\d+)*")
_REVISION_WORDS = word_sets(__file__)["revision"]


def is_newer_version(one: Match, other: Match) -> bool:
    """Whether both are versions of one document, by their titles, and `one` is the newer."""
    (title, version), (other_title, other_version) = version_of(one.title), version_of(other.title)
    if title != other_title or version == other_version:
        return False
    if one.occurred_at and other.occurred_at:
        return one.occurred_at > other.occurred_at
    return version > other_version


def names_version(question: str, match: Match) -> bool:
    """Whether the question has a year or a revision of the document's title."""
    numbers = {*re.findall(r"\d+", question)}
    return not numbers.isdisjoint(map(str, chain(*version_of(match.title)[1])))


def current_versions(question: str, matches: Sequence[Match]) -> list[Match]:
    """The matches without those that another match's document supersedes, as a newer version. A version that
    the question names is current."""
    current = [
        match
        for match in matches
        if names_version(question, match) or not any(is_newer_version(other, match) for other in matches)
    ]
    # Titles and dates together may give no order.
    return current or [*matches]


@lru_cache(maxsize=64)
def version_of(title: str) -> tuple[frozenset[str], tuple[tuple[int, ...], ...]]:
    """A title's words without years and revisions, and its years and revisions."""
    tokens = tokens_of(title)
    dated = [token for token in tokens if YEAR_TOKEN.fullmatch(token)]
    revised = [
        token
        for before, token in zip(["", *tokens], tokens, strict=False)
        if _REVISION.fullmatch(token) or (before in _REVISION_WORDS and NUMBER_TOKEN.fullmatch(token))
    ]
    words = {*tokens} - {*dated, *revised} - _REVISION_WORDS - MONTHS.keys() - STOPWORDS
    numbers = (
        tuple(int(part) for text in texts for part in re.findall(r"\d+", text)) for texts in (dated, revised)
    )
    return frozenset(words), tuple(numbers)
