"""Cost of keyword search for ingestion: documents of about eight chunks, stored through PostgREST by a member
of an org with 10,000 chunks, with all indexes, alternately with and without the triggers for postings and
their counts.

The vectors are synthetic (bench/synthetic_vectors.py): chunking and embedding, which take longer, are
excluded.
"""

import http.client
import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import fmean, median
from time import perf_counter
from typing import Any

from rich.console import Console

from bench import synthetic_vectors
from bench.figures import Figure
from bench.interleaved import connect, post
from bench.synthetic_text import SyntheticDocument
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from bench.text_corpus import TextCorpus, index_words, load_corpus

ORG = Org(1, 10_000, 1500)
# Documents that are there have lower numbers.
FIRST_NUMBER = 1_000_000
ROUNDS, DOCUMENTS_PER_ROUND = 12, 8
# The first after a trigger came or went: connections plan their statements anew.
WARM = 4
ALL_STATISTICS, WITHOUT_COUNTS, WITHOUT_POSTINGS = (
    "all of it",
    "without counts of terms",
    "without postings and counts",
)
# Which tables' triggers are away.
DISABLED_TRIGGERS: dict[str, tuple[str, ...]] = {
    ALL_STATISTICS: (),
    WITHOUT_COUNTS: ("rag.postings",),
    WITHOUT_POSTINGS: ("rag.chunks", "rag.postings"),
}
GOAL = "<= 0.3"


def measure(console: Console) -> list[Figure]:
    with tenant_database() as tenants:
        corpus = load_corpus(tenants, ORG)
        index_words(tenants, corpus)
        tenants.with_index()
        token = tenants.token(tenants.user("ingest", [ORG]))
        timings: dict[str, list[float]] = {method: [] for method in DISABLED_TRIGGERS}
        documents = bodies(tenants, corpus)
        shuffled = random.Random(7).sample  # noqa: S311  # not a secret
        with connect(tenants.postgrest) as connection:
            for _ in range(ROUNDS):
                for method in shuffled(list(DISABLED_TRIGGERS), len(DISABLED_TRIGGERS)):
                    with without_triggers(tenants, DISABLED_TRIGGERS[method]):
                        seconds = [
                            put(connection, token, next(documents)) for _ in range(WARM + DOCUMENTS_PER_ROUND)
                        ]
                        timings[method] += seconds[WARM:]
        there = tenants.number("select count(*) from rag.chunks")
        console.print(f"{there:,.0f} chunks at last")
    return figures_of(timings)


@contextmanager
def without_triggers(tenants: TenantDatabase, tables: tuple[str, ...]) -> Iterator[None]:
    with ExitStack() as stack:
        for table in tables:
            stack.enter_context(tenants.without_triggers(table))
        yield


def put(connection: http.client.HTTPConnection, token: str, body: bytes) -> float:
    started = perf_counter()
    post(connection, "/rpc/rag_put_document", token, body)
    return perf_counter() - started


def bodies(tenants: TenantDatabase, corpus: TextCorpus) -> Iterator[bytes]:
    """New documents as shared/ingestion/synchronous_ingestion.py sends them."""
    expected = ROUNDS * len(DISABLED_TRIGGERS) * (WARM + DOCUMENTS_PER_ROUND)
    documents = [corpus.prose.document(FIRST_NUMBER + number) for number in range(expected)]
    chunks = sum(len(document.chunks) for document in documents)
    embeddings = iter(synthetic_vectors.sample(ORG.number, ORG.topics, chunks, stream=2))
    for number, document in enumerate(documents):
        rows = [[float(f"{value:.5g}") for value in next(embeddings)] for _ in document.chunks]
        yield body(tenants, f"new-{number}", document, rows)


def body(
    tenants: TenantDatabase, name: str, document: SyntheticDocument, embeddings: list[list[float]]
) -> bytes:
    content, chunks = "\n".join(document.chunks), list[dict[str, Any]]()
    start = 0
    for text, embedding in zip(document.chunks, embeddings, strict=True):
        end = start + len(text)
        chunks.append(
            {
                "span_start": start,
                "span_end": end,
                "token_count": len(text) // 4,
                "embedding": embedding,
            }
        )
        start = end + 1
    fields = {
        "org_id": str(ORG.id),
        "external_id": name,
        "title": document.title,
        "lang": "en",
        "content": content,
        "embedding_model": tenants.model,
    }
    return json.dumps({"document": fields, "chunks": chunks}).encode()


def figures_of(timings: dict[str, list[float]]) -> list[Figure]:
    """Means: now and then a document pays for folding what many have counted."""
    means = {method: 1000 * fmean(seconds) for method, seconds in timings.items()}
    figures = [
        Figure(f"put a document, {method}", means[method], "ms", note=f"p50 {1000 * median(seconds):.1f} ms")
        for method, seconds in timings.items()
    ]
    share = 1 - means[WITHOUT_POSTINGS] / means[ALL_STATISTICS]
    return [*figures, Figure("keyword statistics' share of putting a document", share, "", None, GOAL)]
