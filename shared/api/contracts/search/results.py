"""Results of the search contract: chunks, the rationale of the router, the graph, usage."""

from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from shared.api.contracts.search.camel_case import WireModel
from shared.api.contracts.shared_fields import rounded_score
from shared.retrieval.query.types import Rule, SearchScope
from shared.retrieval.types import Highlight, RoutedResult
from shared.types import Edge, Graph, Match


class Span(WireModel):
    """[start, end) in characters (code points) of the document's text."""

    start: int
    end: int


class Result(WireModel):
    """A chunk with fields of its document."""

    document_id: str
    chunk_id: str
    workspace_id: str
    score: float
    similarity: float | None
    title: str | None = None
    type: str | None = None
    source: str | None = None
    occurred_at: datetime | None = None
    author: str | None = None
    section_label: str | None = None
    highlight: str | None = None
    highlight_span: Span | None = None
    url: str | None = None

    @classmethod
    def of(cls, match: Match, highlight: Highlight | None, *, document: bool = True) -> Self:
        result = cls(
            document_id=f"doc_{match.document_id}",
            chunk_id=f"chnk_{match.chunk_id}",
            workspace_id=f"ws_{match.collection_id}",
            score=rounded_score(match.score),
            similarity=None if match.similarity is None else rounded_score(match.similarity),
            section_label=section_of(match),
        )
        if highlight:
            result.highlight = highlight.text
            result.highlight_span = Span(start=highlight.start, end=highlight.end)
        if document:
            result.title, result.type = match.title, match.source_type
            result.source, result.url, result.author = match.origin, match.uri, match.author
            result.occurred_at = match.occurred_at
        return result


def results(result: RoutedResult, *, document: bool = True) -> list[Result]:
    pairs = zip(result.matches, result.highlights, strict=True)
    return [Result.of(match, highlight, document=document) for match, highlight in pairs]


class GraphEntity(WireModel):
    """`seed`: the question names the entity."""

    id: str
    name: str
    type: str
    aliases: list[str]
    seed: bool


class GraphEdge(WireModel):
    """From and to are ids of entities."""

    type: str
    source: str = Field(serialization_alias="from")
    target: str = Field(serialization_alias="to")
    confidence: float

    @classmethod
    def of(cls, edge: Edge) -> Self:
        return cls(
            type=edge.type, source=edge.source, target=edge.target, confidence=rounded_score(edge.confidence)
        )


class GraphRationale(WireModel):
    """The part of the caller's graph that the search used: empty lists if none."""

    entities: list[GraphEntity]
    edges: list[GraphEdge]
    evidence_chunks: list[str]

    @classmethod
    def of(cls, graph: Graph) -> Self:
        return cls(
            entities=[
                GraphEntity(
                    id=entity.id,
                    name=entity.name,
                    type=entity.kind,
                    aliases=list(entity.aliases),
                    seed=entity.is_seed,
                )
                for entity in graph.entities
            ],
            edges=list(map(GraphEdge.of, graph.edges)),
            evidence_chunks=[f"chnk_{chunk}" for chunk in graph.evidence],
        )


class Reason(WireModel):
    """A rule that the router applied, and its reason."""

    rule: str
    because: str


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
            rules=list(map(_reason, result.rules)),
            graph=GraphRationale.of(result.graph),
        )


def _reason(rule: Rule) -> Reason:
    return Reason(rule=rule.name, because=rule.reason)


class TimeRange(WireModel):
    after: datetime | None
    before: datetime | None


class Usage(WireModel):
    """`stages` are milliseconds; embeddingVersion is null if nothing was embedded."""

    latency_ms: int
    router_scope: Literal["workspace", "org"]
    inferred_family: str | None
    inferred_time_range: TimeRange
    contribution_shares: dict[str, float]
    stages: dict[str, float]
    embedding_version: str | None

    @classmethod
    def of(cls, result: RoutedResult, milliseconds: int) -> Self:
        route, time_range = result.route, result.time_range
        return cls(
            latency_ms=milliseconds,
            router_scope="org" if result.scope is SearchScope.ORG else "workspace",
            inferred_family=route.family,
            inferred_time_range=TimeRange(
                after=time_range.after if time_range else None,
                before=time_range.before if time_range else None,
            ),
            contribution_shares=result.shares,
            stages=result.stages,
            embedding_version=result.embedding_model,
        )


def section_of(match: Match) -> str | None:
    section = match.place.get("section")
    return section if isinstance(section, str) and section else None
