"""A document of 8 MB in 8,000 chunks: the time of its put, and of the cut of the chunks' texts from it.

Before that cut, callers sent the text of each chunk: the put without the cut is the time to compare with.
"""

import json
from time import perf_counter

from rich.console import Console

from bench.figures import Figure
from bench.put_documents import ORG, member_call
from bench.tenants import TenantDatabase, tenant_database
from shared.models.embeddings import DIMENSIONS

# Characters of two bytes too, because spans are counted in characters.
TEXT = "Schöne Grüße: " * 500_000
CHUNKS, FEW, REPEATS = 8000, 80, 5
VECTOR = f"[1{',0' * (DIMENSIONS - 1)}]"
CUT = "select cardinality(rag.cut_texts(content, chunks)) from cut_document"
Row = dict[str, object]


def measure(console: Console) -> list[Figure]:
    with tenant_database() as tenants:
        tenants.add([ORG])
        tenants.with_index()
        document = {
            "external_id": "long",
            "title": "long",
            "content": TEXT,
            "embedding_model": "all-MiniLM-L6-v2",
            "chunks": chunks(CHUNKS),
        }
        body = json.dumps([document])
        with member_call(tenants) as put:
            started = perf_counter()
            put(body)
            seconds = perf_counter() - started
        many, few = cut(tenants, CHUNKS), cut(tenants, FEW)
    console.print(f"put {seconds:.2f} s, cut {many:.3f} s, in {FEW} chunks {few:.3f} s")
    return [
        Figure("put of 8 MB in 8,000 chunks", seconds, "s", seconds - many, "<= 1.2"),
        Figure("its cut against 80 chunks", many, "s", few),
    ]


def chunks(count: int) -> list[Row]:
    """That many chunks, which cover the text."""
    size = -(-len(TEXT) // count)
    return [
        {
            "span_start": start,
            "span_end": min(start + size, len(TEXT)),
            "token_count": 200,
            "embedding": VECTOR,
            "names": [],
        }
        for start in range(0, len(TEXT), size)
    ]


def cut(tenants: TenantDatabase, count: int) -> float:
    """The least seconds of a cut into that many chunks."""
    spans = [{"span_start": row["span_start"], "span_end": row["span_end"]} for row in chunks(count)]
    connection = tenants.connection
    connection.execute("drop table if exists cut_document")
    connection.execute("create temp table cut_document (content text, chunks jsonb)")
    connection.execute("insert into cut_document values (%s, %s)", [TEXT, json.dumps(spans)])
    times = []
    for _ in range(REPEATS):
        started = perf_counter()
        connection.execute(CUT)
        times.append(perf_counter() - started)
    return min(times)
