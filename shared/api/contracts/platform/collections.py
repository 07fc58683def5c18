"""The platform contract's wire models of collections."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from shared.api.contracts.platform.common import (
    Limit,
    Offset,
    Order,
    Pagination,
    WithMetadata,
    WithoutNul,
)
from shared.models.chunk_limits import (
    MAX_OVERLAP,
    MAX_SIZE,
    MIN_SIZE,
    ChunkSizes,
    EmbedderLimits,
    configured_sizes,
)

__all__ = ["Limit", "Offset", "Order", "Pagination"]

CollectionOrder = Literal["created_at", "name", "document_count"]
Name = Annotated[
    str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=255), WithoutNul
]
Description = Annotated[str, StringConstraints(strict=True, max_length=2000), WithoutNul]


class Config(BaseModel):
    """What is not given is the deployment's to choose."""

    model_config = ConfigDict(extra="ignore")

    chunk_size: Annotated[int, Field(strict=True, ge=MIN_SIZE, le=MAX_SIZE)] | None = None
    chunk_overlap: Annotated[int, Field(strict=True, ge=0, le=MAX_OVERLAP)] | None = None
    embedding_model: Name | None = None
    enable_hybrid_search: Annotated[bool, Field(strict=True)] | None = None
    enable_knowledge_graph: Annotated[bool, Field(strict=True)] | None = None

    @model_validator(mode="after")
    def _overlap(self) -> Self:
        if self.chunk_overlap is not None and self.chunk_overlap >= (self.chunk_size or 512):
            raise ValueError("chunk_overlap must be below chunk_size")
        return self


class NewCollection(WithMetadata):
    """`org_id` may be left out by members of one org; a private collection is its maker's own."""

    name: Name
    description: Description | None = None
    config: Config | None = None
    org_id: UUID | None = None
    private: Annotated[bool, Field(strict=True)] = False

    def to_request(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class CollectionChanges(WithMetadata):
    """Null, as if it were not there, leaves a field as it is."""

    name: Name | None = None
    description: Description | None = None
    config: Config | None = None

    def changes(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class GraphBuild(BaseModel):
    """`again`: also documents that were read before."""

    again: Annotated[bool, Field(strict=True)] = False


class GraphQueued(BaseModel):
    """How many documents the worker will read."""

    collection_id: str
    queued: int


DEFAULTS = {
    "enable_hybrid_search": True,
    "enable_knowledge_graph": True,
}


class Collection(BaseModel):
    id: str
    org_id: str
    # Who created it; and the one user whose collection it is, null where it is the whole org's.
    user_id: str
    owner_id: str | None
    name: str
    description: str | None
    metadata: dict[str, Any]
    config: dict[str, Any]
    document_count: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: dict[str, Any], model: str, reads: EmbedderLimits) -> Self:
        """`model`: what embeds here, unless the collection says otherwise, and how much it reads."""
        said = row["config"]
        # What the worker does, whatever is wished for.
        sizes = ChunkSizes.of(reads, *configured_sizes(said, row["id"]))
        done = {"chunk_size": sizes.size, "chunk_overlap": sizes.overlap}
        config = {**DEFAULTS, "embedding_model": model, **said, **done}
        return cls(**{**row, "user_id": row["created_by"], "config": config})


class Collections(BaseModel):
    data: list[Collection]
    pagination: Pagination
