"""The platform contract's wire models of administration: health, its details and stats for admins, orgs."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, StringConstraints

from shared.api.contracts.platform.common import Limit, Offset, Pagination, WithoutNul
from shared.api.health import Report

__all__ = ["Limit", "Offset", "Pagination"]

State = Literal["healthy", "degraded", "unhealthy", "unknown", "not_configured"]


class Services(BaseModel):
    database: State
    postgrest: State
    migrations: State
    pgvector: State
    embedding_service: State
    gateway: State
    queue: State


class Database(BaseModel):
    """`migration` is the newest that the database has, `expected` the one that the functions are for.
    `reach`: how far the project's own key leads. `functions_secret`: whether the guarded SQL functions accept
    calls of this deployment (README.md, Functions secret)."""

    reach: Literal["serves", "anon_key_refused"]
    postgres: str | None
    pgvector: str | None
    migration: str | None
    expected: str
    functions_secret: Literal["ok", "unset", "wrong"]


class Embedding(BaseModel):
    """`dimensions` are the model's own, null while it does not embed."""

    model: str | None
    dimensions: int | None
    stored_dimensions: int
    source: str | None


class Gateway(BaseModel):
    """The model that answers; extractive, where there is none."""

    model: str
    source: str | None


class Waiting(BaseModel):
    """How many wait and are worked on, and how long one has been due."""

    waiting: int
    running: int
    oldest_seconds: float | None


class Queue(BaseModel):
    """Of the admin's orgs, what waits for the worker, at most 100,000 of each looked at: documents to be
    ingested, documents that nobody has read for names, webhooks' deliveries, and objects of Storage that no
    document has."""

    documents: Waiting
    readings: Waiting
    deliveries: Waiting
    removals: Waiting


class Details(BaseModel):
    database: Database
    embedding: Embedding
    gateway: Gateway
    queue: Queue


class Health(BaseModel):
    """`details` are an admin's to see, and null for everybody else."""

    status: Literal["healthy", "degraded", "unhealthy"]
    version: str
    services: Services
    timestamp: datetime
    details: Details | None

    @classmethod
    def of(cls, report: Report) -> Self:
        return cls(
            status=report.status.value,  # type: ignore[arg-type]
            version=report.version,
            services=Services(**report.services),  # type: ignore[arg-type]
            timestamp=report.at,
            details=Details(**report.details) if report.details else None,
        )


class Stats(BaseModel):
    """Of the orgs that the caller administers. `total_users`: who has ever called; `api_calls_today`: since
    midnight UTC, let through. Not complete where some table has more rows than are counted."""

    total_users: int
    total_collections: int
    total_documents: int
    total_chunks: int
    total_entities: int
    total_relationships: int
    storage_used_bytes: int
    api_calls_today: int
    is_complete: bool

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        return cls(**row)


class Org(BaseModel):
    """`name` is null for an org that the deployment keeps in a table of its own."""

    id: str
    name: str | None
    role: str | None


class Orgs(BaseModel):
    """By name."""

    data: list[Org]

    @classmethod
    def of(cls, rows: list[dict[str, Any]]) -> Self:
        return cls(data=[Org(**row) for row in rows])


Namespace = Annotated[str, StringConstraints(min_length=1, max_length=255), WithoutNul]
EventName = Literal["knowledge.ingest", "knowledge.retrieve", "knowledge.query", "knowledge.delete"]


class Event(BaseModel):
    """An action of a user on knowledge: counts and a score, and no text. `owner_id`: the user who owns the
    namespace, null for one of the org's. `top_score`: of the best chunk, null where there was none."""

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
