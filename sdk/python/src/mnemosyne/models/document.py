"""Documents, their progress, and links to their originals."""

from datetime import datetime
from typing import Any

from pydantic import Field

from mnemosyne.models.base import Model, Pagination


class DocumentError(Model):
    code: str
    message: str


class Document(Model):
    """`user_id` created it. `owner_id` is the one user who owns it; None for the whole org. `status` is
    processing, completed or failed. `error`: the reason of the failure, or of the last failed attempt while
    it is processed."""

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
    notes: list[str] = Field(default_factory=list)
    created_at: datetime
    updated_at: datetime


class UploadTicket(Model):
    """`upload_url` takes the file without a key; `upload` identifies the uploaded file."""

    upload_url: str = Field(repr=False)
    upload: str = Field(repr=False)


class Documents(Model):
    data: list[Document]
    pagination: Pagination


class DocumentStatus(Model):
    """`step` is fetching, converting, embedding or storing while the worker processes it; `total_tokens` is
    the sum over its chunks; `processed_at` is None until then; `notes` says what of the file is not in its
    text."""

    document_id: str
    status: str
    step: str | None = None
    attempts: int
    error: DocumentError | None = None
    error_message: str | None = None
    chunk_count: int
    total_tokens: int = 0
    processing_info: dict[str, Any] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
    created_at: datetime
    updated_at: datetime
    processed_at: datetime | None = None


class DocumentLink(Model):
    """A link to the original, valid without a key until `expires_at`."""

    url: str
    expires_in: int | None = None
    expires_at: datetime
    filename: str | None = None
