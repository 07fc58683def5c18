"""A load's rows on their way into the database: a collection without a name, its documents a page at a time,
and in the end the name; or nothing of it."""

import logging
from collections.abc import Iterable
from typing import Any

from shared.clients.postgrest import Database
from shared.documents.snapshots.jsonl import Chunk, Document
from shared.documents.snapshots.manifest import Manifest
from shared.errors import RagError, error_details
from shared.ingestion.entity_rows import is_graphed, names_of
from shared.ingestion.ingest import CHUNKS_AT_ONCE
from shared.types import PrincipalSource

log = logging.getLogger("rag")
Row = dict[str, Any]
# Of a document that has more than fit in with others.
MORE_CHUNKS_AT_ONCE = 1000
BYTES_AT_ONCE = 4 << 20


class Loading:
    """One load."""

    def __init__(self, database: Database, caller: PrincipalSource, index: str, overwrite: bool) -> None:
        """Raises what says that this caller may not load under this name."""
        self._database = database
        self._caller = caller
        self._index = index
        self._overwrite = overwrite
        self._collection: str | None = None
        self._model: str | None = None
        self._graphed = True
        checked = self._ask("rag_check_load", name=index, overwrite=overwrite)
        self.org_id: str = checked["org_id"]
        self._left_behind: list[str] = checked["left_behind"]
        # What is to be sent: documents with their chunks, and chunks of a document that is there.
        self._documents: list[Row] = []
        self._chunks = self._bytes = self._loaded = 0
        self._open: str | None = None
        self._latest: Document | None = None
        self._more: list[Row] = []
        self._missing = 0

    def begin(self, manifest: Manifest) -> None:
        """Make the collection, and delete what loads of this org have left that broke off long ago."""
        self._delete(self._left_behind)
        self._model = manifest.embedding_model
        self._graphed = is_graphed(manifest.collection.get("config"))
        self._collection = self._ask(
            "rag_begin_load",
            name=self._index,
            overwrite=self._overwrite,
            documents=manifest.documents,
            collection=manifest.collection,
        )

    def take(self, record: Document | Chunk) -> None:
        if isinstance(record, Chunk):
            self._take_chunk(record)
            return
        chunks = min(record.chunks, CHUNKS_AT_ONCE)
        size = len(record.content)
        if (
            self._chunks + chunks > CHUNKS_AT_ONCE
            or self._bytes + size > BYTES_AT_ONCE
            or len(self._documents) == CHUNKS_AT_ONCE
        ):
            self._send()
        self._documents.append(_row(record))
        self._latest, self._missing = record, record.chunks
        self._chunks += chunks
        self._bytes += size

    def finish(self) -> None:
        self._send()
        self._ask("rag_finish_load", collection_id=self._collection, overwrite=self._overwrite)

    def abandon(self) -> None:
        """Delete what was loaded; what cannot be deleted now, the next load deletes."""
        if self._collection:
            self._delete([self._collection])

    def _take_chunk(self, chunk: Chunk) -> None:
        self._missing -= 1
        if self._documents and len(self._documents[-1]["chunks"]) == CHUNKS_AT_ONCE:
            self._open = self._send()
        if self._documents:
            self._documents[-1]["chunks"].append(chunk.row())
            return
        self._more.append(chunk.row())
        if self._latest and (len(self._more) == MORE_CHUNKS_AT_ONCE or not self._missing):
            self._ask(
                "rag_load_chunks",
                collection_id=self._collection,
                document_id=self._open,
                chunks=self._named(self._latest.title, self._latest.content, self._more),
                embedding_model=self._model,
                last=not self._missing,
            )
            self._more = []

    def _send(self) -> str | None:
        """The id of the last of the documents that were to be sent."""
        if not self._documents:
            return None
        for document in self._documents:
            document["chunks"] = self._named(document["title"], document["content"], document["chunks"])
        stored = self._ask(
            "rag_load_documents",
            collection_id=self._collection,
            documents=self._documents,
            first=self._loaded,
        )
        self._loaded += len(self._documents)
        self._documents, self._chunks, self._bytes = [], 0, 0
        return str(max(stored, key=lambda row: row["place"])["document_id"])

    def _named(self, title: str, text: str, chunks: list[Row]) -> list[Row]:
        """The chunks with the names in them. A snapshot holds no names: they are read from the texts."""
        texts = [text[chunk["span_start"] : chunk["span_end"]] for chunk in chunks]
        named = names_of(title, texts) if self._graphed else None
        if named is None:
            return chunks
        return [{**chunk, **names} for chunk, names in zip(chunks, named, strict=True)]

    def _delete(self, collections: Iterable[str]) -> None:
        for collection in collections:
            try:
                while self._ask("rag_cancel_load", collection_id=collection):
                    pass
            except RagError as error:
                log.warning("a load was left behind: %s", error.because)

    def _ask(self, function: str, **arguments: Any) -> Any:
        with error_details(name=self._index):
            return self._database.call(self._caller, function, arguments, patient=True)


def _row(document: Document) -> Row:
    """As the database takes it, with its chunks to come."""
    return {**document.model_dump(exclude={"name", "chunks"}), "external_id": document.name, "chunks": []}
