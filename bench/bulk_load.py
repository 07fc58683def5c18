"""Bulk load of 10,000 documents of 120 words, beside POST /index with a hundred a request.

Both use the embedder of bench/served_indexes.py, a hash without latency, and an empty database.
"""

import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter

import psycopg
from rich.console import Console

from bench.bench_stack import BenchStack, serve_app
from bench.figures import Figure
from bench.index_api import ASKER, accept_model, environment, index, texts
from bench.served_indexes import HashEmbedder
from bench.synthetic_text import Prose
from local.operations.bulk_load import load
from local.seed_demo import make_services
from local.stack import Stack
from shared.documents.index_documents import IndexDocument, new_documents

DOCUMENTS = 10_000


def measure(console: Console) -> list[Figure]:
    prose = Prose(set())
    words = list(texts(prose, DOCUMENTS))
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as folder:
        stack = Stack(Path(folder), keys="hs256")
        try:
            stack.up(0, durable=False)
            with closing(make_services(stack)) as services:
                bench = BenchStack(stack, services)
                accept_model(bench)
                with serve_app(bench, "bench.served_indexes:app", environment(bench)) as server:
                    indexed = index(server.url, stack.token(ASKER), iter(words)).elapsed
                loaded = load_after_emptying(stack, words)
        finally:
            stack.remove()
    console.print(f"{DOCUMENTS:,} documents: POST /index {indexed:.1f} s, bulk load {loaded:.1f} s")
    return [Figure("documents loaded a second", DOCUMENTS / loaded, "1/s", DOCUMENTS / indexed, ">= 10")]


def load_after_emptying(stack: Stack, words: list[str]) -> float:
    claims = {"sub": stack.user_id(ASKER), "role": "authenticated"}
    documents = new_documents([IndexDocument.new(text, {}) for text in words])
    with psycopg.connect(stack.database_url()) as connection:
        connection.execute("truncate rag.collections cascade")
        connection.commit()
        started = perf_counter()
        load(connection, HashEmbedder(), claims, "loaded", documents)
        return perf_counter() - started
