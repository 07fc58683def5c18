"""Synchronous ingestion: texts are cleaned, chunked, embedded, and stored in one transaction.

It writes as the caller, so row security checks every row.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

from shared.access.concurrency_limit import UNGUARDED, Guard
from shared.clients.postgrest import Database
from shared.errors import InvalidRequest, error_details
from shared.ingestion.chunking.passages import (
    DEFAULT_CHUNKING,
    ChunkedDocument,
    ChunkingConfig,
    chunk_document,
)
from shared.ingestion.chunking.strategy import Plan
from shared.ingestion.metadata_fields import Fields
from shared.models.embeddings import EMBEDDED_AT_ONCE, Embedder, embed
from shared.text.normalize import clean, clean_line, is_blank
from shared.types import Principal, PrincipalSource

# How many chunks travel in one call, unless a document has more: a megabyte or two.
CHUNKS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to store.

    With an `external_id` it replaces what was stored under that name before; a private and a shared one of
    the same name are two. A private document is seen by its owner and the org's admins. A `uri` is http(s).
    Of many that are stored together none names an org: it is the caller's only one, or the token's.
    """

    org_id: str | None
    title: str
    text: str
    external_id: str | None = None
    collection: str = "default"
    private: bool = False
    source_type: str | None = None
    uri: str | None = None
    lang: str | None = None
    occurred_at: datetime | None = None
    origin: str | None = None
    author: str | None = None
    state: str | None = None
    labels: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)

    def with_fields_of_metadata(self) -> "NewDocument":
        """The same with the fields that are not set filled from the metadata."""
        fields = Fields.of(self.metadata)
        return replace(self, **{name: getattr(self, name) or value for name, value in fields.named().items()})


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of storing a document."""

    document_id: str
    replaced: bool
    chunks: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Stored":
        return cls(row["document_id"], row["replaced"], row["chunk_count"])


def ingest(database: Database, embedder: Embedder, caller: Principal, document: NewDocument) -> Stored:
    """Store a document, or replace the one of the same external_id; searchable when this returns.

    Raises InvalidRequest for a text with nothing to read or code in no known language, NotFound for an org
    that is not the caller's, EmbeddingFailed, or another RagError; whatever it raises, what was there before
    is untouched.
    """
    (row,) = chunk_and_embed(embedder, [document])
    chunks = row.pop("chunks")
    own = {"org_id": document.org_id, "collection": document.collection}
    arguments = {"document": {**row, **own}, "chunks": chunks}
    (stored,) = database.call(caller, "rag_put_document", arguments, patient=True)
    return Stored.of(stored)


def ingest_many(
    database: Database,
    embedder: Embedder,
    caller: PrincipalSource,
    collection: str,
    documents: Sequence[NewDocument],
    *,
    config: ChunkingConfig = DEFAULT_CHUNKING,
    only_present: bool = False,
    guard: Guard = UNGUARDED,
) -> list[Stored | None]:
    """The same for many of different external_ids, in one collection of the caller's only org, or of the
    token's; the result of each, in order. A new collection is created. With `only_present` documents that do
    not exist are skipped, and their result is None; a collection that does not exist is NotFound.

    A transaction stores some hundred chunks: after an error the first documents may be stored.
    """
    rows = chunk_and_embed(embedder, documents, config, guard)
    return store_many(database, caller, collection, rows, only_present=only_present)


def store_many(
    database: Database,
    caller: PrincipalSource,
    collection: str,
    rows: Sequence[dict[str, Any]],
    *,
    only_present: bool = False,
) -> list[Stored | None]:
    """The second half of ingest_many, for the rows of chunk_and_embed."""
    stored: list[Stored | None] = []
    for together in _by_chunks(rows) or [[]]:
        arguments = {"collection": collection, "documents": together, "only_present": only_present}
        with error_details(name=collection):
            rows_stored = database.call(caller, "rag_put_documents", arguments, patient=True)
        by_place = {row["place"]: Stored.of(row) for row in rows_stored}
        stored += [by_place.get(place) for place in range(1, len(together) + 1)]
    return stored


def chunk_and_embed(
    embedder: Embedder,
    documents: Sequence[NewDocument],
    config: ChunkingConfig = DEFAULT_CHUNKING,
    guard: Guard = UNGUARDED,
) -> list[dict[str, Any]]:
    """The documents' rows, each with its chunks; all are embedded together. Raises InvalidRequest with the
    document's number, EmbeddingFailed, and the guard's errors."""
    guard.admit(sum(len(document.text.encode("utf-8", "surrogatepass")) for document in documents))
    prepared = []
    for number, document in enumerate(documents):
        guard.require_client()
        prepared.append(_chunked(embedder, document, number, config, guard.poll_client))
    passages = [passage for _, chunked in prepared for passage in chunked.passages]
    vectors = _embedded(embedder, passages, guard.require_client)
    return [
        {**row, "chunks": chunked.rows(list(islice(vectors, len(chunked.chunks))))}
        for row, chunked in prepared
    ]


def _embedded(
    embedder: Embedder, passages: Sequence[str], require_client: Callable[[], None]
) -> Iterator[list[float]]:
    vectors: list[list[float]] = []
    for start in range(0, len(passages), EMBEDDED_AT_ONCE):
        require_client()
        vectors += embed(embedder, passages[start : start + EMBEDDED_AT_ONCE], background=True)
    require_client()
    return iter(vectors)


def _chunked(
    embedder: Embedder,
    document: NewDocument,
    number: int,
    config: ChunkingConfig,
    check: Callable[[], None],
) -> tuple[dict[str, Any], ChunkedDocument]:
    """The document's row, and its chunks, which are still to be embedded."""
    document = document.with_fields_of_metadata()
    text, title = clean(document.text), clean_line(document.title)
    if is_blank(title) or is_blank(text):
        raise InvalidRequest("A document needs a title and some text.", details={"document": number})
    with error_details(document=number):
        # The plan follows the metadata alone: how well documents are found was measured so.
        plan = Plan.of(document.metadata)
        chunked = chunk_document(embedder, title, text, document.lang, config, plan=plan, check=check)
    row = {
        "external_id": document.external_id,
        "private": document.private,
        "source_type": document.source_type or "doc",
        "title": title,
        "uri": document.uri,
        "lang": document.lang,
        "occurred_at": document.occurred_at.isoformat() if document.occurred_at else None,
        "origin": document.origin,
        "author": document.author,
        "state": document.state,
        "labels": document.labels,
        "metadata": document.metadata,
        "content": text,
        "embedding_model": embedder.model,
    }
    return row, chunked


def _by_chunks(rows: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows in order, in groups of at most CHUNKS_AT_ONCE chunks."""
    groups: list[list[dict[str, Any]]] = []
    room = 0
    for row in rows:
        if len(row["chunks"]) > room or not groups:
            groups.append([])
            room = CHUNKS_AT_ONCE
        groups[-1].append(row)
        room -= len(row["chunks"])
    return groups


def delete(database: Database, caller: Principal, document_id: str) -> bool:
    """Delete a document and its chunks at once; False when the caller has no such document."""
    return bool(database.call(caller, "rag_delete_document", {"document_id": document_id}))
