"""The index contract's wire models, KAITO RAGEngine's: indexes, their documents, queries.

A document's `doc_id` is the first key of its JSON: clients look for it there.
"""

import json
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints

from shared.dialects import detail
from shared.dialects.detail import ErrorBody
from shared.dialects.platform import WithoutNul, small
from shared.errors import InvalidRequest, RagError
from shared.types import Match

__all__ = ["ErrorBody", "error_body"]
MAX_DOCUMENTS = 1000
BAD_FILTER = "Invalid metadata filter format. Must be a valid JSON string."

IndexName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=255), WithoutNul]
DocId = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500), WithoutNul]
# Null is no metadata.
Metadata = Annotated[dict[str, Any], BeforeValidator(lambda said: {} if said is None else small(said))]


def error_body(error: RagError) -> dict[str, Any]:
    return detail.error_body(error, _said)


def _said(error: RagError) -> str:
    if error.code == "collection_not_found":
        return f"No such index: '{error.details.get('name')}' exists."
    if "document" in error.details:
        return f"documents.{error.details['document']}: {error}"
    return str(error)


def filters_of(text: str | None) -> dict[str, Any]:
    """What a metadata filter in the query string asks for. Raises InvalidRequest."""
    try:
        asked = small(json.loads(text)) if text is not None else {}
    except (ValueError, RecursionError):
        raise InvalidRequest(BAD_FILTER) from None
    if not isinstance(asked, dict):
        raise InvalidRequest(BAD_FILTER)
    return asked


class NewDocument(BaseModel):
    """What its `doc_id` is, its text says."""

    text: Annotated[str, StringConstraints(strict=True)]
    metadata: Metadata = Field(default_factory=dict)


class ChangedDocument(NewDocument):
    doc_id: DocId


class Indexing(BaseModel):
    index_name: IndexName
    documents: Annotated[list[NewDocument], Field(max_length=MAX_DOCUMENTS)]


class Changes(BaseModel):
    documents: Annotated[list[ChangedDocument], Field(max_length=MAX_DOCUMENTS)]


class Deletion(BaseModel):
    doc_ids: Annotated[list[DocId], Field(max_length=MAX_DOCUMENTS)]


class Document(BaseModel):
    doc_id: str
    text: str
    hash_value: str | None
    metadata: dict[str, Any]
    is_truncated: bool = False

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        return cls(
            doc_id=row["name"],
            text=row["content"],
            hash_value=row["content_hash"],
            metadata=row["metadata"],
            is_truncated=row.get("is_truncated") or False,
        )


class Documents(BaseModel):
    """A page: `count` documents of `total_items`."""

    documents: list[Document]
    count: int
    total_items: int


class Changed(BaseModel):
    updated_documents: list[Document]
    unchanged_documents: list[Document]
    not_found_documents: list[Document]


class Deleted(BaseModel):
    deleted_doc_ids: list[str]
    not_found_doc_ids: list[str]


class Done(BaseModel):
    message: str


def _blank(query: str) -> str:
    if not query.strip():
        raise ValueError("must not be blank")
    return query


# Longer ones are no questions, and the database takes no more.
Query = Annotated[str, StringConstraints(strict=True, max_length=10_000), WithoutNul, AfterValidator(_blank)]


class Node(BaseModel):
    doc_id: str
    node_id: str
    text: str
    score: float
    metadata: dict[str, Any]

    @classmethod
    def of(cls, match: Match) -> Self:
        return cls(
            doc_id=match.document_name,
            node_id=match.chunk_id,
            text=match.text,
            score=round(match.score, 6),
            metadata=match.metadata,
        )
