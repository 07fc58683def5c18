"""Wire models of collections."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints, model_validator

from shared.api.contracts.ignored_names import IgnoredNames, LenientModel
from shared.api.contracts.metadata import WithMetadata
from shared.api.contracts.platform.pagination import Page
from shared.api.contracts.shared_fields import Flag, ResponseModel, WithoutNul, stripped
from shared.models.chunk_sizes import (
    MAX_OVERLAP,
    MAX_SIZE,
    MIN_SIZE,
    ChunkSizes,
    EmbedderLimits,
    configured_sizes,
)

CollectionOrder = Literal["created_at", "name", "document_count"]
Name = Annotated[str, stripped(255), WithoutNul]
Description = Annotated[str, StringConstraints(strict=True, max_length=2000), WithoutNul]


class Config(LenientModel):
    """The deployment's settings apply to omitted fields."""

    chunk_size: Annotated[int, Field(strict=True, ge=MIN_SIZE, le=MAX_SIZE)] | None = None
    chunk_overlap: Annotated[int, Field(strict=True, ge=0, le=MAX_OVERLAP)] | None = None
    embedding_model: Name | None = None
    enable_hybrid_search: Flag | None = None
    enable_knowledge_graph: Flag | None = None

    @model_validator(mode="after")
    def _overlap(self) -> Self:
        if self.chunk_overlap is not None and self.chunk_overlap >= (self.chunk_size or 512):
            raise ValueError("chunk_overlap must be below chunk_size")
        return self


class NewCollection(WithMetadata):
    """Members of one org may omit `org_id`; only its creator sees a private collection."""

    name: Name
    description: Description | None = None
    config: Config | None = None
    org_id: UUID | None = None
    private: Flag = False

    def to_request(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class CollectionChanges(WithMetadata, LenientModel):
    """Null leaves a field unchanged."""

    name: Name | None = None
    description: Description | None = None
    config: Config | None = None

    def changes(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class GraphBuild(BaseModel):
    """`again`: also documents that the graph already has."""

    again: Flag = False


class GraphBuildQueued(BaseModel):
    """`queued`: the number of documents for the worker."""

    collection_id: str
    queued: int


DEFAULTS = {"enable_hybrid_search": True, "enable_knowledge_graph": True}


class Collection(BaseModel):
    id: str
    org_id: str
    # The creator; and the owner of a private collection, null for the org's.
    user_id: str
    owner_id: str | None
    name: str
    description: str | None
    metadata: dict[str, Any]
    config: dict[str, Any]
    document_count: int
    created_at: datetime
    updated_at: datetime
    # Unknown fields of a PATCH.
    ignored_fields: IgnoredNames

    @classmethod
    def of(cls, row: dict[str, Any], model: str, limits: EmbedderLimits) -> Self:
        """`model`: the default embedding model; `limits`: its limits."""
        stored = row["config"]
        # The sizes that the worker uses.
        sizes = ChunkSizes.of(limits, *configured_sizes(stored, row["id"]))
        actual = {"chunk_size": sizes.size, "chunk_overlap": sizes.overlap}
        config = {**DEFAULTS, "embedding_model": model, **stored, **actual}
        return cls(**{**row, "user_id": row["created_by"], "config": config})


class Collections(Page[Collection]):
    pass


Right = Literal["view", "edit", "manage"]


class Grant(BaseModel):
    """Of a group or of a user. `original`: whether `view` opens the original files too."""

    group: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200), WithoutNul] | None = (
        None
    )
    user_id: UUID | None = None
    access: Right
    original: Flag = True

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if (self.group is None) is (self.user_id is None):
            raise ValueError("a grant has either a group or a user_id")
        return self


class NewAccess(BaseModel):
    """`grants` replace the earlier ones; none of an open collection, which all members may use."""

    restricted: Flag
    grants: Annotated[list[Grant], Field(max_length=200)] = []


class Access(ResponseModel):
    """`access`: the caller's own right."""

    collection_id: str
    restricted: bool
    access: Right
    grants: list[Grant]
