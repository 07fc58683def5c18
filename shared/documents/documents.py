"""Documents: add, list, read, change, delete.

The worker (document_worker.py) processes added documents. Row security decides about access.
"""

import base64
import hashlib
from dataclasses import dataclass, field, replace

from shared.clients.postgrest import Database
from shared.clients.supabase_storage import Storage
from shared.errors import BodyTooLarge, InvalidRequest, NotFound
from shared.ingestion.filter_fields import fields_of
from shared.text.normalize import clean_line
from shared.types import Principal, Row

# The size limit of a file or a text, from Lambda and from originals in Postgres.
MAX_BYTES = 6 * 1024 * 1024
TOO_LARGE = (
    f"A file may have at most {MAX_BYTES // 2**20} MB here. "
    "Send a larger file with POST /documents/upload, if this deployment has storage."
)
# From this size on, the database checks the size of a file before it gets the file: to refuse a large file
# costs as much as to store it, since PostgREST parses the call's body first.
CHECKED_BYTES = 64 * 1024
TITLE_CHARACTERS, EXTERNAL_ID_CHARACTERS = 80, 500


@dataclass(frozen=True, slots=True)
class NewUpload:
    """The bytes of a file or a text (empty for an object in Storage and an address), and its fields.

    The default title is that in the file, or else its first heading or the file's name. With an
    `external_id` the upload replaces the document of that name once the worker has processed it.
    """

    data: bytes = field(repr=False)
    title: str | None = None
    filename: str | None = None
    content_type: str | None = None
    external_id: str | None = None
    private: bool = False
    metadata: Row = field(default_factory=dict)
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Original:
    """The file of a document: bytes, or the path of an object in Storage. The type is the client's."""

    data: bytes | None = field(repr=False)
    path: str | None
    filename: str
    content_type: str | None


def add(database: Database, caller: Principal, collection: str, upload: NewUpload) -> Row:
    """Add a document for the worker: its row, its original and its job in one transaction.

    Raises Conflict for bytes that the collection has already, RateLimited above the limit of the org's tier,
    NotFound for another org's collection, InvalidRequest.
    """
    if len(upload.data) > MAX_BYTES:
        raise BodyTooLarge(TOO_LARGE, code="file_too_large")
    original = {"size_bytes": len(upload.data), "bytes": base64.b64encode(upload.data).decode()}
    size = {"collection_id": collection, "size_bytes": len(upload.data)}
    check = ("rag_check_upload", size) if len(upload.data) >= CHECKED_BYTES else None
    return _add(database, caller, collection, {**_row(upload), **original}, check)


def add_from_storage(
    database: Database, caller: Principal, collection: str, upload: NewUpload, path: str, size: int
) -> Row:
    """Add a document for an object that the caller has uploaded to Storage. A repeated path is the same
    document. Raises as `add`, and NotFound for an unknown upload."""
    original = {"path": path, "size_bytes": size}
    return _add(database, caller, collection, {**_row(upload), **original})


def add_from_url(database: Database, caller: Principal, collection: str, upload: NewUpload) -> Row:
    """Add a document for an address (AddressPolicy.require_url), which the worker fetches. A repeated address
    is fetched again, and replaces its document. Raises as `add`."""
    url = upload.url or ""
    document = {
        **_row(replace(upload, filename=url, external_id=external_id_of(url))),
        **fields_of({"url": url, **upload.metadata}),
        "filename": None,
        "url": url,
    }
    return _add(database, caller, collection, document)


def title_of(title: str | None, metadata: Row) -> str | None:
    """The title, or else the title in the metadata."""
    named = metadata.get("title")
    return title or (clean_line(named)[:512] or None if isinstance(named, str) else None)


def external_id_of(name: str) -> str:
    """The name, or its digest where it is too long."""
    return name if len(name) <= EXTERNAL_ID_CHARACTERS else hashlib.sha256(name.encode()).hexdigest()


def file_name(sent: str | None) -> str:
    """The name without folders and invisible characters, of at most 512 characters."""
    name = clean_line((sent or "").replace("\\", "/").rpartition("/")[2])
    return name[-512:] or "unnamed"


def encode_text(text: str) -> bytes:
    """Raises InvalidRequest for a lone surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("content: must be valid Unicode, without lone surrogates") from None


def first_words(text: str) -> str:
    """The beginning of the first line that is not blank, as a title."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    words = " ".join(line.lstrip("#").split())
    return words if len(words) <= TITLE_CHARACTERS else words[:TITLE_CHARACTERS].rpartition(" ")[0] + " ..."


def list_documents(
    database: Database,
    caller: Principal,
    collection: str,
    limit: int,
    offset: int,
    status: str | None,
    sort_by: str,
    order: str,
    name: str | None,
) -> tuple[list[Row], int]:
    """A page of a collection's documents, and their total. `name`: part of the title or file name. Raises
    NotFound."""
    arguments = {
        "collection_id": collection,
        "limit": limit,
        "offset": offset,
        "status": status,
        "sort_by": sort_by,
        "order": order,
        "name": name,
    }
    return database.page(caller, "rag_list_documents", "documents", arguments)


def get(database: Database, caller: Principal, document: str) -> Row:
    """Raises NotFound."""
    return database.row(caller, "rag_get_document", {"document_id": document}, idempotent=True)


def read(database: Database, caller: Principal, document: str, offset: int, characters: int) -> Row:
    """`characters` of the document's text from `offset` on, with its title and length. Raises NotFound."""
    arguments = {"document_id": document, "offset": offset, "limit": characters}
    return database.row(caller, "rag_read_document", arguments, idempotent=True)


def original(database: Database, caller: Principal, document: str) -> Original:
    """The document's file. Raises NotFound for an unknown document, or one without a file."""
    rows = database.call(caller, "rag_get_original", {"document_id": document}, idempotent=True)
    if not rows or rows[0]["bytes"] is rows[0]["path"] is None:
        raise _no_original(document_id=document)
    (row,) = rows
    name = row["filename"] or (row["url"] or "").rstrip("/").rpartition("/")[2] or "original"
    data = None if row["bytes"] is None else base64.b64decode(row["bytes"])
    return Original(data, row["path"], file_name(name), row["content_type"])


def object_link(storage: Storage, caller: Principal, original: Original) -> str:
    """A download link to the object, for a minute. Raises NotFound, StorageFailed."""
    try:
        return storage.download_link(caller, original.path or "", original.filename)
    except NotFound:
        raise _no_original() from None


def update(
    database: Database, caller: Principal, document: str, title: str | None, metadata: Row | None
) -> Row:
    """Change title and metadata; None leaves a value as it is. The metadata are replaced, and set the fields,
    and the title where none is given. Raises NotFound, InvalidRequest."""
    changes: Row = {"title": title_of(title, metadata or {})}
    if metadata is not None:
        changes |= {**fields_of(metadata), "metadata": metadata}
    arguments = {"document_id": document, "changes": changes}
    return database.row(caller, "rag_update_document", arguments)


def delete(database: Database, caller: Principal, document: str) -> None:
    """Delete a document with its chunks, names and original. Raises NotFound."""
    if not database.call(caller, "rag_delete_document", {"document_id": document}, long_timeout=True):
        raise NotFound(
            "There is no such document. Check its id.",
            code="document_not_found",
            details={"document_id": document},
        )


def delete_several(database: Database, caller: Principal, ids: list[str]) -> list[str]:
    """Delete these documents in one transaction. Returns the ids of those that the caller could delete."""
    arguments = {"document_ids": ids}
    return list(database.call(caller, "rag_delete_documents", arguments, long_timeout=True))


def _add(
    database: Database,
    caller: Principal,
    collection: str,
    document: Row,
    check: tuple[str, Row] | None = None,
) -> Row:
    arguments = {"collection_id": collection, "document": document}
    return database.row(caller, "rag_add_document", arguments, long_timeout=True, check=check)


def _no_original(**details: str) -> NotFound:
    return NotFound(
        "This document has no original file. Read its text instead.",
        code="original_not_found",
        details=details,
    )


def _row(upload: NewUpload) -> Row:
    title = title_of(upload.title, upload.metadata)
    return {
        **fields_of(upload.metadata),
        "external_id": upload.external_id,
        "private": upload.private,
        "title": _title(title or upload.filename or ""),
        "has_title": title is not None,
        "metadata": upload.metadata,
        "filename": upload.filename,
        "content_type": upload.content_type,
    }


def _title(text: str) -> str:
    return clean_line(text)[:512] or "Untitled"
