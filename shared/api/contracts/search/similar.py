"""The search contract's wire models: /v1/similar."""

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field

from shared.api.contracts.ignored_filters import IgnoredFilters, ignored_in
from shared.api.contracts.search import common
from shared.api.contracts.search.common import Sent, Wire
from shared.retrieval.query.types import SearchScope
from shared.retrieval.types import RoutedResult, SearchRequest
from shared.types import Result, SimilarTo


class TextSubject(Sent):
    kind: Literal["text"]
    text: common.Passage


class DocumentSubject(Sent):
    kind: Literal["document"]
    document_id: common.Id


class ChunkSubject(Sent):
    kind: Literal["chunk"]
    chunk_id: common.Id


class Request(common.Retrieving):
    subject: Annotated[TextSubject | DocumentSubject | ChunkSubject, Field(discriminator="kind")]
    mode: Literal["auto", "neural", "keyword", "hybrid", "fast"] = "auto"
    by: Result = Result.CHUNKS
    filters: common.RetrievalFilters | None = None

    def to_subject(self) -> SimilarTo:
        match self.subject:
            case TextSubject(text=value) | DocumentSubject(document_id=value) | ChunkSubject(chunk_id=value):
                return SimilarTo(self.subject.kind, value)

    def to_request(self, workspace: str | None) -> SearchRequest:
        """`workspace` is what a header says. Raises InvalidRequest."""
        text = self.subject.text if isinstance(self.subject, TextSubject) else ""
        return replace(
            self.wanted_by(text, self.mode, workspace, self.filters),
            # The order of what is like something is its likeness, unless somebody wants another.
            rerank=self.quality.rerank or False,
        )


class Usage(Wire):
    latency_ms: int
    router_scope: Literal["workspace", "org"]
    stages: dict[str, float]
    embedding_version: str | None


class Response(Wire):
    """A match is a chunk, or of a document its best one."""

    matches: list[common.Result]
    usage: Usage
    ignored_filters: IgnoredFilters
    request_id: str

    @classmethod
    def of(cls, request: Request, retrieved: RoutedResult) -> Self:
        return cls(
            matches=common.results(retrieved),
            usage=Usage(
                latency_ms=retrieved.milliseconds,
                router_scope="org" if retrieved.reach is SearchScope.ORG else "workspace",
                stages=retrieved.stages,
                embedding_version=retrieved.model,
            ),
            ignored_filters=ignored_in(request.filters),
            request_id=common.request_id(),
        )
