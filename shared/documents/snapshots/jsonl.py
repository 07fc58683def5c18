"""Data file of a snapshot: gzipped JSON lines, each document followed by its chunks.

It is written and read as a stream, with little memory.
"""

import binascii
import gzip
import hashlib
import json
import math
import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast
from uuid import uuid4

from shared.documents.snapshots.manifest import DAMAGED, Count, Data, Manifest, Strict, Text
from shared.errors import SnapshotRefused
from shared.models.vectors import DIMENSIONS, MAX_DIMENSIONS, decimals

# The longest text that the database takes is 20 million characters, of up to four bytes.
MAX_LINE = 100 << 20


class SnapshotDocument(Strict):
    """`name` is null where another document has it. `chunks`: their number."""

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


class SnapshotChunk(Strict):
    """The text of a chunk is the document's text from span_start to span_end, in characters."""

    span_start: Count
    span_end: Count
    token_count: Count
    metadata: dict[str, Any]
    embedding: Text

    def row(self) -> dict[str, Any]:
        return {**self.model_dump(), "embedding": to_database(self.embedding)}


def to_database(text: str) -> str:
    """The text of a halfvec, of an embedding as the database wrote it: half precision, base64, without zeros
    at the end of 1,536 values. Nothing is rounded. Raises ValueError for an invalid embedding."""
    try:
        raw = b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None
    # A last byte that is zero may be absent, too.
    raw += b"\0" * (len(raw) % 2)
    if not raw or len(raw) > 2 * MAX_DIMENSIONS:
        raise ValueError("not so many values")
    values = struct.unpack(f">{len(raw) // 2}e", raw)
    # The sum keeps NaN and infinity.
    if not any(values) or not math.isfinite(sum(values)):
        raise ValueError("not a direction")
    return f"[{decimals(values)}{',0' * (DIMENSIONS - len(values))}]"


class _MeasuredFile:
    """A file, with the digest and the number of the bytes read or written."""

    def __init__(self, file: BinaryIO, max_bytes: int | None = None) -> None:
        self._file = file
        self._most = max_bytes
        self.digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self._count(data)
        return len(data)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._count(data)
        if self._most is not None and self.bytes > self._most:
            raise SnapshotRefused(f"{DAMAGED}: its data are longer than its manifest states.")
        return data

    def _count(self, data: bytes) -> None:
        self.digest.update(data)
        self.bytes += len(data)


class Writer:
    def __init__(self, file: BinaryIO) -> None:
        self._file = _MeasuredFile(file)
        # 31: in gzip's format, without a name and a date, so that the same documents make the same file.
        # A GzipFile would write again when it is deleted after an error of the store.
        self._gzip = zlib.compressobj(6, zlib.DEFLATED, 31)
        self.documents = self.chunks = 0

    def document(self, document: dict[str, Any]) -> None:
        self.documents += 1
        self._line({"document": document})

    def chunk(self, chunk: dict[str, Any]) -> None:
        self.chunks += 1
        self._line({"chunk": chunk})

    def _line(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        self._file.write(self._gzip.compress(line))

    def close(self, file: str) -> Data:
        """Close the file of that name. Returns its description in the manifest."""
        self._file.write(self._gzip.flush())
        return Data(file=file, sha256=self._file.digest.hexdigest(), bytes=self._file.bytes)


def new_data_name() -> str:
    """A unique name, so that a removed file never was another snapshot's."""
    return f"data-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid4().hex}.jsonl.gz"


def records(file: BinaryIO, manifest: Manifest) -> Iterator[SnapshotDocument | SnapshotChunk]:
    """The documents, each followed by its chunks. Raises SnapshotRefused for a difference from the manifest,
    which may show only at the end."""
    measured = _MeasuredFile(file, manifest.data.bytes)
    documents = chunks = remaining = 0
    for line in _lines(measured):
        record = _record(line)
        if isinstance(record, SnapshotChunk):
            chunks, remaining = chunks + 1, remaining - 1
            fits = remaining >= 0
        else:
            fits = remaining == 0
            documents, remaining = documents + 1, record.chunks
        if not fits or documents > manifest.documents or chunks > manifest.chunks:
            raise SnapshotRefused(f"{DAMAGED}: its documents and chunks are not those of its manifest.")
        yield record
    if (measured.bytes, measured.digest.hexdigest()) != (manifest.data.bytes, manifest.data.sha256):
        raise SnapshotRefused(f"{DAMAGED}: its data do not match their checksum.")
    if (documents, chunks, remaining) != (manifest.documents, manifest.chunks, 0):
        raise SnapshotRefused(f"{DAMAGED}: it has fewer documents or chunks than its manifest states.")


def _lines(file: _MeasuredFile) -> Iterator[bytes]:
    unpacking = gzip.GzipFile("", "rb", fileobj=cast("BinaryIO", file))
    try:
        while line := unpacking.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                raise SnapshotRefused(f"{DAMAGED}: a line is too long.")
            yield line
    except (OSError, EOFError, zlib.error):
        raise SnapshotRefused(f"{DAMAGED}: its data cannot be unpacked.") from None


def _record(line: bytes) -> SnapshotDocument | SnapshotChunk:
    try:
        ((kind, fields),) = json.loads(line).items()
        # Python also parses NaN, 1e400 and lone surrogates, which are not JSON.
        json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
        if kind == "document":
            return SnapshotDocument.model_validate(fields)
        if kind == "chunk":
            chunk = SnapshotChunk.model_validate(fields)
            to_database(chunk.embedding)
            return chunk
    except (ValueError, RecursionError, AttributeError, TypeError):
        pass
    raise SnapshotRefused(f"{DAMAGED}: a line cannot be read.")
