"""Wire models shared by the search contract's endpoints: errors, filters, results, rationale."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from shared.api.contracts.datetimes import RangeEnd, RangeStart
from shared.api.contracts.ignored_filters import LenientFilters
from shared.api.contracts.platform.common import NullAsAbsent, WithoutNul, share
from shared.errors import InvalidRequest, RagError
from shared.observability.tracing import current
from shared.retrieval.query.types import Rule, SearchMode, SearchScope
from shared.retrieval.types import Highlight, RoutedResult, SearchRequest
from shared.types import Edge, Filters, Graph, Match

CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    409: "CONFLICT",
    413: "PAYLOAD_TOO_LARGE",
    429: "RATE_LIMITED",
    503: "UNAVAILABLE",
}
# The request field of each missing object.
FIELDS = {"workspace_not_found": "workspaceId", "org_not_found": "organizationId"}
# Pydantic adds a union's tag to the field's path: subject.text.text.
_UNION_TAG = re.compile(r"^subject\.(?:text|document|chunk)\.")


class WireModel(BaseModel):
    """Model whose wire names are camelCase. Unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class RequestModel(WireModel, NullAsAbsent):
    """Model of a request. Null means absent."""


class ErrorDetail(WireModel):
    code: str
    message: str
    details: dict[str, Any]


class ErrorBody(WireModel):
    error: ErrorDetail
    request_id: str


def error_body(error: RagError) -> dict[str, Any]:
    # `reason` distinguishes errors of one status.
    reason = (
        {} if error.code in ("invalid_request", "not_found", "internal_error") else {"reason": error.code}
    )
    field = FIELDS.get(error.code) or error.details.get("field")
    details: dict[str, Any] = ({"field": _UNION_TAG.sub("subject.", field)} if field else {}) | reason
    if wait := error.headers.get("Retry-After"):
        # An error event of a stream has no headers.
        details["retryAfter"] = int(wait)
    body = {"code": CODES.get(error.status, "INTERNAL"), "message": str(error), "details": details}
    return {"error": body, "requestId": request_id()}


def request_id() -> str:
    trace = current.get()
    return trace.request_id if trace else ""


def _text(least: int, most: int) -> Any:
    return StringConstraints(strict=True, strip_whitespace=True, min_length=least, max_length=most)


QueryText = Annotated[str, _text(1, 2000), WithoutNul]
Passage = Annotated[str, _text(1, 8000), WithoutNul]
Id = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100), WithoutNul]
Flag = Annotated[bool, Field(strict=True)]
TopK = Annotated[int, Field(strict=True, ge=1, le=50)]
Value = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500), WithoutNul]
Kind = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9_-]{1,64}$")]


def _deduplicate(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


Values = Annotated[list[Value], Field(max_length=100), AfterValidator(_deduplicate)]
Kinds = Annotated[list[Kind], Field(max_length=100), AfterValidator(_deduplicate)]


class RetrievalFilters(RequestModel, LenientFilters):
    """A match needs one value of each list."""

    sources: Values | None = None
    types: Kinds | None = None
    authors: Values | None = None
    states: Values | None = None
    labels: Values | None = None
    after: RangeStart | None = None
    before: RangeEnd | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.after and self.before and self.after > self.before:
            raise ValueError("after must not be later than before")
        return self

    def to_filters(self) -> Filters:
        return Filters(
            source_types=tuple(self.types or ()),
            date_from=self.after,
            date_to=self.before,
            origins=tuple(self.sources or ()),
            authors=tuple(self.authors or ()),
            states=tuple(self.states or ()),
            labels=tuple(self.labels or ()),
        )


class Quality(RequestModel):
    rerank: Flag | None = None


class ScopedRequest(RequestModel):
    organization_id: Id | None = None
    workspace_id: Id | None = None
    scope: Literal["auto", "workspace", "org"] = "auto"

    @property
    def search_scope(self) -> SearchScope:
        return SearchScope(self.scope)

    def workspace(self, header: str | None) -> str | None:
        """The workspace of the body or the header. Raises InvalidRequest for two different ones, and without
        the id that the scope needs."""
        # Proxies send an empty header.
        header = header or None
        if header and self.workspace_id and _normalize(header) != _normalize(self.workspace_id):
            raise InvalidRequest(
                "workspaceId and X-Workspace-Id name different workspaces: send one.",
                details={"field": "workspaceId"},
            )
        workspace = self.workspace_id or header
        if workspace is None and self.scope != "org":
            raise InvalidRequest(
                "workspaceId is required, in the body or as X-Workspace-Id, unless scope is org.",
                details={"field": "workspaceId"},
            )
        if self.scope == "org" and self.organization_id is None:
            raise InvalidRequest(
                "organizationId is required when scope is org.", details={"field": "organizationId"}
            )
        return workspace


class RetrievalRequest(ScopedRequest):
    autoprompt: Flag = True
    top_k: TopK = 10
    quality: Quality = Field(default_factory=Quality)

    def search_request(
        self, text: str, mode: str, workspace: str | None, filters: RetrievalFilters | None
    ) -> SearchRequest:
        """`workspace`: the value of the header. Raises InvalidRequest."""
        return SearchRequest(
            text,
            self.workspace(workspace),
            self.organization_id,
            SearchMode(mode),
            self.search_scope,
            (filters or RetrievalFilters()).to_filters(),
            self.top_k,
            expands=self.autoprompt,
            rerank=self.quality.rerank,
        )


def _normalize(workspace: str) -> str:
    return workspace.lower().removeprefix("ws_").replace("-", "")


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
            score=share(match.score),
            similarity=None if match.similarity is None else share(match.similarity),
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
        return cls(type=edge.type, source=edge.source, target=edge.target, confidence=share(edge.confidence))


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
