"""Documents, how far they are, and links to their originals."""

from datetime import datetime
from typing import Any

from pydantic import Field

from mnemosyne.models.base import Model, Pagination


class DocumentError(Model):
    code: str
    message: str


class Document(Model):
    """`user_id` created it. `owner_id` is the one user whose document it is; None is the whole org's.
    `status` is processing, completed or failed. `error`: why, where it failed; while it is processed, why it
    did not work at once."""

    id: str
    org_id: str | None = None
    collection_id: str
    user_id: str | None = None
    owner_id: str | None = None
    title: str | None = None
    filename: str | None = None
    content_type: str | None = None
    size_bytes: int | None = None
    status: str
    error: DocumentError | None = None
    chunk_count: int = 0
    content_hash: str | None = None
    unique_identifier_hash: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    processing_info: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime
    updated_at: datetime


class Documents(Model):
    data: list[Document]
    pagination: Pagination


class DocumentStatus(Model):
    """`step` is fetching, converting, embedding or storing while the worker has it; `total_tokens` is the sum
    over its chunks; `processed_at` is None while it is processed."""

    document_id: str
    status: str
    step: str | None = None
    attempts: int
    error: DocumentError | None = None
    error_message: str | None = None
    chunk_count: int
    total_tokens: int = 0
    processing_info: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime
    updated_at: datetime
    processed_at: datetime | None = None


class DocumentLink(Model):
    """A link to the original that needs no key, and until when it works."""

    url: str
    expires_in: int | None = None
    expires_at: datetime
    filename: str | None = None
