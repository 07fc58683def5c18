"""Wire models of administration: health, statistics, orgs, knowledge events."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, Secret, StringConstraints

from shared.api.contracts.platform.pagination import Pagination
from shared.api.contracts.shared_fields import ResponseModel, WithoutNul

State = Literal["healthy", "degraded", "unhealthy", "unknown", "not_configured"]


class NewUser(BaseModel):
    email: Annotated[str, StringConstraints(strict=True, max_length=255, pattern="^[!-?A-~]+@[!-?A-~]+$")]
    password: Secret[Annotated[str, StringConstraints(strict=True, min_length=8, max_length=255)]]


class RegisteredUser(ResponseModel):
    """`api_key` is shown once."""

    user_id: str
    email: str
    api_key: str


class Services(BaseModel):
    database: State
    postgrest: State
    migrations: State
    pgvector: State
    embedding_service: State
    gateway: State
    queue: State


class Database(BaseModel):
    """`migration`: the database's newest migration; `expected`: the one that the functions need; `reach`:
    whether PostgREST accepts the project's key; `functions_secret`: whether the guarded SQL functions accept
    calls of this deployment (docs/install.md)."""

    reach: Literal["serves", "anon_key_refused"]
    postgres: str | None
    pgvector: str | None
    migration: str | None
    expected: str
    functions_secret: Literal["ok", "unset", "wrong"]


class Embedding(BaseModel):
    """`dimensions`: those of the model, null if it is not available."""

    model: str | None
    dimensions: int | None
    stored_dimensions: int
    source: str | None


class Gateway(BaseModel):
    """`model`: "extractive" without a generation model."""

    model: str
    source: str | None


class QueueLength(BaseModel):
    """`oldest_seconds`: the time since the oldest waiting job was due."""

    waiting: int
    running: int
    oldest_seconds: float | None


class Queue(BaseModel):
    """Jobs of the admin's orgs, counted up to 100,000 each: documents to ingest, documents without a graph,
    deliveries of webhooks, and objects of Storage without a document."""

    documents: QueueLength
    extractions: QueueLength
    deliveries: QueueLength
    removals: QueueLength


class Details(BaseModel):
    database: Database
    embedding: Embedding
    gateway: Gateway
    queue: Queue


class Health(ResponseModel):
    """`details` are null unless the caller is an admin."""

    status: Literal["healthy", "degraded", "unhealthy"]
    version: str
    services: Services
    timestamp: datetime = Field(validation_alias="at")
    details: Details | None


class Stats(ResponseModel):
    """Statistics of the orgs that the caller administers. `total_users`: users who have called;
    `api_calls_today`: admitted calls since midnight UTC; `is_complete`: false if a table exceeds the
    count."""

    total_users: int
    total_collections: int
    total_documents: int
    total_chunks: int
    total_entities: int
    total_relationships: int
    storage_used_bytes: int
    api_calls_today: int
    is_complete: bool


class Org(BaseModel):
    """`name` is null if the deployment has its own table of orgs."""

    id: str
    name: str | None
    role: str | None


class Orgs(ResponseModel):
    """In the order of their names."""

    data: list[Org]


Namespace = Annotated[str, StringConstraints(min_length=1, max_length=255), WithoutNul]
EventName = Literal[
    "knowledge.ingest",
    "knowledge.retrieve",
    "knowledge.query",
    "knowledge.delete",
    "quota.alert",
    "quota.exceeded",
]


class Event(BaseModel):
    """A user's action on knowledge, without texts, or a quota of tokens, which is then the namespace.
    `owner_id`: the owner of the namespace, null for the org's; `top_score`: the score of the best chunk, null
    without one."""

    id: str
    org_id: str
    owner_id: str | None
    user_id: str
    event: EventName
    namespace: str
    collection_id: str | None
    document_count: int
    chunk_count: int
    top_score: float | None
    created_at: datetime


class Events(BaseModel):
    data: list[Event]
    pagination: Pagination
