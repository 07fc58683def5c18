"""A snapshot's data: a file of gzipped JSON lines, each document followed by its chunks. Written and read as
a stream, so that no size of it needs much memory."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO
from uuid import uuid4

from shared.documents.snapshots.half_vectors import to_database
from shared.documents.snapshots.manifest import DAMAGED, Count, Data, Manifest, Strict, Text
from shared.errors import SnapshotRefused

# The longest text that the database takes is 20 million characters, of up to four bytes.
MAX_LINE = 100 << 20


class Document(Strict):
    """`name` is missing where it was already another's. `chunks`: how many follow."""

    name: Text | None
    source_type: Text
    title: Text
    uri: Text | None
    lang: Text | None
    occurred_at: Text | None
    origin: Text | None
    author: Text | None
    state: Text | None
    labels: list[Text]
    metadata: dict[str, Any]
    content: Text
    filename: Text | None
    content_type: Text | None
    size_bytes: Count | None
    processing_info: dict[str, Any]
    created_at: Text
    updated_at: Text
    embedding_model: Text | None
    chunks: Count


class Chunk(Strict):
    """Its text is that of its span, [span_start, span_end) in characters of the document's text."""

    span_start: Count
    span_end: Count
    token_count: Count
    metadata: dict[str, Any]
    embedding: Text

    def row(self) -> dict[str, Any]:
        """As the database takes it."""
        return {**self.model_dump(), "embedding": to_database(self.embedding)}


class _Measured:
    """A file, and what went through it."""

    def __init__(self, file: BinaryIO, most: int | None = None) -> None:
        self._file = file
        self._most = most
        self.digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self._saw(data)
        return len(data)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._saw(data)
        if self._most is not None and self.bytes > self._most:
            raise SnapshotRefused(f"{DAMAGED}: its data are longer than they were.")
        return data

    def _saw(self, data: bytes) -> None:
        self.digest.update(data)
        self.bytes += len(data)

    def flush(self) -> None:
        """For gzip: the store's file is flushed when it is closed."""


class Writer:
    """Writes a data file."""

    def __init__(self, file: BinaryIO) -> None:
        self._measured = _Measured(file)
        # Without a name and a date in it: the same documents make the same file.
        self._gzip = gzip.GzipFile("", "wb", 6, self._measured, mtime=0)
        self._unpacked = 0
        self.documents = self.chunks = 0

    def document(self, document: dict[str, Any]) -> None:
        self.documents += 1
        self._line({"document": document})

    def chunk(self, chunk: dict[str, Any]) -> None:
        self.chunks += 1
        self._line({"chunk": chunk})

    def _line(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._unpacked += len(line)
        self._gzip.write(line)

    def close(self, file: str) -> Data:
        """What the manifest says of the file, which is called so."""
        self._gzip.close()
        return Data(
            file=file,
            sha256=self._measured.digest.hexdigest(),
            bytes=self._measured.bytes,
            unpacked_bytes=self._unpacked,
        )


def new_data_name() -> str:
    """One that there never was, so that whoever removes a file removes nobody else's."""
    return f"data-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid4().hex}.jsonl.gz"


@dataclass(slots=True)
class _Counted:
    """What is still to come."""

    documents: int
    chunks: int
    of_document: int = 0

    def take(self, record: Document | Chunk) -> bool:
        if isinstance(record, Chunk):
            self.of_document -= 1
            self.chunks -= 1
            return self.of_document >= 0 and self.chunks >= 0
        complete = self.of_document == 0
        self.of_document = record.chunks
        self.documents -= 1
        return complete and self.documents >= 0

    def is_complete(self) -> bool:
        return self.documents == self.chunks == self.of_document == 0


def records(file: BinaryIO, manifest: Manifest) -> Iterator[Document | Chunk]:
    """The documents, each followed by its chunks. Raises SnapshotRefused for whatever is not as the manifest
    says: in the end, for what only the whole file shows."""
    measured = _Measured(file, manifest.data.bytes)
    left = _Counted(manifest.documents, manifest.chunks)
    unpacked = 0
    for line in _lines(measured):
        unpacked += len(line)
        if unpacked > manifest.data.unpacked_bytes:
            raise SnapshotRefused(f"{DAMAGED}: its data are longer than they were.")
        record = _record(line)
        if not left.take(record):
            raise SnapshotRefused(f"{DAMAGED}: it has other documents and chunks than it says.")
        yield record
    same = (measured.bytes, measured.digest.hexdigest()) == (manifest.data.bytes, manifest.data.sha256)
    if not same or unpacked != manifest.data.unpacked_bytes:
        raise SnapshotRefused(f"{DAMAGED}: its data are not what they were.")
    if not left.is_complete():
        raise SnapshotRefused(f"{DAMAGED}: it has fewer documents or chunks than it says.")


def _lines(file: _Measured) -> Iterator[bytes]:
    unpacking = gzip.GzipFile("", "rb", fileobj=file)
    try:
        while line := unpacking.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                raise SnapshotRefused(f"{DAMAGED}: a line is too long.")
            yield line
    except (OSError, EOFError, zlib.error):
        raise SnapshotRefused(f"{DAMAGED}: its data cannot be unpacked.") from None


def _record(line: bytes) -> Document | Chunk:
    try:
        ((kind, fields),) = json.loads(line).items()
        # What Python reads and JSON does not know: NaN, 1e400, half characters.
        json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
        if kind == "document":
            return Document.model_validate(fields)
        if kind == "chunk":
            chunk = Chunk.model_validate(fields)
            to_database(chunk.embedding)
            return chunk
    except (ValueError, RecursionError, AttributeError, TypeError):
        pass
    raise SnapshotRefused(f"{DAMAGED}: a line cannot be read.")
