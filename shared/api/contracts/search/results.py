"""Results of the search contract: chunks, the rationale of the router, the graph, usage."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import AliasPath, Field, model_validator

from shared.api.contracts.search.camel_case import ChunkId, DocumentId, ResponsePart, WireModel, WorkspaceId
from shared.api.contracts.shared_fields import PageEnd, PageNumber, Score, Section
from shared.retrieval.query.types import SearchScope
from shared.retrieval.types import RoutedResult


class Span(ResponsePart):
    """[start, end) in characters (code points) of the document's text."""

    start: int
    end: int

    @model_validator(mode="before")
    @classmethod
    def _of_pair(cls, span: Any) -> Any:
        return {"start": span[0], "end": span[1]} if isinstance(span, tuple) else span


class Result(ResponsePart):
    """A chunk with fields of its document."""

    document_id: DocumentId
    chunk_id: ChunkId
    workspace_id: WorkspaceId = Field(validation_alias="collection_id")
    score: Score
    similarity: Score | None
    title: str | None = None
    type: str | None = Field(None, validation_alias="source_type")
    source: str | None = Field(None, validation_alias="origin")
    occurred_at: datetime | None = None
    author: str | None = None
    section_label: Section = None
    highlight: str | None = None
    highlight_span: Span | None = None
    url: str | None = Field(None, validation_alias="uri")
    page_number: PageNumber = None
    page_end: PageEnd = None


# Fields of the document, which a request may omit.
DOCUMENT_FIELDS = ("title", "type", "source", "url", "author", "occurred_at")


def results(result: RoutedResult, *, document: bool = True) -> list[Result]:
    wire_results = list(map(Result.of, result.matches))
    for wire_result, highlight in zip(wire_results, result.highlights, strict=True):
        if highlight:
            wire_result.highlight, wire_result.highlight_span = highlight.text, Span.of(highlight)
        for name in () if document else DOCUMENT_FIELDS:
            setattr(wire_result, name, None)
    return wire_results


class GraphEntity(ResponsePart):
    """`seed`: the question names the entity."""

    id: str
    name: str
    type: str = Field(validation_alias="kind")
    aliases: list[str]
    seed: bool = Field(validation_alias="is_seed")


class GraphEdge(ResponsePart):
    """From and to are ids of entities."""

    type: str
    source: str = Field(serialization_alias="from")
    target: str = Field(serialization_alias="to")
    confidence: Score


class GraphRationale(ResponsePart):
    """The part of the caller's graph that the search used: empty lists if none."""

    entities: list[GraphEntity]
    edges: list[GraphEdge]
    evidence_chunks: list[ChunkId] = Field(validation_alias="evidence")


class Reason(ResponsePart):
    """A rule that the router applied, and its reason."""

    rule: str = Field(validation_alias="name")
    because: str = Field(validation_alias="reason")


class Rationale(WireModel):
    """`query` was embedded, `words` were the keywords, both after `rules`."""

    router_mode: str
    query: str
    words: str
    rules: list[Reason]
    graph: GraphRationale

    @classmethod
    def of(cls, result: RoutedResult) -> Self:
        route = result.route
        return cls(
            router_mode=route.mode,
            query=route.text,
            words=route.words,
            rules=list(map(Reason.of, result.rules)),
            graph=GraphRationale.of(result.graph),
        )


class TimeRange(ResponsePart):
    after: datetime | None
    before: datetime | None


class Usage(ResponsePart):
    """`stages` are milliseconds; embeddingVersion is null if nothing was embedded."""

    latency_ms: int
    router_scope: Literal["workspace", "org"]
    inferred_family: str | None = Field(validation_alias=AliasPath("route", "family"))
    inferred_time_range: TimeRange
    contribution_shares: dict[str, float] = Field(validation_alias="shares")
    stages: dict[str, float]
    embedding_version: str | None = Field(validation_alias="embedding_model")

    @classmethod
    def of_search(cls, result: RoutedResult, milliseconds: int) -> Self:
        time_range = result.time_range or {"after": None, "before": None}
        scope = router_scope(result)
        return cls.of(result, latency_ms=milliseconds, router_scope=scope, inferred_time_range=time_range)


def router_scope(result: RoutedResult) -> str:
    return "org" if result.scope is SearchScope.ORG else "workspace"
