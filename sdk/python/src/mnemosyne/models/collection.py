"""Collections, and their settings."""

from datetime import datetime
from typing import Any, TypedDict

from pydantic import Field

from mnemosyne.models.base import Model, Pagination


class CollectionConfigParam(TypedDict, total=False):
    """Settings of a collection; omitted ones have the deployment's defaults."""

    chunk_size: int
    chunk_overlap: int
    embedding_model: str
    enable_hybrid_search: bool
    enable_knowledge_graph: bool


class CollectionConfig(Model):
    chunk_size: int | None = None
    chunk_overlap: int | None = None
    embedding_model: str | None = None
    enable_hybrid_search: bool | None = None
    enable_knowledge_graph: bool | None = None


class Collection(Model):
    """`user_id` created it. `owner_id` is the one user who owns it; None for the whole org."""

    id: str
    org_id: str | None = None
    user_id: str | None = None
    owner_id: str | None = None
    name: str
    description: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    config: CollectionConfig = CollectionConfig()
    document_count: int
    created_at: datetime
    updated_at: datetime


class GraphQueued(Model):
    """`queued`: how many documents the worker will read."""

    collection_id: str
    queued: int


class Collections(Model):
    data: list[Collection]
    pagination: Pagination
