"""Wire models of documents: uploads, links, states."""

import hashlib
import json
import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import BaseModel, Field, StringConstraints

from shared.access.download_links import MAX_LIFETIME_SECONDS
from shared.api.contracts.metadata import WithMetadata, check_metadata
from shared.api.contracts.platform.pagination import Page
from shared.api.contracts.shared_fields import (
    Composed,
    DocumentName,
    Flag,
    Notes,
    ResponseModel,
    WithoutNul,
    stripped,
)
from shared.errors import InvalidRequest

# Headers of a file's response, and of a redirect to the file.
NO_STORE = {"Cache-Control": "private, no-store"}
_CONTENT_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}(; ?charset=[\w-]{1,40})?", re.ASCII)
# The lifetime of a link, in seconds.
Lifetime = Annotated[int, Field(ge=1, le=MAX_LIFETIME_SECONDS)]
DocumentOrder = Literal["created_at", "title", "size_bytes"]
Status = Literal["processing", "completed", "failed"]
Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=5_000_000), WithoutNul]
Title = Annotated[str, stripped(512), WithoutNul, Composed]
# The client's name for a document, unique in its collection.
ExternalId = DocumentName
# A part of the title or the file name.
NamePart = Annotated[str, StringConstraints(min_length=1, max_length=200), WithoutNul, Composed]


class NewDocument(WithMetadata):
    """Common fields of a new document. Only its owner and the org's admins see a private one."""

    collection_id: str
    title: Title | None = None
    private: Flag = False


class NewText(NewDocument):
    """It replaces the document with its `external_id`, which remains searchable until then."""

    content: Text
    external_id: ExternalId | None = None


class NewUrlDocument(NewDocument):
    """A page or file of the public internet, which the worker downloads."""

    url: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2000)]


class NewUpload(NewDocument):
    """A direct upload of a large file: the fields of POST /documents with the file's name and size.
    `content_hash`: by it an Idempotency-Key recognizes a repeated upload of the same file."""

    filename: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2000)]
    size_bytes: Annotated[int, Field(strict=True, ge=1, le=2**53)]
    content_type: Annotated[str, StringConstraints(strict=True, max_length=255)] | None = None
    external_id: ExternalId | None = None
    content_hash: Annotated[str, StringConstraints(strict=True, pattern="^sha256:[0-9a-f]{64}$")] | None = (
        None
    )


class Upload(BaseModel):
    """`upload_url`: the address for a PUT of the file, without a credential; `upload`: the ticket for POST
    /documents/uploaded. Both expire at `expires_at`."""

    upload_url: str
    upload: str
    expires_at: datetime


class UploadTicket(BaseModel):
    upload: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100_000)]


class DocumentChanges(WithMetadata):
    """Null leaves a field unchanged."""

    title: Title | None = None


class DocumentError(BaseModel):
    code: str
    message: str


def error_of(row: dict[str, Any]) -> dict[str, str] | None:
    """The error in a row, None without one."""
    return {"code": row["error_code"], "message": row["error_message"]} if row["error_code"] else None


class Document(BaseModel):
    id: str
    org_id: str
    collection_id: str
    # The creator; and the owner of a private document, null for the org's.
    user_id: str
    owner_id: str | None
    title: str
    filename: str | None
    content_type: str | None
    size_bytes: int | None
    status: Status
    # The last error, also while the worker retries.
    error: DocumentError | None
    chunk_count: int
    content_hash: str
    unique_identifier_hash: str
    metadata: dict[str, Any]
    processing_info: dict[str, Any]
    # What of the file is not in the document's text.
    notes: Notes
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        name = row["external_id"] or row["id"]
        hashes = {
            "content_hash": f"sha256:{row['content_hash']}",
            "unique_identifier_hash": f"sha256:{hashlib.sha256(name.encode()).hexdigest()}",
        }
        fields = {"user_id": row["created_by"], "error": error_of(row), "notes": notes_of(row), **hashes}
        return cls(**{**row, **fields})


class Documents(Page[Document]):
    pass


class DocumentIds(BaseModel):
    document_ids: Annotated[list[str], Field(min_length=1, max_length=100)]


class DeletedDocuments(ResponseModel):
    """The documents that were deleted. Ids of other orgs, and unknown ones, are not among them."""

    document_ids: list[str]


class DocumentUrl(BaseModel):
    """A link to the original without a credential. `expires_in`: seconds."""

    url: str
    expires_in: int
    expires_at: datetime
    filename: str | None


class ProcessingStatus(BaseModel):
    """`step`: fetching, converting, embedding or storing during processing; `total_tokens`: the sum over the
    chunks; `processed_at`: null during processing; `notes`: what of the file is not in the text."""

    document_id: str
    status: Status
    step: str | None
    attempts: int
    error: DocumentError | None
    error_message: str | None
    chunk_count: int
    total_tokens: int
    processing_info: dict[str, Any]
    notes: Notes
    created_at: datetime
    updated_at: datetime
    processed_at: datetime | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        fields = {"document_id": row["id"], "attempts": row["attempts"] or 0, "error": error_of(row)}
        return cls(**{**row, **fields, "notes": notes_of(row)})


def notes_of(row: dict[str, Any]) -> Any:
    return row["processing_info"].get("notes")


def parse_metadata(metadata: str | None) -> dict[str, Any]:
    """The metadata field of a form, JSON text. Raises InvalidRequest."""
    try:
        value = json.loads(metadata) if metadata else {}
        if not isinstance(value, dict):
            raise ValueError
        return check_metadata(value) or {}
    except (ValueError, RecursionError):
        raise InvalidRequest(
            "metadata: must be a JSON object of at most 10 KB",
            details={"field": "metadata", "missing": False},
        ) from None


def download_headers(filename: str, content_type: str | None) -> dict[str, str]:
    """Headers of an untrusted file: no shared cache keeps it, and no browser executes it."""
    safe_type = content_type if _CONTENT_TYPE.fullmatch(content_type or "") else "application/octet-stream"
    return {
        "Content-Type": safe_type or "",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(filename, safe='')}",
        "Content-Security-Policy": "sandbox",
        "X-Content-Type-Options": "nosniff",
        **NO_STORE,
    }
