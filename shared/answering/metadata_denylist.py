"""Metadata keys that the deployment denies: responses of the knowledge API omit them.

A title may come from the metadata, so it is denied with them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shared.documents.documents import first_words
from shared.generation.cited_documents import snippet
from shared.services import Services
from shared.types import Match, Passage, PassageSource, Row

# Metadata keys that may become a document's title.
TITLE_KEYS = {"title", "source"}
# Fields of a document by the metadata that fill them (ingestion/filter_fields.py).
FIELDS_OF_METADATA = {
    "lang": "lang",
    "uri": "uri",
    "url": "uri",
    "date": "occurred_at",
    "source": "origin",
    "author": "author",
    "state": "state",
}


def passage_of(match: Match, denied: frozenset[str]) -> Passage:
    """The match, after the redaction of denied metadata, with its source."""
    metadata = match.metadata
    value = metadata.get("source")
    source = match.origin or (value if isinstance(value, str) else None) or match.title
    page = match.location.get("page_number", metadata.get("page"))
    is_page = isinstance(page, str | int) and not isinstance(page, bool) and "page" not in denied
    citation = PassageSource(
        source=None if "source" in denied else source,
        uri=match.uri,
        page=str(page) if is_page else None,
        section=None if "section" in denied else match.location.get("section"),
        span=match.span,
        snippet=snippet(match.text),
        metadata=metadata,
    )
    return Passage(
        match.chunk_id, match.document_name, match.text, round(match.score, 6), metadata, (citation,)
    )


def redaction(denied: frozenset[str]) -> Callable[[Match], Match]:
    """A function that removes denied metadata from a match, and the document's fields that they fill."""
    empty: dict[str, Any] = {field: None for key, field in FIELDS_OF_METADATA.items() if key in denied}
    if "labels" in denied:
        empty["labels"] = ()

    def redact(match: Match) -> Match:
        title = first_words(match.text) if denied & TITLE_KEYS else match.title
        return replace(match, title=title, metadata=without_keys(denied, match.metadata), **empty)

    return redact


def denied_keys(services: Services) -> frozenset[str]:
    return services.settings.rag_metadata_denylists.get("knowledge", frozenset())


def without_keys(denied: frozenset[str], metadata: Row) -> Row:
    return {name: value for name, value in metadata.items() if name not in denied}
