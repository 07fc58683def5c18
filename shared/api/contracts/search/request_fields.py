"""Requests of the search contract: their fields with limits, filters, workspace and scope."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from shared.api.contracts.ignored_names import LenientModel, SearchBody
from shared.api.contracts.metadata import MetadataFilter
from shared.api.contracts.search.camel_case import WireModel
from shared.api.contracts.shared_fields import (
    Composed,
    Flag,
    NullAsAbsent,
    RangeEnd,
    RangeStart,
    WithoutNul,
    stripped,
)
from shared.errors import InvalidRequest
from shared.retrieval.query.types import SearchMode, SearchScope
from shared.retrieval.types import SearchRequest
from shared.types import Filters

QueryText = Annotated[str, stripped(2000), WithoutNul, Composed]
Passage = Annotated[str, stripped(8000), WithoutNul]
Id = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100), WithoutNul]
TopK = Annotated[int, Field(strict=True, ge=1, le=50)]
Value = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500), WithoutNul]
Kind = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9_-]{1,64}$")]


def _deduplicate(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


Values = Annotated[list[Value], Field(max_length=100), AfterValidator(_deduplicate)]
Kinds = Annotated[list[Kind], Field(max_length=100), AfterValidator(_deduplicate)]


class RequestModel(WireModel, NullAsAbsent):
    """Model of a request. Null means absent."""


class RetrievalFilters(RequestModel, LenientModel):
    """A match needs one value of each list. `metadata` is an extension of the contract."""

    sources: Values | None = None
    types: Kinds | None = None
    authors: Values | None = None
    states: Values | None = None
    labels: Values | None = None
    after: RangeStart | None = None
    before: RangeEnd | None = None
    metadata: MetadataFilter | None = None

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
            metadata=self.metadata or {},
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


class RetrievalRequest(ScopedRequest, SearchBody):
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
