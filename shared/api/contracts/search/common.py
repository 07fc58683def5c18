"""What the search contract's four endpoints share: the envelope of errors, where a request looks and by which
filters, and how a result is shown."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from shared.api.contracts.datetimes import Beginning, End
from shared.api.contracts.ignored_filters import NotesIgnored
from shared.api.contracts.platform.common import NullIsUnsaid, WithoutNul, share
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
# Which field names what is not there.
FIELDS = {"workspace_not_found": "workspaceId", "org_not_found": "organizationId"}
# A union's tag is no field: subject.text.text.
_TAGGED = re.compile(r"^subject\.(?:text|document|chunk)\.")


class Wire(BaseModel):
    """Names as the contract writes them: workspaceId is workspace_id here. Unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


class Sent(Wire, NullIsUnsaid):
    """What clients send."""


class ErrorDetail(Wire):
    code: str
    message: str
    details: dict[str, Any]


class ErrorBody(Wire):
    """Every error, whatever its status."""

    error: ErrorDetail
    request_id: str


def error_body(error: RagError) -> dict[str, Any]:
    # What is of one status and yet not the same is told apart by a reason.
    reason = (
        {} if error.code in ("invalid_request", "not_found", "internal_error") else {"reason": error.code}
    )
    field = FIELDS.get(error.code) or error.details.get("field")
    details: dict[str, Any] = ({"field": _TAGGED.sub("subject.", field)} if field else {}) | reason
    if wait := error.headers.get("Retry-After"):
        # Where an error is an event of a stream, there is no header.
        details["retryAfter"] = int(wait)
    said = {"code": CODES.get(error.status, "INTERNAL"), "message": str(error), "details": details}
    return {"error": said, "requestId": request_id()}


def request_id() -> str:
    trace = current.get()
    return trace.request_id if trace else ""


def _text(least: int, most: int) -> Any:
    return StringConstraints(strict=True, strip_whitespace=True, min_length=least, max_length=most)


# Of a question more is no question; a text that others are to be like may be a passage.
QueryText = Annotated[str, _text(1, 2000), WithoutNul]
Passage = Annotated[str, _text(1, 8000), WithoutNul]
Id = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100), WithoutNul]
Flag = Annotated[bool, Field(strict=True)]
TopK = Annotated[int, Field(strict=True, ge=1, le=50)]
Value = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500), WithoutNul]
Kind = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9_-]{1,64}$")]


def _named_once(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


Values = Annotated[list[Value], Field(max_length=100), AfterValidator(_named_once)]
Kinds = Annotated[list[Kind], Field(max_length=100), AfterValidator(_named_once)]


class RetrievalFilters(Sent, NotesIgnored):
    """Of a list one suffices. Unknown keys are ignored, and named in the response."""

    sources: Values | None = None
    types: Kinds | None = None
    authors: Values | None = None
    states: Values | None = None
    labels: Values | None = None
    after: Beginning | None = None
    before: End | None = None

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


class Quality(Sent):
    rerank: Flag | None = None


class Scoped(Sent):
    """Where a request looks: in a workspace, in an org, or in the one and then the other."""

    organization_id: Id | None = None
    workspace_id: Id | None = None
    scope: Literal["auto", "workspace", "org"] = "auto"

    @property
    def reach(self) -> SearchScope:
        return SearchScope(self.scope)

    def workspace(self, header: str | None) -> str | None:
        """The workspace, which may be named in a header instead. Raises InvalidRequest for two of them, and
        where the scope lacks what it needs."""
        # Empty is none, as proxies send it.
        header = header or None
        if header and self.workspace_id and _bare(header) != _bare(self.workspace_id):
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


class Retrieving(Scoped):
    """What a request that looks for something says besides, wherever it is for."""

    autoprompt: Flag = True
    top_k: TopK = 10
    quality: Quality = Field(default_factory=Quality)

    def wanted_by(
        self, text: str, mode: str, workspace: str | None, filters: RetrievalFilters | None
    ) -> SearchRequest:
        """`workspace` is what a header says. Raises InvalidRequest."""
        return SearchRequest(
            text,
            self.workspace(workspace),
            self.organization_id,
            SearchMode(mode),
            self.reach,
            (filters or RetrievalFilters()).to_filters(),
            self.top_k,
            expands=self.autoprompt,
            rerank=self.quality.rerank,
        )


def _bare(workspace: str) -> str:
    return workspace.lower().removeprefix("ws_").replace("-", "")


class Span(Wire):
    """[start, end) in characters (code points) of the document's text."""

    start: int
    end: int


class Result(Wire):
    """A chunk, with what its document says of itself."""

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


def results(retrieved: RoutedResult, *, document: bool = True) -> list[Result]:
    found = zip(retrieved.matches, retrieved.highlights, strict=True)
    return [Result.of(match, highlight, document=document) for match, highlight in found]


class GraphEntity(Wire):
    """`seed`: the question names it. `aliases` are its other names."""

    id: str
    name: str
    type: str
    aliases: list[str]
    seed: bool


class GraphEdge(Wire):
    """From and to are ids of entities."""

    type: str
    source: str = Field(serialization_alias="from")
    target: str = Field(serialization_alias="to")
    confidence: float

    @classmethod
    def of(cls, edge: Edge) -> Self:
        return cls(type=edge.type, source=edge.source, target=edge.target, confidence=share(edge.confidence))


class GraphRationale(Wire):
    """What of the graph of the caller's documents had a part in it: empty lists where nothing had."""

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


class Reason(Wire):
    """A rule of the router that had a say, and why."""

    rule: str
    because: str


class Rationale(Wire):
    """`query` is what was embedded and `words` what was looked for, after `rules`."""

    router_mode: str
    query: str
    words: str
    rules: list[Reason]
    graph: GraphRationale

    @classmethod
    def of(cls, retrieved: RoutedResult) -> Self:
        route = retrieved.route
        return cls(
            router_mode=route.way,
            query=route.text,
            words=route.words,
            rules=list(map(_reason, retrieved.rules)),
            graph=GraphRationale.of(retrieved.graph),
        )


def _reason(rule: Rule) -> Reason:
    return Reason(rule=rule.name, because=rule.because)


class TimeRange(Wire):
    after: datetime | None
    before: datetime | None


class Usage(Wire):
    """`stages` are milliseconds; embeddingVersion is null where nothing was compared by meaning."""

    latency_ms: int
    router_scope: Literal["workspace", "org"]
    inferred_family: str | None
    inferred_time_range: TimeRange
    contribution_shares: dict[str, float]
    stages: dict[str, float]
    embedding_version: str | None

    @classmethod
    def of(cls, retrieved: RoutedResult, milliseconds: int) -> Self:
        route, said = retrieved.route, retrieved.time_range
        return cls(
            latency_ms=milliseconds,
            router_scope="org" if retrieved.reach is SearchScope.ORG else "workspace",
            inferred_family=route.family,
            inferred_time_range=TimeRange(
                after=said.after if said else None, before=said.before if said else None
            ),
            contribution_shares=retrieved.shares,
            stages=retrieved.stages,
            embedding_version=retrieved.model,
        )


def section_of(match: Match) -> str | None:
    section = match.place.get("section")
    return section if isinstance(section, str) and section else None
