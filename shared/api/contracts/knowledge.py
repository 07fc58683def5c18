"""Wire models of the knowledge contract: documents, chunks and answers of namespaces."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from shared.api.contracts import fastapi_error_format
from shared.api.contracts.fastapi_error_format import ErrorBody
from shared.api.contracts.ignored_names import IgnoredNames, SearchBody
from shared.api.contracts.metadata import Metadata, MetadataEqualities
from shared.api.contracts.shared_fields import (
    MAX_DOCUMENTS,
    ConfidenceDetail,
    DocumentName,
    Flag,
    Question,
    ResponseModel,
    WithoutNul,
)
from shared.errors import NotFound, RagError, Unauthorized
from shared.generation.refusal_texts import insufficient, nothing_in_namespace
from shared.types import GeneratedText, Judgement, Passage

__all__ = ["ErrorBody", "error_body"]


def error_body(error: RagError) -> dict[str, Any]:
    return fastapi_error_format.error_body(error, _message)


def _message(error: RagError) -> str:
    if isinstance(error, Unauthorized):
        return "Invalid or missing credentials"
    if isinstance(error, NotFound) and error.code in ("collection_not_found", "document_not_found"):
        return "Document not found"
    return fastapi_error_format.message(error)


def _addressable(name: str) -> str:
    # A document's path ends in its id, which may have slashes. These parts would change the route.
    if re.search(r"(^|/)(documents/|\.{1,2}(/|$))", name):
        raise ValueError("no part between slashes may be . or .., and only the last part may be documents")
    return name


NewId = Annotated[DocumentName, AfterValidator(_addressable)]
Line = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1000), WithoutNul]
# Documents in a page.
Limit = Annotated[int, Field(ge=1, le=1000)]
TopK = Annotated[int, Field(strict=True, ge=1, le=100)]


class NewDocument(BaseModel):
    text: Annotated[str, StringConstraints(strict=True)]
    metadata: Metadata = Field(default_factory=dict)
    document_id: NewId | None = None
    source: Line | None = None
    title: Line | None = None


def _unique_ids(documents: list[NewDocument]) -> list[NewDocument]:
    ids = [document.document_id for document in documents if document.document_id is not None]
    if len(set(ids)) < len(ids):
        raise ValueError("no two documents may have the same document_id")
    return documents


class IngestRequest(BaseModel):
    documents: Annotated[list[NewDocument], Field(max_length=MAX_DOCUMENTS), AfterValidator(_unique_ids)]


class IngestResponse(BaseModel):
    document_ids: list[str]
    ingested: int

    @classmethod
    def of(cls, names: list[str]) -> Self:
        return cls(document_ids=names, ingested=len(names))


class Document(BaseModel):
    document_id: str
    metadata: dict[str, Any]
    source: str | None
    title: str
    created_at: str
    updated_at: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        source = row["metadata"].get("source")
        return cls(
            document_id=row["name"],
            source=source if isinstance(source, str) else None,
            **{name: row[name] for name in ("metadata", "title", "created_at", "updated_at")},
        )


class Documents(BaseModel):
    """A page; `total` counts the whole namespace."""

    documents: list[Document]
    total: int


class RetrieveRequest(SearchBody):
    query: Question
    top_k: TopK = 10
    filters: MetadataEqualities = Field(default_factory=dict)
    include_citations: Flag = False


class QueryRequest(SearchBody):
    question: Question
    top_k: TopK = 5
    filters: MetadataEqualities = Field(default_factory=dict)
    include_citations: Flag = False


class Citation(ResponseModel):
    source: str | None
    uri: str | None
    page: str | None
    section: str | None
    span: tuple[int, int]
    snippet: str
    metadata: dict[str, Any]


class Chunk(ResponseModel):
    """`citations` are null if not requested."""

    chunk_id: str
    document_id: str
    text: str
    score: float
    metadata: dict[str, Any]
    citations: list[Citation] | None


def chunks_of(passages: Sequence[Passage], *, with_citations: bool) -> list[Chunk]:
    omitted = {} if with_citations else {"citations": None}
    return [Chunk.of(passage).model_copy(update=omitted) for passage in passages]


class RetrieveResponse(BaseModel):
    chunks: list[Chunk]
    ignored_filters: IgnoredNames


class QueryResponse(BaseModel):
    answer: str
    chunks: list[Chunk]
    confidence_detail: ConfidenceDetail
    ignored_filters: IgnoredNames

    @classmethod
    def of(
        cls, request: QueryRequest, draft: GeneratedText | None, judgement: Judgement, chunks: list[Chunk]
    ) -> Self:
        refusal = insufficient if chunks else nothing_in_namespace
        return cls(
            answer=draft.text if draft else refusal(request.question),
            chunks=chunks,
            confidence_detail=ConfidenceDetail.of(judgement),
            ignored_filters=request.ignored_filters,
        )


class Namespaces(BaseModel):
    namespaces: list[str]


class HealthStatus(BaseModel):
    status: str
