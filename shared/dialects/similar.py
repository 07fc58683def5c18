"""The search contract's wire models: /v1/similar."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

from shared.dialects import v1
from shared.dialects.v1 import ErrorBody, Flag, error_body
from shared.highlight import highlight
from shared.retrieval import Retrieved, Wanted
from shared.routing.route import Reach, Way

__all__ = ["ErrorBody", "error_body"]


class TextSubject(BaseModel):
    kind: Literal["text"]
    text: v1.Passage


class DocumentSubject(BaseModel):
    kind: Literal["document"]
    documentId: v1.Id


class ChunkSubject(BaseModel):
    kind: Literal["chunk"]
    chunkId: v1.Id


class Request(v1.Scoped):
    subject: Annotated[TextSubject | DocumentSubject | ChunkSubject, Field(discriminator="kind")]
    mode: Literal["auto", "neural", "keyword", "hybrid", "fast"] = "auto"
    autoprompt: Flag = True
    by: Literal["chunks", "documents"] = "chunks"
    filters: v1.RetrievalFilters | None = None
    topK: v1.TopK = 10
    quality: v1.Quality = Field(default_factory=v1.Quality)

    @property
    def subject_id(self) -> str | None:
        """Of a subject that is already here."""
        match self.subject:
            case DocumentSubject(documentId=known) | ChunkSubject(chunkId=known):
                return known
        return None

    def wanted(self, workspace: str | None) -> Wanted:
        """`workspace` is what a header says. Raises InvalidRequest."""
        return Wanted(
            self.subject.text if isinstance(self.subject, TextSubject) else "",
            self.workspace(workspace),
            self.organizationId,
            Way(self.mode),
            self.reach,
            (self.filters or v1.RetrievalFilters()).to_filters(),
            self.topK,
            expands=self.autoprompt,
            # The order of what is like something is its likeness, unless somebody wants another.
            rerank=self.quality.rerank or False,
        )


class Match(v1.Result):
    """A result, by chunk; or of a document its best chunk."""


class Usage(BaseModel):
    latencyMs: int
    routerScope: Literal["workspace", "org"]
    stages: dict[str, float]
    embeddingVersion: str | None


class Response(BaseModel):
    matches: list[Match]
    usage: Usage
    requestId: str

    @classmethod
    def of(cls, retrieved: Retrieved) -> Self:
        return cls(
            matches=[
                Match.model_validate(v1.Result.of(match, highlight(match, retrieved.route.text)).model_dump())
                for match in retrieved.matches
            ],
            usage=Usage(
                latencyMs=retrieved.milliseconds,
                routerScope="org" if retrieved.reach is Reach.ORG else "workspace",
                stages=retrieved.stages,
                embeddingVersion=retrieved.model,
            ),
            requestId=v1.request_id(),
        )
