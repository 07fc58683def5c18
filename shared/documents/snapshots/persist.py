"""Export of an index as a snapshot: all documents that the org sees, read in pages as the caller.

Each document is consistent, as of some moment of the export.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.clients.postgrest import Database
from shared.clients.snapshot_paths import DATA, DEFAULT, directory_of, segments_of
from shared.clients.snapshot_store import SnapshotFolder, Store
from shared.documents.snapshots.jsonl import Writer, new_data_name
from shared.documents.snapshots.manifest import Manifest
from shared.errors import Conflict, error_details
from shared.types import PrincipalSource, Row

# An older data file without a manifest is of an export that broke off. No export takes as long.
ABANDONED_AFTER = timedelta(days=1)
CHANGED = "A document changed while it was persisted. Please try again."


class IndexReader:
    def __init__(self, database: Database, caller: PrincipalSource, index: str) -> None:
        """Raises NotFound, InvalidRequest for a private collection, and Forbidden."""
        self._database = database
        self._caller = caller
        with error_details(name=index):
            self.collection: Row = self._call("rag_begin_snapshot", name=index)

    def documents(self) -> Iterator[tuple[Row, Iterator[Row]]]:
        """Each document with its chunks, which must be consumed before the next document. Raises Conflict for
        a document of many chunks that changes meanwhile."""
        for listed in self._listed():
            rest = listed
            # The maximum size of a response may leave a rest.
            while rest and (rows := self._of("rag_read_snapshot_documents", document_ids=rest)):
                for document in rows:
                    yield self._whole(document), self._chunks(document)
                rest = rest[rest.index(rows[-1]["id"]) + 1 :]

    def _whole(self, document: Row) -> Row:
        length, texts = document.pop("length"), [document["content"]]
        count = len(texts[0])
        while count < length:
            rows = self._of(
                "rag_read_snapshot_documents", document_ids=[document["id"]], first_character=count
            )
            if not rows or rows[0]["updated_at"] != document["updated_at"]:
                raise Conflict(CHANGED)
            texts.append(rows[0]["content"])
            count += len(texts[-1])
        document["content"] = "".join(texts)
        return document

    def _chunks(self, document: Row) -> Iterator[Row]:
        chunks: list[Row] = document.pop("chunks")
        yield from chunks
        count = len(chunks)
        while count < document["chunk_count"]:
            arguments = {"document_id": document["id"], "updated_at": document["updated_at"], "first": count}
            chunks = self._of("rag_read_snapshot_chunks", **arguments)
            if not chunks:
                raise Conflict(CHANGED)
            yield from chunks
            count += len(chunks)

    def _listed(self) -> Iterator[list[str]]:
        after: Row = {}
        while page := self._of("rag_snapshot_documents", **after):
            yield [row["id"] for row in page]
            after = {"after_created_at": page[-1]["created_at"], "after_id": page[-1]["id"]}

    def _of(self, function: str, **arguments: Any) -> list[Row]:
        rows: list[Row] = self._call(function, collection_id=self.collection["collection_id"], **arguments)
        return rows

    def _call(self, function: str, **arguments: Any) -> Any:
        return self._database.call(self._caller, function, arguments, idempotent=True, long_timeout=True)


def persist(
    database: Database, store: Store, caller: PrincipalSource, index: str, path: str = DEFAULT
) -> str:
    """Persist an index. Returns the path of the snapshot. An older snapshot is replaced at the end.

    Raises NotFound, InvalidRequest for a private index or a path outside the org's folder, Conflict for an
    index of several embedding models, SnapshotFailed, and the errors of the database's calls.
    """
    directory = directory_of(index)
    segments = (*segments_of(path), directory)
    reading = IndexReader(database, caller, index)
    folder = store.folder(reading.collection["org_id"], segments)
    before = folder.manifest()
    name = new_data_name()
    with folder.writing(name) as file:
        writer = Writer(file)
        model = _write(writer, reading)
        data = writer.close(name)
    try:
        manifest = Manifest(
            index_name=index,
            collection={field: reading.collection[field] for field in ("description", "metadata", "config")},
            embedding_model=model,
            documents=writer.documents,
            chunks=writer.chunks,
            created_at=datetime.now(UTC).isoformat(),
            data=data,
        )
        folder.replace_manifest(manifest.to_bytes())
    except BaseException:
        folder.remove(name)
        raise
    _remove_old_data(folder, before, name)
    return f"{path.removesuffix('/')}/{directory}"


def _write(writer: Writer, reading: IndexReader) -> str | None:
    """The embedding model of all chunks; None without chunks."""
    models: set[str] = set()
    for document, chunks in reading.documents():
        fields = {
            name: value for name, value in document.items() if name not in ("id", "chunk_count", "chunks")
        }
        writer.document({**fields, "chunks": document["chunk_count"]})
        for chunk in chunks:
            writer.chunk(chunk)
        models |= {document["embedding_model"]} - {None}
        if len(models) > 1:
            raise Conflict(
                "The index has documents of several embedding models. Index the older ones again first.",
                code="several_models",
            )
    return models.pop() if models else None


def _remove_old_data(folder: SnapshotFolder, before: bytes | None, name: str) -> None:
    """Remove the data file of the last manifest, and old data files. Another export may write a newer one."""
    now = f"{datetime.now(UTC) - ABANDONED_AFTER:%Y%m%dT%H%M%SZ}"
    try:
        names = folder.names()
    except Exception:  # the new snapshot is complete, whatever the error
        return
    for other in names:
        match = DATA.fullmatch(other)
        named_before = before is not None and other.encode() in before
        if match and other != name and (named_before or match[1] < now):
            folder.remove(other)
