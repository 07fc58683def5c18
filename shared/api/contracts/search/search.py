"""Wire models of /v1/search."""

from dataclasses import replace
from typing import Literal, Self

from pydantic import Field

from shared.api.contracts.ignored_names import IgnoredNames
from shared.api.contracts.search.camel_case import WireModel
from shared.api.contracts.search.error_format import request_id
from shared.api.contracts.search.request_fields import (
    QueryText,
    RequestModel,
    RetrievalFilters,
    RetrievalRequest,
)
from shared.api.contracts.search.results import Rationale, Result, Usage, results
from shared.api.contracts.shared_fields import Flag
from shared.retrieval.types import RoutedResult, SearchRequest

Mode = Literal["auto", "knowledge", "graph", "hybrid", "keyword", "neural", "fast"]


class Include(RequestModel):
    document: Flag = True
    rationale: Flag = False
    highlights: Flag = True


class Request(RetrievalRequest):
    q: QueryText
    mode: Mode = "auto"
    context: Flag = False
    moderation: Flag = False
    filters: RetrievalFilters | None = None
    include: Include = Field(default_factory=Include)

    def to_request(self, workspace: str | None) -> SearchRequest:
        """`workspace`: the value of the header. Raises InvalidRequest."""
        return replace(
            self.search_request(self.q, self.mode, workspace, self.filters),
            is_moderated=self.moderation,
            with_highlights=self.include.highlights,
            with_context=self.context,
        )


class Response(WireModel):
    """`context`: all results as one text, if requested."""

    results: list[Result]
    rationale: Rationale | None = None
    context: str | None = None
    usage: Usage
    ignored_filters: IgnoredNames
    request_id: str

    @classmethod
    def of(cls, request: Request, result: RoutedResult) -> Self:
        include = request.include
        return cls(
            results=results(result, document=include.document),
            rationale=Rationale.of(result) if include.rationale else None,
            context=result.context,
            usage=Usage.of_search(result, result.milliseconds),
            ignored_filters=request.ignored_filters,
            request_id=request_id(),
        )
