"""The API's health, its figures for admins, and the caller's orgs."""

from datetime import datetime
from typing import Any

from pydantic import Field

from mnemosyne.models.base import Model


class Health(Model):
    """`status` is healthy, degraded or unhealthy; `details` are an admin's to see."""

    status: str
    version: str
    services: dict[str, str] = Field(default_factory=dict)
    timestamp: datetime
    details: dict[str, Any] | None = None


class Stats(Model):
    """Of the orgs that the caller administers. Not complete where a table has more rows than are counted."""

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
    """`name` is None for an org that the deployment keeps in a table of its own."""

    id: str
    name: str | None = None
    role: str | None = None


class Orgs(Model):
    data: list[Org]
