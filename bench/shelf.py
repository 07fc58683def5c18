"""One org with as much text as bench/prose.py writes, on the stack of bench/tenants.py: documents and chunks
by COPY, then the postings and their counts by the functions that triggers call for every document.

Vectors are bench/vectors.py's and know nothing of the text. So the two legs of a hybrid search bring
different chunks, which is as much work as they can make.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench.prose import Prose, Written, demo_sentences, words
from bench.rows import Columns, Org, chunk_columns, copy, ids
from bench.tenants import Tenants
from bench.vectors import BATCH
from local.postgres import SUPERUSER

INDEXED_AT_ONCE = 100


@dataclass(frozen=True)
class Shelf:
    org: Org
    prose: Prose
    written: Sequence[Written]

    @cached_property
    def chunks(self) -> list[str]:
        return [chunk for document in self.written for chunk in document.chunks]

    @cached_property
    def holding(self) -> Counter[str]:
        """In how many chunks each word stands."""
        return Counter(word for chunk in self.chunks for word in set(self.prose.content_words(chunk)))


def prose_for(made: Tenants, writes: type[Prose] = Prose) -> Prose:
    """Prose that knows which words this Postgres passes over."""
    said = sorted({word for sentence in demo_sentences() for word in words(sentence)})
    found = made.connection.execute(
        "select word from unnest(%s::text[]) as word where to_tsvector('pg_catalog.english', word) = ''",
        [said],
    )
    return writes({word for (word,) in found})


def stocked(made: Tenants, org: Org, writes: type[Prose] = Prose) -> Shelf:
    """The org with all its chunks and documents, not yet found by words."""
    prose = prose_for(made, writes)
    written = list(_written(prose, org.chunks))
    shelf = Shelf(org, prose, written)
    made.connection.execute(
        "insert into rag.orgs (id, name) values (%s, %s)", [org.id, f"Shelf {org.number}"]
    )
    made.connection.execute(
        "insert into rag.collections (org_id, id, name) values (%s, %s, 'default')", [org.id, org.id]
    )
    sizes = np.array([len(document.chunks) for document in written])
    numbers = np.repeat(np.arange(len(written), dtype=np.uint64), sizes)
    ordinals = np.arange(org.chunks) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    embeddings, texts = org.embeddings(), shelf.chunks
    with made.untriggered("rag.documents"), made.untriggered("rag.chunks"):
        copy(made.connection, "rag.documents", *_documents(org, written))
        for first in range(0, org.chunks, BATCH):
            part = slice(first, first + BATCH)
            columns = _placed(
                chunk_columns(org, embeddings[part], first, made.model), org, numbers[part], ordinals[part]
            )
            copy(made.connection, "rag.chunks", columns, {"content": texts[part]})
    made.connection.execute("analyze rag.documents, rag.chunks")
    made.orgs.append(org)
    return shelf


def index_words(made: Tenants, shelf: Shelf, writers: int = 1) -> float:
    """Make the postings of all documents, some at once; the seconds that it took."""
    found = ids(shelf.org, np.arange(len(shelf.written), dtype=np.uint64))
    some = [found[first : first + INDEXED_AT_ONCE] for first in range(0, len(found), INDEXED_AT_ONCE)]
    started = perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(lambda turn: _index_some(made, shelf, some[turn::writers]), range(writers)))
    return perf_counter() - started


def _index_some(made: Tenants, shelf: Shelf, some: Sequence[NDArray[Any]]) -> None:
    with psycopg.connect(made.stack.database_url(SUPERUSER), autocommit=True) as connection:
        for together in some:
            documents = [value.tobytes().hex() for value in together]
            connection.execute("select rag.index_words(%s, %s::uuid[])", [shelf.org.id, documents])


def _written(prose: Prose, chunks: int) -> Iterator[Written]:
    """Documents with that many chunks together; the last may be cut short."""
    number = 0
    while chunks:
        document = prose.document(number)
        cut = document.chunks[:chunks]
        yield Written(document.title, cut)
        chunks -= len(cut)
        number += 1


def _documents(org: Org, written: Sequence[Written]) -> tuple[Columns, Mapping[str, Sequence[str]]]:
    count = len(written)

    def same(value: bytes) -> NDArray[np.void]:
        return np.full(count, np.void(value))

    columns = {
        "org_id": same(org.id.bytes),
        "id": ids(org, np.arange(count, dtype=np.uint64)),
        "collection_id": same(org.id.bytes),
        "source_type": same(b"doc"),
        "lang": same(b"en"),
        "content_hash": same(b"0" * 64),
    }
    texts = {
        "title": [document.title for document in written],
        "content": [" ".join(document.chunks) for document in written],
    }
    return columns, texts


def _placed(
    columns: Columns, org: Org, numbers: NDArray[np.uint64], ordinals: NDArray[np.int64]
) -> dict[str, NDArray[np.generic]]:
    """The columns of bench/rows.py, in these documents and without their text."""
    return {
        **{name: values for name, values in columns.items() if name != "content"},
        "document_id": ids(org, numbers),
        "ordinal": ordinals.astype(">i4"),
        "source_type": np.full(len(numbers), np.void(b"doc")),
    }
