"""Synchronous ingestion: texts are cleaned, chunked, embedded and stored, as the caller."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from shared.access.concurrent_ingestion_limit import UNGUARDED, Guard
from shared.clients.postgrest import Database
from shared.errors import EmbeddingFailed, InvalidRequest, error_details
from shared.ingestion.chunking.chunked_document import (
    DEFAULT_CHUNKING,
    ChunkedDocument,
    ChunkingConfig,
    chunk_document,
)
from shared.ingestion.chunking.strategy import ChunkingPlan
from shared.ingestion.filter_fields import fields_of
from shared.models.embedding_roles import Role
from shared.models.embeddings import EMBEDDED_AT_ONCE, Embedder, embed
from shared.text.normalize import clean, clean_line, is_blank
from shared.types import PrincipalSource

# Chunks of one call, a megabyte or two. A document may have more.
CHUNKS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to store, in the caller's only org, or the token's.

    With an `external_id` it replaces the document of that name; a private and a shared document may have the
    same name. The owner and the org's admins see a private document. A `uri` is http(s).
    """

    title: str
    text: str
    external_id: str | None = None
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

    def fields(self) -> dict[str, Any]:
        """The columns that searches filter by; missing fields are filled from the metadata."""
        fields = {name: getattr(self, name) or value for name, value in fields_of(self.metadata).items()}
        if self.occurred_at:
            fields["occurred_at"] = self.occurred_at.isoformat()
        return fields


@dataclass(frozen=True, slots=True)
class StoredDocument:
    document_id: str
    chunks: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "StoredDocument":
        return cls(row["document_id"], row["chunk_count"])


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
) -> list[StoredDocument | None]:
    """Store documents of different external_ids in one collection, which is created if it is new. They are
    searchable at once. Returns the results in order. `only_present` skips documents that do not exist, with
    the result None, and raises NotFound for a new collection. A transaction stores some hundred chunks: after
    an error the first documents may be stored, and the others are unchanged.

    Raises InvalidRequest for an empty text or code in an unknown language, EmbeddingFailed or another
    RagError.
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
) -> list[StoredDocument | None]:
    """The second half of ingest_many, for the rows of chunk_and_embed."""
    stored: list[StoredDocument | None] = []
    for together in _by_chunks(rows) or [[]]:
        arguments = {"collection": collection, "documents": together, "only_present": only_present}
        rows_stored = database.call(caller, "rag_put_documents", arguments, long_timeout=True)
        by_number = {row["number"]: StoredDocument.of(row) for row in rows_stored}
        stored += [by_number.get(number) for number in range(1, len(together) + 1)]
    return stored


def chunk_and_embed(
    embedder: Embedder,
    documents: Sequence[NewDocument],
    config: ChunkingConfig = DEFAULT_CHUNKING,
    guard: Guard = UNGUARDED,
) -> list[dict[str, Any]]:
    """The documents' rows with their chunks, which are embedded together. Raises InvalidRequest with the
    document's number, EmbeddingFailed and the guard's errors."""
    guard.admit(sum(len(document.text.encode("utf-8", "surrogatepass")) for document in documents))
    prepared = [
        _chunked(embedder, document, number, config, guard.poll_client)
        for number, document in enumerate(documents)
    ]
    passages = [passage for _, chunked in prepared for passage in chunked.passages]
    places = [
        (number, row["title"], index + 1)
        for number, (row, chunked) in enumerate(prepared)
        for index in range(len(chunked.passages))
    ]
    vectors = _embedded(embedder, passages, places, guard.require_client)
    return [
        {**row, "chunks": chunked.rows(list(islice(vectors, len(chunked.chunks))))}
        for row, chunked in prepared
    ]


def _embedded(
    embedder: Embedder,
    passages: Sequence[str],
    places: Sequence[tuple[int, str, int]],
    require_client: Callable[[], None],
) -> Iterator[list[float]]:
    """`places`: of each passage the document's number and title, and its own number in it."""
    vectors: list[list[float]] = []
    for start in range(0, len(passages), EMBEDDED_AT_ONCE):
        require_client()
        try:
            vectors += embed(
                embedder, passages[start : start + EMBEDDED_AT_ONCE], Role.DOCUMENT, background=True
            )
        except EmbeddingFailed as error:
            if error.text is None:
                raise
            document, title, number = places[start + error.text]
            with error_details(document=document):
                raise error.of_passage(title, number) from error
    require_client()
    return iter(vectors)


def _chunked(
    embedder: Embedder, document: NewDocument, number: int, config: ChunkingConfig, check: Callable[[], None]
) -> tuple[dict[str, Any], ChunkedDocument]:
    """The document's row, and its chunks, which are still to be embedded."""
    fields = document.fields()
    text, title = clean(document.text), clean_line(document.title)
    if is_blank(title) or is_blank(text):
        raise InvalidRequest(
            "A document needs a title and some text. Send both.", details={"document": number}
        )
    with error_details(document=number):
        # Only by the metadata: retrieval quality was measured this way.
        plan = ChunkingPlan.of(document.metadata)
        chunked = chunk_document(embedder, title, text, fields["lang"], config, plan=plan, check=check)
    row = {
        **fields,
        "source_type": fields["source_type"] or "doc",
        "external_id": document.external_id,
        "private": document.private,
        "title": title,
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
