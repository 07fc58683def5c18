"""The search API among 100,000 chunks of synthetic text (bench/synthetic_text.py).

An identifier, a question by both legs, ten contents and similar chunks, by one client, alternately with a
bare handler that makes the same SQL call (bench/served_search.py). Goals are the contract's, in milliseconds
at the 95th percentile.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from rich.console import Console

from bench.bench_stack import BenchStack, serve_app
from bench.figures import Figure
from bench.interleaved import connect, post
from bench.question_sets import IDENTIFIER, TEXT, kinds, questions
from bench.synthetic_text import SEED
from bench.tenant_rows import Org
from bench.tenants import TenantDatabase, tenant_database
from bench.text_corpus import index_words, load_corpus
from local.seed_demo import make_services

CHUNKS = 100_000
REQUESTS, WARM = 200, 20
Body = Mapping[str, Any]
# The path and the body of a request, by its number.
Asking = Callable[[int], tuple[str, Body]]
# The contract's, in milliseconds.
GOALS = {"an identifier": 90, "a question": 150, "10 contents": 120, "like a chunk": 150}


def measure(console: Console, chunks: int = CHUNKS) -> list[Figure]:
    with tenant_database() as tenants:
        org = Org(1, chunks, 1500)
        corpus = load_corpus(tenants, org)
        index_words(tenants, corpus)
        tenants.with_index()
        drawn = kinds(corpus)
        texts = {kind: questions(drawn[kind], REQUESTS + WARM) for kind in (IDENTIFIER, TEXT)}
        request = request_pairs(tenants, org, texts)
        environment = {
            "BENCH_POSTGREST": tenants.postgrest,
            "BENCH_MODEL": tenants.model,
            "BENCH_ORG": json.dumps([org.number, org.chunks, org.topics]),
        }
        token = tenants.token(tenants.user("searching", [org]))
        with closing(make_services(tenants.stack)) as services:
            bench = BenchStack(tenants.stack, services)
            with serve_app(bench, "bench.served_search:app", environment) as server:
                figures = [
                    figure
                    for name, (ours, bare) in request.items()
                    for figure in compare(server.url, token, name, ours, bare, console)
                ]
        return figures


def request_pairs(
    tenants: TenantDatabase, org: Org, texts: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Asking, Asking]]:
    """Of each kind what our function is asked, and what the bare handler is."""
    workspace = str(org.id)
    chunk_ids, document_ids = sample_ids(tenants)

    def contents(number: int) -> tuple[Sequence[str], Sequence[str]]:
        first = number * 5
        return document_ids[first : first + 5], chunk_ids[first : first + 5]

    def our_contents(number: int) -> tuple[str, Body]:
        documents, chunks = contents(number)
        ids = [{"kind": "document", "id": entry} for entry in documents]
        ids += [{"kind": "chunk", "id": entry} for entry in chunks]
        return "/v1/contents", {"workspaceId": workspace, "ids": ids, "expand": {"chunks": True}}

    def bare_contents(number: int) -> tuple[str, Body]:
        documents, chunks = contents(number)
        return "/bare/contents", {
            "org_id": workspace,
            "collection_id": workspace,
            "kinds": ["document"] * 5 + ["chunk"] * 5,
            "ids": [*documents, *chunks],
            "text": False,
            "chunks": True,
        }

    def our_search(kind: str) -> Asking:
        return lambda number: ("/v1/search", {"workspaceId": workspace, "q": texts[kind][number]})

    def bare_search(kind: str, mode: str) -> Asking:
        return lambda number: (
            "/bare/search", {"workspaceId": workspace, "q": texts[kind][number], "mode": mode},
        )  # fmt: skip

    return {
        "an identifier": (our_search(IDENTIFIER), bare_search(IDENTIFIER, "keyword")),
        "a question": (our_search(TEXT), bare_search(TEXT, "hybrid")),
        "10 contents": (our_contents, bare_contents),
        "like a chunk": (
            lambda number: (
                "/v1/similar",
                {"workspaceId": workspace, "subject": {"kind": "chunk", "chunkId": chunk_ids[number]}},
            ),
            lambda number: (
                "/bare/similar",
                {"workspaceId": workspace, "chunkId": chunk_ids[number]},
            ),
        ),
    }


def sample_ids(tenants: TenantDatabase) -> tuple[list[str], list[str]]:
    """Of chunks and of documents, as many as are asked for."""
    expected = 5 * (REQUESTS + WARM)
    draw = random.Random(SEED)  # noqa: S311  # not a secret
    chunks = tenants.connection.execute("select id::text from rag.chunks order by id").fetchall()
    documents = tenants.connection.execute("select id::text from rag.documents order by id").fetchall()
    chosen = draw.choices(chunks, k=expected), draw.choices(documents, k=expected)
    return [value for (value,) in chosen[0]], [value for (value,) in chosen[1]]


def compare(
    url: str,
    token: str,
    name: str,
    ours: Asking,
    bare: Asking,
    console: Console,
) -> list[Figure]:
    """Every request once, ours and the bare one's in turns; the first few are not counted."""
    seconds: dict[str, list[float]] = {"ours": [], "bare": []}
    with connect(url) as connection:
        for number in range(REQUESTS + WARM):
            for who, request in (("ours", ours), ("bare", bare)):
                path, body = request(number)
                content = json.dumps(body).encode()
                started = perf_counter()
                post(connection, path, token, content)
                if number >= WARM:
                    seconds[who].append(perf_counter() - started)
    p95 = {who: quantiles(taken, n=20)[-1] * 1000 for who, taken in seconds.items()}
    p50 = {who: median(taken) * 1000 for who, taken in seconds.items()}
    console.print(f"{name}: p95 {p95['ours']:.1f} ms, bare {p95['bare']:.1f} ms", highlight=False)
    return [
        Figure(f"{name}, p95", p95["ours"], "ms", None, f"<= {GOALS[name]}"),
        Figure(f"{name}, p95 beside the bare handler", p95["ours"], "ms", p95["bare"]),
        Figure(f"{name}, p50 beside the bare handler", p50["ours"], "ms", p50["bare"]),
    ]
