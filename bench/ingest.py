"""What keyword search costs those who write: documents of about eight chunks put through PostgREST by a
member of an org that has 10,000, into every index there is, with the triggers that keep postings and their
counts and without them, in turns.

The vectors are drawn (bench/vectors.py): cutting and embedding, which take longer, are not in these times.
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

from bench import vectors
from bench.contest import call, connected
from bench.figures import Figure
from bench.prose import Written
from bench.rows import Org
from bench.shelf import Shelf, index_words, stocked
from bench.tenants import Tenants, tenants

THERE = Org(1, 10_000, 1500)
# Documents that are there have lower numbers.
FIRST = 1_000_000
ROUNDS, AT_ONCE = 12, 8
# The first after a trigger came or went: connections plan their statements anew.
WARM = 4
EVERYTHING, UNCOUNTED, WORDLESS = "all of it", "without counts of terms", "without postings and counts"
# Which tables' triggers are away.
WITHOUT: dict[str, tuple[str, ...]] = {
    EVERYTHING: (),
    UNCOUNTED: ("rag.postings",),
    WORDLESS: ("rag.chunks", "rag.postings"),
}
GOAL = "<= 0.3"


def measure(console: Console) -> list[Figure]:
    with tenants() as made:
        shelf = stocked(made, THERE)
        index_words(made, shelf)
        made.with_index()
        token = made.token(made.user("ingest", [THERE]))
        taken: dict[str, list[float]] = {way: [] for way in WITHOUT}
        documents = bodies(made, shelf)
        shuffled = random.Random(7).sample  # noqa: S311  # not a secret
        with connected(made.postgrest) as connection:
            for _ in range(ROUNDS):
                for way in shuffled(list(WITHOUT), len(WITHOUT)):
                    with untriggered(made, WITHOUT[way]):
                        seconds = [put(connection, token, next(documents)) for _ in range(WARM + AT_ONCE)]
                        taken[way] += seconds[WARM:]
        there = made.number("select count(*) from rag.chunks")
        console.print(f"{there:,.0f} chunks at last")
    return told(taken)


@contextmanager
def untriggered(made: Tenants, tables: tuple[str, ...]) -> Iterator[None]:
    with ExitStack() as held:
        for table in tables:
            held.enter_context(made.untriggered(table))
        yield


def put(connection: http.client.HTTPConnection, token: str, body: bytes) -> float:
    started = perf_counter()
    call(connection, "/rpc/rag_put_document", token, body)
    return perf_counter() - started


def bodies(made: Tenants, shelf: Shelf) -> Iterator[bytes]:
    """New documents as shared/ingestion/ingest.py sends them."""
    wanted = ROUNDS * len(WITHOUT) * (WARM + AT_ONCE)
    written = [shelf.prose.document(FIRST + number) for number in range(wanted)]
    chunks = sum(len(document.chunks) for document in written)
    embeddings = iter(vectors.drawn(THERE.number, THERE.topics, chunks, stream=2))
    for number, document in enumerate(written):
        rows = [[float(f"{value:.5g}") for value in next(embeddings)] for _ in document.chunks]
        yield body(made, f"new-{number}", document, rows)


def body(made: Tenants, name: str, document: Written, embeddings: list[list[float]]) -> bytes:
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
        "org_id": str(THERE.id),
        "external_id": name,
        "title": document.title,
        "lang": "en",
        "content": content,
        "embedding_model": made.model,
    }
    return json.dumps({"document": fields, "chunks": chunks}).encode()


def told(taken: dict[str, list[float]]) -> list[Figure]:
    """Means: now and then a document pays for folding what many have counted."""
    means = {way: 1000 * fmean(seconds) for way, seconds in taken.items()}
    figures = [
        Figure(f"put a document, {way}", means[way], "ms", note=f"p50 {1000 * median(seconds):.1f} ms")
        for way, seconds in taken.items()
    ]
    share = 1 - means[WORDLESS] / means[EVERYTHING]
    return [*figures, Figure("keyword statistics' share of putting a document", share, "", None, GOAL)]
