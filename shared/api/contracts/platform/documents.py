"""The platform contract's wire models of documents, and what is settled beside it: uploads, links, states."""

import hashlib
import json
import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import BaseModel, Field, StringConstraints

from shared.api.contracts.platform.common import (
    Limit,
    Offset,
    Order,
    Pagination,
    WithMetadata,
    WithoutNul,
    small,
)
from shared.errors import InvalidRequest

__all__ = ["Limit", "Offset", "Order", "Pagination"]


# Of what a link leads to: neither the file nor another link to it.
NOT_KEPT = {"Cache-Control": "private, no-store"}
_CONTENT_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}(; ?charset=[\w-]{1,40})?", re.ASCII)
DocumentOrder = Literal["created_at", "title", "size_bytes"]
Status = Literal["processing", "completed", "failed"]
Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=5_000_000), WithoutNul]
Title = Annotated[
    str, StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=512), WithoutNul
]
# The caller's own name for a document, unique in its collection.
ExternalId = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500), WithoutNul]


class NewDocument(WithMetadata):
    """What is said of every document that is brought. A private one is seen by its owner and the org's
    admins."""

    collection_id: str
    title: Title | None = None
    private: Annotated[bool, Field(strict=True)] = False


class NewText(NewDocument):
    """It takes the place of the one that was brought under its `external_id` before, which is found until
    this is read."""

    content: Text
    external_id: ExternalId | None = None


class NewAddress(NewDocument):
    """A page or a file of the public internet, fetched by the worker."""

    url: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2000)]


class NewUpload(NewDocument):
    """A file that is too large for a request, before it is uploaded: the fields of POST /documents, and its
    name and size."""

    filename: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2000)]
    size_bytes: Annotated[int, Field(strict=True, ge=1, le=2**53)]
    content_type: Annotated[str, StringConstraints(strict=True, max_length=255)] | None = None
    external_id: ExternalId | None = None


class Upload(BaseModel):
    """Where the file is to be PUT, without a credential, and what POST /documents/uploaded wants afterwards;
    until when both are good."""

    upload_url: str
    upload: str
    expires_at: datetime


class Uploaded(BaseModel):
    upload: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100_000)]


class DocumentChanges(WithMetadata):
    """Null, as if it were not there, leaves a field as it is."""

    title: Title | None = None


class DocumentError(BaseModel):
    code: str
    message: str


class Document(BaseModel):
    id: str
    org_id: str
    collection_id: str
    # Who created it; and the one user whose document it is, null where it is the whole org's.
    user_id: str
    owner_id: str | None
    title: str
    filename: str | None
    content_type: str | None
    size_bytes: int | None
    status: Status
    # Why, where it failed; while it is processed, why it did not work at once.
    error: DocumentError | None
    chunk_count: int
    content_hash: str
    unique_identifier_hash: str
    metadata: dict[str, Any]
    processing_info: dict[str, Any]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        named = row["external_id"] or row["id"]
        error = {"code": row["error_code"], "message": row["error_message"]} if row["error_code"] else None
        hashes = {
            "content_hash": f"sha256:{row['content_hash']}",
            "unique_identifier_hash": f"sha256:{hashlib.sha256(named.encode()).hexdigest()}",
        }
        return cls(**{**row, "user_id": row["created_by"], "error": error, **hashes})


class Documents(BaseModel):
    data: list[Document]
    pagination: Pagination


class DocumentUrl(BaseModel):
    """A link to the original that needs no credential; for how many seconds it works, and until when."""

    url: str
    expires_in: int
    expires_at: datetime
    filename: str | None


class DocumentStatus(BaseModel):
    """The progress of a document. `step` is fetching, converting, embedding or storing while the worker has
    it; `total_tokens` is the sum over its chunks; `processed_at` is null while it is processed."""

    document_id: str
    status: Status
    step: str | None
    attempts: int
    error: DocumentError | None
    error_message: str | None
    chunk_count: int
    total_tokens: int
    processing_info: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    processed_at: datetime | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        error = Document.of(row).error
        return cls(**{**row, "document_id": row["id"], "attempts": row["attempts"] or 0, "error": error})


def parsed(metadata: str | None) -> dict[str, Any]:
    """The metadata of a form, which come as JSON text. Raises InvalidRequest."""
    try:
        found = json.loads(metadata) if metadata else {}
        if not isinstance(found, dict):
            raise ValueError("must be an object")
        return small(found) or {}
    except (ValueError, RecursionError):
        raise InvalidRequest(
            "metadata: must be a JSON object of at most 10 KB",
            details={"field": "metadata", "missing": False},
        ) from None


def of_a_stranger(filename: str, content_type: str | None) -> dict[str, str]:
    """Headers for a file that somebody has brought: kept by who asked, and nothing for a browser to run."""
    said = content_type if _CONTENT_TYPE.fullmatch(content_type or "") else "application/octet-stream"
    return {
        "Content-Type": said or "",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(filename, safe='')}",
        "Content-Security-Policy": "sandbox",
        "X-Content-Type-Options": "nosniff",
        **NOT_KEPT,
    }
