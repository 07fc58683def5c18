"""The search contract's wire models: /v1/search."""

from dataclasses import replace
from typing import Literal, Self

from pydantic import Field

from shared.dialects import v1
from shared.dialects.ignored import IgnoredFilters, ignored_in
from shared.dialects.v1 import ErrorBody, Flag, Sent, Wire, error_body
from shared.searched import Retrieved, Wanted

__all__ = ["ErrorBody", "error_body"]
Mode = Literal["auto", "knowledge", "graph", "hybrid", "keyword", "neural", "fast"]


class Include(Sent):
    document: Flag = True
    rationale: Flag = False
    highlights: Flag = True


class Request(v1.Retrieving):
    q: v1.QueryText
    mode: Mode = "auto"
    context: Flag = False
    moderation: Flag = False
    filters: v1.RetrievalFilters | None = None
    include: Include = Field(default_factory=Include)

    def wanted(self, workspace: str | None) -> Wanted:
        """`workspace` is what a header says. Raises InvalidRequest."""
        return replace(
            self.wanted_by(self.q, self.mode, workspace, self.filters),
            moderated=self.moderation,
            highlighted=self.include.highlights,
            in_context=self.context,
        )


class Response(Wire):
    """`context` is all results in one text, where it was asked for."""

    results: list[v1.Result]
    rationale: v1.Rationale | None = None
    context: str | None = None
    usage: v1.Usage
    ignored_filters: IgnoredFilters
    request_id: str

    @classmethod
    def of(cls, request: Request, retrieved: Retrieved) -> Self:
        include = request.include
        return cls(
            results=v1.results(retrieved, document=include.document),
            rationale=v1.Rationale.of(retrieved) if include.rationale else None,
            context=retrieved.context,
            usage=v1.Usage.of(retrieved, retrieved.milliseconds),
            ignored_filters=ignored_in(request.filters),
            request_id=v1.request_id(),
        )
