"""Wire models of the index contract: indexes, documents, queries.

`doc_id` is the first key of a document's JSON, where clients expect it.
"""

import json
from collections.abc import Set
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from shared.api.contracts import fastapi_error_format
from shared.api.contracts.fastapi_error_format import ErrorBody
from shared.api.contracts.ignored_names import IgnoredNames, SearchBody
from shared.api.contracts.metadata import Metadata, MetadataEqualities, check_metadata
from shared.api.contracts.shared_fields import (
    MAX_DOCUMENTS,
    CollectionName,
    Composed,
    ConfidenceDetail,
    DocumentName,
    PageEnd,
    PageNumber,
    Question,
    ResponseModel,
    Score,
    Section,
    WithoutNul,
)
from shared.errors import InvalidRequest, RagError
from shared.generation.refusal_texts import insufficient
from shared.types import Answer, Sampling, SearchResult

__all__ = ["ErrorBody", "error_body"]
# A page of a hundred documents has at most ten megabytes.
MaxTextLength = Annotated[int, Field(ge=1, le=100_000)]
SnapshotPath = Annotated[str, Field(max_length=1000)]
INVALID_FILTER = "Invalid metadata filter format. Must be a valid JSON string."


def error_body(error: RagError) -> dict[str, Any]:
    return fastapi_error_format.error_body(error, _message)


def _message(error: RagError) -> str:
    if error.code == "collection_not_found":
        return f"No such index: '{error.details.get('name')}' exists."
    if error.code == "duplicate_collection":
        return (
            f"Index '{error.details.get('name')}' already exists. "
            "Use a different name or delete the existing index first."
        )
    return fastapi_error_format.message(error)


def filters_of(text: str | None) -> dict[str, Any]:
    """The metadata filter of a query string. Raises InvalidRequest."""
    try:
        filters = check_metadata(json.loads(text)) if text is not None else {}
    except (ValueError, RecursionError):
        raise InvalidRequest(INVALID_FILTER) from None
    if not isinstance(filters, dict):
        raise InvalidRequest(INVALID_FILTER)
    return filters


class NewDocument(BaseModel):
    """The `doc_id` is derived from the text."""

    text: Annotated[str, StringConstraints(strict=True)]
    metadata: Metadata = Field(default_factory=dict)


class DocumentUpdate(NewDocument):
    """Without a `doc_id` the document counts as not found."""

    doc_id: DocumentName | None = None


class IndexRequest(BaseModel):
    index_name: CollectionName
    documents: Annotated[list[NewDocument], Field(max_length=MAX_DOCUMENTS)]


class UpdateRequest(BaseModel):
    documents: Annotated[list[DocumentUpdate], Field(max_length=MAX_DOCUMENTS)]


class DeleteRequest(BaseModel):
    doc_ids: Annotated[list[DocumentName], Field(max_length=MAX_DOCUMENTS)]


class Document(ResponseModel):
    doc_id: str = Field(validation_alias="name")
    text: str = Field(validation_alias="content")
    hash_value: str | None = Field(validation_alias="content_hash")
    metadata: dict[str, Any]
    is_truncated: Annotated[bool, BeforeValidator(bool)] = False


class Documents(BaseModel):
    """A page: `count` documents of `total_items`."""

    documents: list[Document]
    count: int
    total_items: int


class UpdateResponse(BaseModel):
    updated_documents: list[Document]
    unchanged_documents: list[Document]
    not_found_documents: list[Document]


class DeleteResponse(BaseModel):
    deleted_doc_ids: list[str]
    not_found_doc_ids: list[str]

    @classmethod
    def of(cls, request: DeleteRequest, deleted: Set[str]) -> Self:
        doc_ids = list(dict.fromkeys(request.doc_ids))
        return cls(
            deleted_doc_ids=[doc_id for doc_id in doc_ids if doc_id in deleted],
            not_found_doc_ids=[doc_id for doc_id in doc_ids if doc_id not in deleted],
        )


class Confirmation(BaseModel):
    message: str


class Node(ResponseModel):
    doc_id: str = Field(validation_alias="document_name")
    node_id: str = Field(validation_alias="chunk_id")
    text: str
    score: Score
    metadata: dict[str, Any]
    page_number: PageNumber = None
    page_end: PageEnd = None
    section: Section = None


class LlmParams(BaseModel):
    """Other parameters are ignored."""

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    max_tokens: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)] | None = None
    stop: Annotated[list[str], Field(max_length=4)] | str | None = None


class QueryRequest(SearchBody):
    index_name: CollectionName
    query: Question
    top_k: Annotated[int, Field(strict=True, ge=1, le=100)] = 5
    llm_params: LlmParams | None = None

    def sampling(self) -> Sampling:
        return Sampling(**(self.llm_params or LlmParams()).model_dump())


class QueryResponse(BaseModel):
    """`metadata` of the source nodes, by node id."""

    response: str
    source_nodes: list[Node]
    metadata: dict[str, dict[str, Any]]
    confidence_detail: ConfidenceDetail
    ignored_filters: IgnoredNames

    @classmethod
    def of(cls, request: QueryRequest, answer: Answer) -> Self:
        nodes = [Node.of(match) for match in answer.matches]
        return cls(
            response=answer.draft.text if answer.draft else insufficient(request.query),
            source_nodes=nodes,
            metadata={node.node_id: node.metadata for node in nodes},
            confidence_detail=ConfidenceDetail.of(answer.judgement),
            ignored_filters=request.ignored_filters,
        )


class RetrieveRequest(SearchBody):
    index_name: CollectionName
    query: Annotated[str, StringConstraints(strict=True, max_length=10_000), WithoutNul, Composed]
    max_node_count: Annotated[int, Field(strict=True, ge=1, le=300)] = 5
    metadata_filter: MetadataEqualities = Field(default_factory=dict)


class RetrieveResponse(BaseModel):
    query: str
    results: list[Node]
    count: int
    ignored_filters: IgnoredNames

    @classmethod
    def of(cls, request: RetrieveRequest, result: SearchResult) -> Self:
        nodes = [Node.of(match) for match in result.matches]
        ignored = request.ignored_filters
        return cls(query=request.query, results=nodes, count=len(nodes), ignored_filters=ignored)
