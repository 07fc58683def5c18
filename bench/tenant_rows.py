"""Rows of bench/tenants.py as numpy columns, and binary COPY of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql

from bench import synthetic_vectors

# One chunk in so many is a document of source_type faq; the others are doc, ten in a document.
RARE = 100
FILLER = (
    "the quick brown fox jumps over the lazy dog while seven wizards pack my box with liquor and ink " * 12
)
Columns = Mapping[str, NDArray[Any]]
Numbers = NDArray[np.uint64]


@dataclass(frozen=True)
class Org:
    """`number` seeds its vectors and names its rows."""

    number: int
    chunks: int
    topics: int

    @property
    def id(self) -> UUID:
        return UUID(bytes=ids(self, np.array([0xFFFF_FFFF], np.uint64))[0].tobytes())

    def embeddings(self) -> synthetic_vectors.Halves:
        return synthetic_vectors.sample(self.number, self.topics, self.chunks)

    def queries(self, count: int) -> synthetic_vectors.Halves:
        return synthetic_vectors.sample(self.number, self.topics, count, stream=1)


def ids(org: Org, numbers: Numbers) -> NDArray[Any]:
    """Ids of an org's rows, as Postgres takes them: the first half looks drawn, as that of random ones does;
    in the second `row_of` finds the row again."""
    low = np.uint64(org.number) << np.uint64(32) | numbers
    high = (low + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    high = (high ^ high >> np.uint64(31)) * np.uint64(0x94D049BB133111EB)
    return np.stack([high, low], axis=1).astype(">u8").view("V16").ravel()


def row_of(chunk_id: str) -> tuple[int, int]:
    """The org's number and the row's number in it."""
    low = UUID(chunk_id).int & 0xFFFF_FFFF_FFFF_FFFF
    return low >> 32, low & 0xFFFF_FFFF


def is_rare(numbers: Numbers) -> NDArray[np.bool_]:
    return np.asarray(numbers % np.uint64(RARE) == RARE - 1)


def document_numbers(numbers: Numbers) -> Numbers:
    return np.asarray(numbers // np.uint64(10) * np.uint64(2) + is_rare(numbers))


def _repeated(value: bytes, count: int) -> NDArray[Any]:
    return np.full(count, np.void(value))


def _texts(values: Sequence[str]) -> NDArray[Any]:
    """Texts of one length."""
    return np.array([value.encode() for value in values], "S").view(f"V{len(values[0])}")


def _source_types(numbers: Numbers) -> NDArray[Any]:
    return np.where(is_rare(numbers), np.array(b"faq", "V3"), np.array(b"doc", "V3"))


def chunk_columns(org: Org, embeddings: synthetic_vectors.Halves, first: int, model: str) -> Columns:
    """Columns of rag.chunks for the org's rows from `first` on."""
    count = len(embeddings)
    numbers = np.arange(first, first + count, dtype=np.uint64)
    # A halfvec as it is sent: its dimensions, two empty bytes, the halves.
    head = np.frombuffer(synthetic_vectors.DIMENSIONS.to_bytes(2, "big") + bytes(2), np.uint8)
    sent = np.concatenate(
        [np.broadcast_to(head, (count, 4)), embeddings.astype(">f2").view(np.uint8)], axis=1
    )
    return {
        "org_id": _repeated(org.id.bytes, count),
        "id": ids(org, numbers),
        "document_id": ids(org, document_numbers(numbers)),
        "collection_id": _repeated(org.id.bytes, count),
        "ordinal": (numbers % np.uint64(10)).astype(">i4"),
        "content": _texts(
            [f"Passage {number:07} of {org.number:05}. {FILLER[number % 97 :][:1000]}" for number in numbers]
        ),
        "span_start": np.zeros(count, ">i4"),
        "span_end": np.ones(count, ">i4"),
        "token_count": np.full(count, 256, ">i4"),
        "source_type": _source_types(numbers),
        "lang": _repeated(b"en", count),
        "embedding_model": _repeated(model.encode(), count),
        "embedding": sent.view(f"V{sent.shape[1]}").ravel(),
    }


def document_columns(org: Org) -> Columns:
    """Columns of rag.documents for the documents of all the org's chunks."""
    chunks = np.arange(org.chunks, dtype=np.uint64)
    numbers, firsts = np.unique(document_numbers(chunks), return_index=True)
    count = len(numbers)
    return {
        "org_id": _repeated(org.id.bytes, count),
        "id": ids(org, numbers),
        "collection_id": _repeated(org.id.bytes, count),
        "source_type": _source_types(chunks[firsts]),
        "title": _texts([f"Document {number:07} of {org.number:05}" for number in numbers]),
        "lang": _repeated(b"en", count),
        "content": _repeated(b"Its text.", count),
        "content_hash": _repeated(b"0" * 64, count),
    }


def copy_rows(
    connection: psycopg.Connection[Any],
    table: str,
    columns: Columns,
    texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """COPY in binary, each row's bytes laid out by numpy: all fields of a column are of one size, but for
    columns of texts, which come last."""
    texts = texts or {}
    layout = [("fields", ">i2")]
    for name, values in columns.items():
        layout += [(f"{name} size", ">i4"), (name, values.dtype.str)]
    rows = np.empty(len(next(iter(columns.values()))), np.dtype(layout))
    rows["fields"] = len(columns) + len(texts)
    for name, values in columns.items():
        rows[f"{name} size"] = values.dtype.itemsize
        rows[name] = values
    command = sql.SQL("copy {} ({}) from stdin (format binary)").format(
        sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Identifier, [*columns, *texts]))
    )
    with connection.cursor() as cursor, cursor.copy(command) as out:
        out.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        out.write(b"".join(_append_texts(rows, list(texts.values()))) if texts else rows.tobytes())
        out.write(b"\xff\xff")


def _append_texts(rows: NDArray[Any], texts: Sequence[Sequence[str]]) -> Iterator[bytes]:
    for fixed, *values in zip(rows, *texts, strict=True):
        yield fixed.tobytes()
        for value in map(str.encode, values):
            yield len(value).to_bytes(4, "big") + value
