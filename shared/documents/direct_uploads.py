"""Uploads of large files to Storage by a signed URL.

Between the two calls the database only knows that it expects an upload (sql/40_storage). The client
keeps the file's fields in a signed ticket for the user, the collection and the path.
"""

import re
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from shared.access.token_signer import BadSignature, Signer
from shared.clients.postgrest import Database
from shared.clients.supabase_storage import MAX_BYTES, Storage
from shared.documents.documents import NewUpload, add_from_storage, file_name
from shared.errors import BodyTooLarge, InvalidRequest, NotFound
from shared.ingestion.file_type import require_readable
from shared.text.normalize import clean_line
from shared.types import Principal, Row

# The purpose that a ticket is signed for, with the version of its format.
PURPOSE = "uploads of originals, 2"


@dataclass(frozen=True, slots=True)
class _Ticket:
    """`expires_at`: a Unix timestamp."""

    path: str
    expires_at: float
    collection_id: str
    upload: NewUpload
    content_hash: str | None


@dataclass(frozen=True, slots=True)
class Uploads:
    database: Database
    storage: Storage
    signer: Signer

    def begin(
        self,
        caller: Principal,
        collection_id: str,
        size_bytes: int,
        upload: NewUpload,
        content_hash: str | None = None,
    ) -> Row:
        """`upload_url` for the PUT request, `upload`, the ticket for `finish`, and `expires_at` of both.
        Raises NotFound for another org's collection, BodyTooLarge, UnsupportedFileType, Forbidden,
        StorageFailed."""
        _require_size(size_bytes)
        name = file_name(upload.filename)
        require_readable(name)
        arguments = {"collection_id": collection_id, "name": safe_name(name), "size_bytes": size_bytes}
        (row,) = self.database.call(caller, "rag_begin_upload", arguments)
        expires = datetime.fromisoformat(row["expires_at"])
        link = self.storage.upload_link(caller, row["path"])
        content_type = clean_line(upload.content_type or "") or None
        fields = asdict(replace(upload, filename=name, content_type=content_type))
        del fields["data"]
        ticket = [caller.user_id, row["path"], expires.timestamp(), collection_id, fields, content_hash]
        signed = self.signer.sign(PURPOSE, ticket)
        return {"upload_url": link, "upload": signed, "expires_at": expires}

    def idempotent_content(self, caller: Principal, ticket: str) -> tuple[str, list[Any]]:
        """The collection of a ticket, which may be expired, and a value that is equal for repeated uploads of
        the same file: without a content hash only for the same path. Raises InvalidRequest, NotFound."""
        parsed = self._parsed(caller, ticket)
        return parsed.collection_id, [parsed.upload, parsed.content_hash or parsed.path]

    def finish(self, caller: Principal, ticket: str) -> Row:
        """The document, the same for a repeated ticket. Raises InvalidRequest for an invalid or expired
        ticket, NotFound for another user's ticket or a missing object, BodyTooLarge, and as documents.add."""
        parsed = self._parsed(caller, ticket)
        if parsed.expires_at < time.time():
            raise InvalidRequest("The upload has expired. Begin it again.", code="upload_expired")
        try:
            size = self.storage.size_of(caller, parsed.path)
        except NotFound:
            raise _not_found() from None
        _require_size(size)
        return add_from_storage(self.database, caller, parsed.collection_id, parsed.upload, parsed.path, size)

    def _parsed(self, caller: Principal, ticket: str) -> _Ticket:
        try:
            user_id, path, expires, collection_id, fields, content_hash = self.signer.verified(
                PURPOSE, ticket
            )
        except BadSignature:
            raise InvalidRequest(
                "The ticket of the upload is not valid. Begin the upload again.", code="invalid_upload"
            ) from None
        if user_id != caller.user_id:
            raise _not_found()
        return _Ticket(path, expires, collection_id, NewUpload(b"", **fields), content_hash)


def safe_name(name: str) -> str:
    """The name in characters that every store and URL accepts."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", name)
    stem, dot, end = safe.rpartition(".")
    # A long name keeps its extension, by which the type is detected.
    safe = f"{stem[: 99 - len(end)]}.{end}" if dot and len(end) <= 20 else safe[:100]
    return re.sub(r"^[^A-Za-z0-9_]+", "", safe) or "file"


def _not_found() -> NotFound:
    return NotFound("There is no such upload. Check its id, or begin another.", code="upload_not_found")


def _require_size(size: int) -> None:
    if size > MAX_BYTES:
        message = f"A file may have at most {MAX_BYTES // 2**20} MB. Divide it, and upload the parts."
        raise BodyTooLarge(message, code="file_too_large")
