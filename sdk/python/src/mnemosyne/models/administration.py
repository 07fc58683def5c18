"""Health, statistics and audit events of the API, and the caller's orgs."""

from datetime import datetime
from typing import Any

from pydantic import Field

from mnemosyne.models.base import Model, Pagination


class Health(Model):
    """`status` is healthy, degraded or unhealthy. `problem`: of the database, with the way out. `orgs` is the
    number of the caller's orgs; only admins get `details`."""

    status: str
    version: str
    services: dict[str, str] = Field(default_factory=dict)
    problem: str | None = None
    timestamp: datetime
    orgs: int | None = None
    details: dict[str, Any] | None = None


class Stats(Model):
    """Totals of the caller's orgs as an admin, incomplete if a table has more rows than are counted."""

    total_users: int
    total_collections: int
    total_documents: int
    total_chunks: int
    total_entities: int
    total_relationships: int
    storage_used_bytes: int
    api_calls_today: int
    is_complete: bool | None = None


class Org(Model):
    """`name` is None for an org of the deployment's own table."""

    id: str
    name: str | None = None
    role: str | None = None


class Orgs(Model):
    data: list[Org]


class AuditEvent(Model):
    """An action of a user on knowledge. `owner_id`: the user who owns the namespace; None for the org's."""

    id: str
    org_id: str
    owner_id: str | None = None
    user_id: str
    event: str
    namespace: str
    collection_id: str | None = None
    document_count: int
    chunk_count: int
    top_score: float | None = None
    created_at: datetime


class AuditEvents(Model):
    data: list[AuditEvent]
    pagination: Pagination
