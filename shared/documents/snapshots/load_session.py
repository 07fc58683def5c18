"""Database calls of a load: a collection without a name, its documents in batches, its name."""

from collections.abc import Iterable
from typing import Any

from shared.clients.postgrest import Database
from shared.documents.snapshots.jsonl import SnapshotChunk, SnapshotDocument
from shared.documents.snapshots.manifest import Manifest
from shared.errors import EmbeddingFailed, SnapshotRefused, error_details, logged
from shared.ingestion.entities_of_chunks import extract_rows, is_graph_enabled
from shared.ingestion.synchronous_ingestion import CHUNKS_AT_ONCE
from shared.types import PrincipalSource, Row

# Chunks in a further batch of a document that exceeds its first batch.
MORE_CHUNKS_AT_ONCE = 1000
BYTES_AT_ONCE = 4 << 20


class LoadSession:
    def __init__(self, database: Database, caller: PrincipalSource, index: str, overwrite: bool) -> None:
        """Raises an error where the caller may not load an index of this name."""
        self._database = database
        self._caller = caller
        self._index = index
        self._overwrite = overwrite
        self._collection: str | None = None
        self._model: str | None = None
        self._graphed = True
        checked = self._call("rag_check_load", name=index, overwrite=overwrite)
        self.org_id: str = checked["org_id"]
        self._abandoned: list[str] = checked["left_behind"]
        # To be sent: documents with their chunks, and further chunks of a document in the database.
        self._documents: list[Row] = []
        self._chunks = self._bytes = self._loaded = 0
        self._document_id: str | None = None
        self._latest: SnapshotDocument | None = None
        self._further_chunks: list[Row] = []
        self._missing = 0

    def begin(self, manifest: Manifest) -> None:
        """Create the collection, and delete those of the org's loads that broke off long ago."""
        self._delete(self._abandoned)
        self._model = manifest.embedding_model
        self._graphed = is_graph_enabled(manifest.collection.get("config"))
        self._collection = self._call(
            "rag_begin_load",
            name=self._index,
            overwrite=self._overwrite,
            documents=manifest.documents,
            collection=manifest.collection,
        )

    def take(self, record: SnapshotDocument | SnapshotChunk) -> None:
        if isinstance(record, SnapshotChunk):
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
        self._call("rag_finish_load", collection_id=self._collection, overwrite=self._overwrite)

    def abandon(self) -> None:
        """Delete the loaded documents. After a failure the next load deletes them."""
        if self._collection:
            self._delete([self._collection])

    def _take_chunk(self, chunk: SnapshotChunk) -> None:
        self._missing -= 1
        if self._documents and len(self._documents[-1]["chunks"]) == CHUNKS_AT_ONCE:
            self._document_id = self._send()
        if self._documents:
            self._documents[-1]["chunks"].append(chunk.row())
            return
        self._further_chunks.append(chunk.row())
        if self._latest and (len(self._further_chunks) == MORE_CHUNKS_AT_ONCE or not self._missing):
            self._call(
                "rag_load_chunks",
                collection_id=self._collection,
                document_id=self._document_id,
                chunks=self._with_entities(self._latest.title, self._latest.content, self._further_chunks),
                embedding_model=self._model,
                last=not self._missing,
            )
            self._further_chunks = []

    def _send(self) -> str | None:
        """Send the documents. Returns the id of the last one."""
        if not self._documents:
            return None
        for document in self._documents:
            document["chunks"] = self._with_entities(
                document["title"], document["content"], document["chunks"]
            )
        stored = self._call(
            "rag_load_documents",
            collection_id=self._collection,
            documents=self._documents,
            first=self._loaded,
        )
        self._loaded += len(self._documents)
        self._documents, self._chunks, self._bytes = [], 0, 0
        return str(max(stored, key=lambda row: row["number"])["document_id"])

    def _with_entities(self, title: str, text: str, chunks: list[Row]) -> list[Row]:
        """The chunks with their entities, which a snapshot does not have."""
        texts = [text[chunk["span_start"] : chunk["span_end"]] for chunk in chunks]
        named = extract_rows(title, texts) if self._graphed else None
        if named is None:
            return chunks
        return [{**chunk, **names} for chunk, names in zip(chunks, named, strict=True)]

    def _delete(self, collections: Iterable[str]) -> None:
        for collection in collections:
            with logged("an ended load could not be deleted (%s): the next load of the index deletes it"):
                while self._call("rag_cancel_load", collection_id=collection):
                    pass

    def _call(self, function: str, **arguments: Any) -> Any:
        with error_details(name=self._index):
            try:
                return self._database.call(self._caller, function, arguments, long_timeout=True)
            except EmbeddingFailed:
                raise SnapshotRefused(
                    "The snapshot's embeddings have another number of dimensions than those of this "
                    "deployment. Index the documents again."
                ) from None


def _row(document: SnapshotDocument) -> Row:
    return {**document.model_dump(exclude={"name", "chunks"}), "external_id": document.name, "chunks": []}
