"""What the search contract's four endpoints share: the envelope of errors, where a request looks and by which
filters, and how a result is shown."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from shared.dialects.moments import Beginning, End
from shared.dialects.platform import WithoutNul
from shared.errors import InvalidRequest, RagError
from shared.highlight import Highlight
from shared.retrieval import Retrieved
from shared.routing.families import KINDS, Family
from shared.routing.route import Reach, Rule
from shared.trace import current
from shared.types import Filters, Match

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
# Types of documents that are counted apart from plain chunks (contract: contributionShares).
OBSERVATIONS = frozenset({"observation", *KINDS[Family.INCIDENTS]})
SUMMARIES = frozenset(KINDS[Family.SUMMARIES])


class ErrorDetail(BaseModel):
    code: str
    message: str
    details: dict[str, Any]


class ErrorBody(BaseModel):
    """Every error, whatever its status."""

    error: ErrorDetail
    requestId: str


def error_body(error: RagError) -> dict[str, Any]:
    # What is of one status and yet not the same is told apart by a reason.
    reason = {} if error.code in ("invalid_request", "not_found", "internal_error") else {"reason": error.code}
    details = {name: value for name, value in error.details.items() if name != "missing"} | reason
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


class RetrievalFilters(BaseModel):
    """Of a list one suffices; null is none. Unknown keys are ignored."""

    sources: Values | None = None
    types: Kinds | None = None
    authors: Values | None = None
    states: Values | None = None
    labels: Values | None = None
    after: Beginning | None = None
    before: End | None = None

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


class Quality(BaseModel):
    rerank: Flag | None = None


class Scoped(BaseModel):
    """Where a request looks: in a workspace, in an org, or in the one and then the other."""

    organizationId: Id | None = None
    workspaceId: Id | None = None
    scope: Literal["auto", "workspace", "org"] = "auto"

    @property
    def reach(self) -> Reach:
        return Reach(self.scope)

    def workspace(self, header: str | None) -> str | None:
        """The workspace, which may be named in a header instead. Raises InvalidRequest for two of them, and
        where the scope lacks what it needs."""
        # Empty is none, as proxies send it.
        header = header or None
        if header and self.workspaceId and _bare(header) != _bare(self.workspaceId):
            raise InvalidRequest(
                "workspaceId and X-Workspace-Id name different workspaces: send one.",
                details={"field": "workspaceId"},
            )
        workspace = self.workspaceId or header
        if workspace is None and self.scope != "org":
            raise InvalidRequest(
                "workspaceId is required, in the body or as X-Workspace-Id, unless scope is org.",
                details={"field": "workspaceId"},
            )
        if self.scope == "org" and self.organizationId is None:
            raise InvalidRequest(
                "organizationId is required when scope is org.", details={"field": "organizationId"}
            )
        return workspace


def _bare(workspace: str) -> str:
    return workspace.removeprefix("ws_").lower()


class Span(BaseModel):
    """[start, end) in characters (code points) of the document's text."""

    start: int
    end: int


class Result(BaseModel):
    """A chunk, with what its document says of itself."""

    documentId: str
    chunkId: str
    score: float
    similarity: float | None
    title: str | None = None
    type: str | None = None
    source: str | None = None
    occurredAt: datetime | None = None
    author: str | None = None
    sectionLabel: str | None = None
    highlight: str | None = None
    highlightSpan: Span | None = None
    url: str | None = None

    @classmethod
    def of(cls, match: Match, highlight: Highlight | None, *, document: bool = True) -> Self:
        result = cls(
            documentId=f"doc_{match.document_id}",
            chunkId=f"chnk_{match.chunk_id}",
            score=share(match.score),
            similarity=None if match.similarity is None else share(match.similarity),
            sectionLabel=section_of(match),
        )
        if highlight:
            result.highlight = highlight.text
            result.highlightSpan = Span(start=highlight.start, end=highlight.end)
        if document:
            result.title, result.type = match.title, match.source_type
            result.source, result.url, result.author = match.origin, match.uri, match.author
            result.occurredAt = match.occurred_at
        return result


class Graph(BaseModel):
    """What the graph of the caller's documents has on it: nothing, until there is one."""

    entities: list[dict[str, Any]] = Field(default_factory=list)
    edges: list[dict[str, Any]] = Field(default_factory=list)
    evidenceChunks: list[str] = Field(default_factory=list)


class Reason(BaseModel):
    """A rule of the router that had a say, and why."""

    rule: str
    because: str


class Rationale(BaseModel):
    """`query` is what was embedded and `words` what was looked for, after `rules`."""

    routerMode: str
    query: str
    words: str
    rules: list[Reason]
    graph: Graph = Field(default_factory=Graph)

    @classmethod
    def of(cls, retrieved: Retrieved) -> Self:
        route = retrieved.route
        return cls(
            routerMode=route.way, query=route.text, words=route.words, rules=list(map(_reason, retrieved.rules))
        )


def _reason(rule: Rule) -> Reason:
    return Reason(rule=rule.name, because=rule.because)


class TimeRange(BaseModel):
    after: datetime | None
    before: datetime | None


class Usage(BaseModel):
    """`stages` are milliseconds; embeddingVersion is null where nothing was compared by meaning."""

    latencyMs: int
    routerScope: Literal["workspace", "org"]
    inferredFamily: str | None
    inferredTimeRange: TimeRange
    contributionShares: dict[str, float]
    stages: dict[str, float]
    embeddingVersion: str | None

    @classmethod
    def of(cls, retrieved: Retrieved, milliseconds: int) -> Self:
        route, said = retrieved.route, retrieved.time_range
        return cls(
            latencyMs=milliseconds,
            routerScope="org" if retrieved.reach is Reach.ORG else "workspace",
            inferredFamily=route.family,
            inferredTimeRange=TimeRange(
                after=said.after if said else None, before=said.before if said else None
            ),
            contributionShares=contributions(retrieved.matches),
            stages=retrieved.stages,
            embeddingVersion=retrieved.model,
        )


def contributions(matches: Sequence[Match]) -> dict[str, float]:
    """Of what kind of text how much of the results' score is; all 0 where there are none."""
    shares = dict.fromkeys(("chunks", "observations", "summaries"), 0.0)
    total = sum(match.score for match in matches)
    for match in matches:
        kind = "summaries" if match.source_type in SUMMARIES else "chunks"
        kind = "observations" if match.source_type in OBSERVATIONS else kind
        shares[kind] += match.score / total if total else 1 / len(matches)
    return {kind: round(found, 4) for kind, found in shares.items()}


def section_of(match: Match) -> str | None:
    section = match.place.get("section")
    return section if isinstance(section, str) and section else None


def share(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 6)
