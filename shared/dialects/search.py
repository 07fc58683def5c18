"""The search contract's wire models: /v1/search."""

from typing import Literal, Self

from pydantic import Field

from shared.context import concatenated
from shared.dialects import v1
from shared.dialects.v1 import ErrorBody, Flag, Wire, error_body
from shared.highlight import highlight
from shared.retrieval import Retrieved, Wanted
from shared.routing.route import Way

__all__ = ["ErrorBody", "error_body"]
Mode = Literal["auto", "knowledge", "graph", "hybrid", "keyword", "neural", "fast"]


class Include(Wire):
    document: Flag = True
    rationale: Flag = False
    highlights: Flag = True


class Request(v1.Scoped):
    q: v1.QueryText
    mode: Mode = "auto"
    autoprompt: Flag = True
    context: Flag = False
    moderation: Flag = False
    filters: v1.RetrievalFilters | None = None
    top_k: v1.TopK = 10
    include: Include = Field(default_factory=Include)
    quality: v1.Quality = Field(default_factory=v1.Quality)

    def wanted(self, workspace: str | None) -> Wanted:
        """`workspace` is what a header says. Raises InvalidRequest."""
        return Wanted(
            self.q,
            self.workspace(workspace),
            self.organization_id,
            Way(self.mode),
            self.reach,
            (self.filters or v1.RetrievalFilters()).to_filters(),
            self.top_k,
            expands=self.autoprompt,
            moderated=self.moderation,
            rerank=self.quality.rerank,
        )


class Response(Wire):
    """`context` is all results in one text, where it was asked for."""

    results: list[v1.Result]
    rationale: v1.Rationale | None = None
    context: str | None = None
    usage: v1.Usage
    request_id: str

    @classmethod
    def of(cls, request: Request, retrieved: Retrieved, context_tokens: int) -> Self:
        include = request.include
        text = retrieved.route.text
        return cls(
            results=[
                v1.Result.of(
                    match, highlight(match, text) if include.highlights else None, document=include.document
                )
                for match in retrieved.matches
            ],
            rationale=v1.Rationale.of(retrieved) if include.rationale else None,
            context=concatenated(retrieved.matches, context_tokens) if request.context else None,
            usage=v1.Usage.of(retrieved, retrieved.milliseconds),
            request_id=v1.request_id(),
        )
