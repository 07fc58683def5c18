"""Documents of one chunk with 1,536 dimensions, a hundred a call, in tables that were analyzed when they were
nearly empty. Calls alternate with INSERT statements of a plain vector store and with a COPY of their rows.

The vectors are random: nothing but the time of the database is measured.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
from rich.console import Console

from bench.figures import Figure
from bench.synthetic_text import Prose
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from bench.worker_throughput import time_copy
from shared.models.vectors import DIMENSIONS

ORG = Org(1, 100, 10)
DOCUMENTS, AT_ONCE, WORDS = 1000, 100, 120
PLAIN_STORE = """
create table plain_store (id bigserial primary key, content text not null, metadata jsonb,
  embedding extensions.vector(1536));
create index on plain_store using hnsw (embedding extensions.vector_cosine_ops)
"""
PUT = "select document_id::text from public.rag_put_documents('bench', %s::jsonb)"
INSERT = (
    "insert into plain_store (content, metadata, embedding) "
    "select row ->> 'content', '{}', (row -> 'chunks' -> 0 ->> 'embedding')::extensions.vector "
    "from jsonb_array_elements(%s::jsonb) as row"
)


def measure(console: Console) -> list[Figure]:
    with tenant_database() as tenants:
        tenants.add([ORG])
        tenants.with_index()
        tenants.connection.execute(PLAIN_STORE)
        put, insert, copy = alternate(tenants)
        console.print(f"put {sum(put):.2f} s, COPY {sum(copy):.2f} s, plain {sum(insert):.2f} s")
        return [
            Figure("documents a second", DOCUMENTS / sum(put), "1/s", DOCUMENTS / sum(insert)),
            Figure("the last five calls against the first five", sum(put[-5:]), "s", sum(put[:5]), "<= 1.5"),
            Figure("against COPY of the rows", sum(put), "s", sum(copy), "<= 2"),
        ]


def alternate(tenants: TenantDatabase) -> tuple[list[float], list[float], list[float]]:
    """Seconds of each call, of each INSERT of the plain store, and of the COPY of each call's rows."""
    put, insert, copy = [], [], []
    with member_call(tenants) as put_documents:
        for body in bodies(DOCUMENTS):
            started = perf_counter()
            document_ids = put_documents(body)
            put.append(perf_counter() - started)
            started = perf_counter()
            tenants.connection.execute(INSERT, [body])
            insert.append(perf_counter() - started)
            copy.append(time_copy(tenants, document_ids)[0])
    return put, insert, copy


@contextmanager
def member_call(tenants: TenantDatabase) -> Iterator[Callable[[str], list[str]]]:
    """A function that puts documents as a member, each call in its own transaction, and returns their ids."""
    claims = json.dumps({"sub": str(tenants.user("put", [ORG])), "role": "authenticated"})
    with closing(psycopg.connect(tenants.stack.database_url("authenticator"), autocommit=True)) as member:

        def put(body: str) -> list[str]:
            with member.transaction():
                member.execute("select set_config('request.jwt.claims', %s, true)", [claims])
                member.execute("set local role authenticated")
                return [row[0] for row in member.execute(PUT, [body])]

        yield put


def bodies(documents: int, words: int = WORDS, dimensions: int = DIMENSIONS) -> Iterator[str]:
    """A hundred documents each. The values of further dimensions are 0."""
    prose, draw = Prose(set()), np.random.default_rng(7)
    for first in range(0, documents, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        yield json.dumps([document(prose, number, draw, words, dimensions) for number in numbers])


def document(
    prose: Prose, number: int, draw: np.random.Generator, words: int, dimensions: int
) -> dict[str, Any]:
    text = prose.first_words(number, words)
    values = [*draw.normal(size=dimensions), *[0] * (DIMENSIONS - dimensions)]
    vector = ",".join(f"{value:.5g}" for value in values)
    chunk = {
        "span_start": 0,
        "span_end": len(text),
        "token_count": words,
        "embedding": f"[{vector}]",
        "names": [],
    }
    return {
        "external_id": f"{number:064x}",
        "title": text[:80],
        "content": text,
        "embedding_model": "all-MiniLM-L6-v2",
        "chunks": [chunk],
    }
