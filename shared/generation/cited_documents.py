"""Citations of matches: at most five documents, each with a snippet of at most 200 characters."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from shared.types import Citation, Match

MAX_CITATIONS = 5
SNIPPET_CHARACTERS = 200


def cite(matches: Iterable[Match]) -> tuple[Citation, ...]:
    """The best chunk of each of at most five documents, by relevance; `matches` come best first."""
    return tuple(Citation(match, snippet(match.text)) for match in best_of_documents(matches)[:MAX_CITATIONS])


def with_snippets(citations: Sequence[Citation], snippets: Mapping[int, str]) -> tuple[Citation, ...]:
    """The citations with the snippets of their numbers, which count from 1."""
    return tuple(
        replace(citation, snippet=snippets.get(number, citation.snippet))
        for number, citation in enumerate(citations, start=1)
    )


def best_of_documents(matches: Iterable[Match]) -> tuple[Match, ...]:
    """The best chunk of each document; `matches` come best first."""
    best: dict[str, Match] = {}
    for match in matches:
        best.setdefault(match.document_id, match)
    return tuple(best.values())


def snippet(text: str) -> str:
    return text[:SNIPPET_CHARACTERS]
