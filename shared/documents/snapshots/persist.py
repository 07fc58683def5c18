"""An index as a snapshot in the store: what the whole org may see of it, read a page at a time as the caller.
Each document is whole, as it was at some moment of the persisting."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.clients.object_paths import DATA, DEFAULT, directory_of, segments_of
from shared.clients.object_store import Folder, Store
from shared.clients.postgrest import Database
from shared.documents.snapshots.half_vectors import from_database
from shared.documents.snapshots.jsonl import Writer, new_data_name
from shared.documents.snapshots.manifest import Manifest
from shared.errors import Conflict, error_details
from shared.types import PrincipalSource

Row = dict[str, Any]
# What a persisting that broke off has left goes with the first one after so long; none takes as long.
LEFT_BEHIND = timedelta(days=1)
CHANGED = "A document changed while it was persisted. Please try again."


class Reading:
    """One collection."""

    def __init__(self, database: Database, caller: PrincipalSource, index: str) -> None:
        """Raises NotFound, InvalidRequest for a private collection, and Forbidden."""
        self._database = database
        self._caller = caller
        with error_details(name=index):
            self.home: Row = self._ask("rag_begin_snapshot", name=index)

    def documents(self) -> Iterator[tuple[Row, Iterator[Row]]]:
        """Each with its chunks, which are to be taken before the next one is. Raises Conflict when a document
        of many chunks changes meanwhile."""
        for listed in self._listed():
            rest = listed
            # A response has a maximum of bytes: the rest is asked for again.
            while rest and (rows := self._of("rag_read_snapshot_documents", document_ids=rest)):
                for document in rows:
                    yield self._whole(document), self._chunks(document)
                rest = rest[rest.index(rows[-1]["id"]) + 1 :]

    def _whole(self, document: Row) -> Row:
        """The document with all of its text."""
        length, texts = document.pop("length"), [document["content"]]
        so_far = len(texts[0])
        while so_far < length:
            rows = self._of(
                "rag_read_snapshot_documents", document_ids=[document["id"]], first_character=so_far
            )
            if not rows or rows[0]["updated_at"] != document["updated_at"]:
                raise Conflict(CHANGED)
            texts.append(rows[0]["content"])
            so_far += len(texts[-1])
        document["content"] = "".join(texts)
        return document

    def _chunks(self, document: Row) -> Iterator[Row]:
        chunks: list[Row] = document.pop("chunks")
        yield from chunks
        so_far = len(chunks)
        while so_far < document["chunk_count"]:
            place = {"document_id": document["id"], "updated_at": document["updated_at"], "first": so_far}
            chunks = self._of("rag_read_snapshot_chunks", **place)
            if not chunks:
                raise Conflict(CHANGED)
            yield from chunks
            so_far += len(chunks)

    def _listed(self) -> Iterator[list[str]]:
        after: Row = {}
        while page := self._of("rag_snapshot_documents", **after):
            yield [row["id"] for row in page]
            after = {"after_created_at": page[-1]["created_at"], "after_id": page[-1]["id"]}

    def _of(self, function: str, **arguments: Any) -> list[Row]:
        rows: list[Row] = self._ask(function, collection_id=self.home["collection_id"], **arguments)
        return rows

    def _ask(self, function: str, **arguments: Any) -> Any:
        return self._database.call(self._caller, function, arguments, again=True, patient=True)


def persist(
    database: Database, store: Store, caller: PrincipalSource, index: str, path: str = DEFAULT
) -> str:
    """Where the snapshot is now, as the caller would say it. The one that was there is there until then.

    Raises NotFound, InvalidRequest for a private index or a path that leads elsewhere, Conflict for an index
    of several embedding models, SnapshotFailed, and what the database's calls raise.
    """
    directory = directory_of(index)
    segments = (*segments_of(path), directory)
    reading = Reading(database, caller, index)
    folder = store.folder(reading.home["org_id"], segments)
    before = folder.manifest()
    name = new_data_name()
    with folder.writing(name) as file:
        writer = Writer(file)
        model = _write(writer, reading)
        data = writer.close(name)
    try:
        manifest = Manifest(
            index_name=index,
            collection={field: reading.home[field] for field in ("description", "metadata", "config")},
            embedding_model=model,
            documents=writer.documents,
            chunks=writer.chunks,
            created_at=datetime.now(UTC).isoformat(),
            data=data,
        )
        folder.replace_manifest(manifest.sealed())
    except BaseException:
        folder.remove(name)
        raise
    _tidy(folder, before, name)
    return f"{path.removesuffix('/')}/{directory}"


def _write(writer: Writer, reading: Reading) -> str | None:
    """The model that all chunks were embedded by; None where there are none."""
    models: set[str] = set()
    for document, chunks in reading.documents():
        fields = {
            name: value for name, value in document.items() if name not in ("id", "chunk_count", "chunks")
        }
        writer.document({**fields, "chunks": document["chunk_count"]})
        for chunk in chunks:
            writer.chunk({**chunk, "embedding": from_database(chunk["embedding"])})
        models |= {document["embedding_model"]} - {None}
        if len(models) > 1:
            raise Conflict(
                "The index has documents of several embedding models. Bring the older ones anew first.",
                code="several_models",
            )
    return models.pop() if models else None


def _tidy(folder: Folder, before: bytes | None, name: str) -> None:
    """Remove the data that the last manifest named, and what others have left long ago: not what somebody may
    be writing just now."""
    now = f"{datetime.now(UTC) - LEFT_BEHIND:%Y%m%dT%H%M%SZ}"
    for other in _data_files(folder):
        match = DATA.fullmatch(other)
        named_before = before is not None and other.encode() in before
        if match and other != name and (named_before or match[1] < now):
            folder.remove(other)


def _data_files(folder: Folder) -> Sequence[str]:
    try:
        return folder.names()
    except Exception:  # the snapshot is there, whatever the store says now
        return ()
