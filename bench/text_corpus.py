"""One org with synthetic text (bench/synthetic_text.py) in the database of bench/tenants.py.

Documents and chunks are loaded with COPY, then their terms by the function that triggers call for every
document. The vectors (bench/synthetic_vectors.py) do not depend on the text, so the two legs
of a hybrid search return different chunks, which is the most work that they can cause.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench.synthetic_text import Prose, SyntheticDocument, demo_sentences, words
from bench.synthetic_vectors import BATCH
from bench.tenant_rows import Columns, Org, chunk_columns, copy_rows, ids
from bench.tenants import TenantDatabase
from local.postgres import SUPERUSER

DOCUMENTS_PER_CALL = 100


@dataclass(frozen=True)
class TextCorpus:
    org: Org
    prose: Prose
    documents: Sequence[SyntheticDocument]

    @cached_property
    def chunks(self) -> list[str]:
        return [chunk for document in self.documents for chunk in document.chunks]

    @cached_property
    def chunk_counts(self) -> Counter[str]:
        """In how many chunks each word stands."""
        return Counter(word for chunk in self.chunks for word in set(self.prose.content_words(chunk)))


def make_prose(tenants: TenantDatabase) -> Prose:
    """Prose that knows which words this Postgres passes over."""
    texts = sorted({word for sentence in demo_sentences() for word in words(sentence)})
    rows = tenants.connection.execute(
        "select word from unnest(%s::text[]) as word where to_tsvector('pg_catalog.english', word) = ''",
        [texts],
    )
    return Prose({word for (word,) in rows})


def load_corpus(tenants: TenantDatabase, org: Org) -> TextCorpus:
    """The org with all its chunks and documents, not yet found by words."""
    prose = make_prose(tenants)
    documents = list(_write_documents(prose, org.chunks))
    corpus = TextCorpus(org, prose, documents)
    tenants.connection.execute(
        "insert into rag.orgs (id, name) values (%s, %s)", [org.id, f"Shelf {org.number}"]
    )
    tenants.connection.execute(
        "insert into rag.collections (org_id, id, name) values (%s, %s, 'default')", [org.id, org.id]
    )
    sizes = np.array([len(document.chunks) for document in documents])
    numbers = np.repeat(np.arange(len(documents), dtype=np.uint64), sizes)
    ordinals = np.arange(org.chunks) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    embeddings, texts = org.embeddings(), corpus.chunks
    with tenants.without_triggers("rag.documents"), tenants.without_triggers("rag.chunks"):
        copy_rows(tenants.connection, "rag.documents", *_document_columns(org, documents))
        for first in range(0, org.chunks, BATCH):
            part = slice(first, first + BATCH)
            columns = _chunk_columns(
                chunk_columns(org, embeddings[part], first, tenants.model), org, numbers[part], ordinals[part]
            )
            copy_rows(tenants.connection, "rag.chunks", columns, {"content": texts[part]})
    tenants.connection.execute("analyze rag.documents, rag.chunks")
    tenants.orgs.append(org)
    return corpus


def index_words(tenants: TenantDatabase, corpus: TextCorpus) -> float:
    """Index the words of all documents, some at once; the seconds that it took."""
    all_ids = ids(corpus.org, np.arange(len(corpus.documents), dtype=np.uint64))
    some = [
        all_ids[first : first + DOCUMENTS_PER_CALL] for first in range(0, len(all_ids), DOCUMENTS_PER_CALL)
    ]
    started = perf_counter()
    _index_batches(tenants, corpus, some)
    return perf_counter() - started


def _index_batches(tenants: TenantDatabase, corpus: TextCorpus, some: Sequence[NDArray[Any]]) -> None:
    with psycopg.connect(tenants.stack.database_url(SUPERUSER), autocommit=True) as connection:
        for together in some:
            documents = [value.tobytes().hex() for value in together]
            connection.execute("select rag.index_words(%s, %s::uuid[])", [corpus.org.id, documents])


def _write_documents(prose: Prose, chunks: int) -> Iterator[SyntheticDocument]:
    """Documents with that many chunks together; the last may be cut short."""
    number = 0
    while chunks:
        document = prose.document(number)
        cut = document.chunks[:chunks]
        yield SyntheticDocument(document.title, cut)
        chunks -= len(cut)
        number += 1


def _document_columns(
    org: Org, documents: Sequence[SyntheticDocument]
) -> tuple[Columns, Mapping[str, Sequence[str]]]:
    count = len(documents)

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
        "title": [document.title for document in documents],
        "content": [" ".join(document.chunks) for document in documents],
    }
    return columns, texts


def _chunk_columns(
    columns: Columns, org: Org, numbers: NDArray[np.uint64], ordinals: NDArray[np.int64]
) -> dict[str, NDArray[np.generic]]:
    """The columns of bench/tenant_rows.py, in these documents and without their text."""
    return {
        **{name: values for name, values in columns.items() if name != "content"},
        "document_id": ids(org, numbers),
        "ordinal": ordinals.astype(">i4"),
        "source_type": np.full(len(numbers), np.void(b"doc")),
    }
