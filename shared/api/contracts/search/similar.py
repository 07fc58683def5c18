"""Wire models of /v1/similar."""

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field

from shared.api.contracts.ignored_names import IgnoredNames
from shared.api.contracts.search import results
from shared.api.contracts.search.camel_case import ResponsePart, WireModel
from shared.api.contracts.search.error_format import request_id
from shared.api.contracts.search.request_fields import (
    Id,
    Passage,
    RequestModel,
    RetrievalFilters,
    RetrievalRequest,
)
from shared.retrieval.types import RoutedResult, SearchRequest
from shared.types import ResultKind, SimilarTo


class TextSubject(RequestModel):
    kind: Literal["text"]
    text: Passage


class DocumentSubject(RequestModel):
    kind: Literal["document"]
    document_id: Id


class ChunkSubject(RequestModel):
    kind: Literal["chunk"]
    chunk_id: Id


class Request(RetrievalRequest):
    subject: Annotated[TextSubject | DocumentSubject | ChunkSubject, Field(discriminator="kind")]
    mode: Literal["auto", "neural", "keyword", "hybrid", "fast"] = "auto"
    by: ResultKind = ResultKind.CHUNKS
    filters: RetrievalFilters | None = None

    def to_subject(self) -> SimilarTo:
        match self.subject:
            case TextSubject(text=value) | DocumentSubject(document_id=value) | ChunkSubject(chunk_id=value):
                return SimilarTo(self.subject.kind, value)

    def to_request(self, workspace: str | None) -> SearchRequest:
        """`workspace`: the value of the header. Raises InvalidRequest."""
        text = self.subject.text if isinstance(self.subject, TextSubject) else ""
        return replace(
            self.search_request(text, self.mode, workspace, self.filters),
            # By default the order is the similarity.
            rerank=self.quality.rerank or False,
        )


class Usage(ResponsePart):
    latency_ms: int = Field(validation_alias="milliseconds")
    router_scope: Literal["workspace", "org"]
    stages: dict[str, float]
    embedding_version: str | None = Field(validation_alias="embedding_model")


class Response(WireModel):
    """A match is a chunk; for documents, the best chunk of each."""

    matches: list[results.Result]
    usage: Usage
    ignored_filters: IgnoredNames
    request_id: str

    @classmethod
    def of(cls, request: Request, result: RoutedResult) -> Self:
        return cls(
            matches=results.results(result),
            usage=Usage.of(result, router_scope=results.router_scope(result)),
            ignored_filters=request.ignored_filters,
            request_id=request_id(),
        )
