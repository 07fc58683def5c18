"""The index API: documents indexed per second, and query times among 500, 2,000 and 8,000 documents of 120
words, by one client and by eight.

The embedder and the model answer at once (bench/served_indexes.py). KAITO RAGEngine on a similar machine,
with a stand-in embedder too: 900 documents a second, in memory; semantic queries 12.7, 12.4 and 23 ms, hybrid
queries 89, 390 and 1,327 ms.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
from rich.console import Console

from bench.bench_stack import BenchStack, serve_app
from bench.figures import Figure
from bench.load_generator import Outcome, Request, run_clients
from bench.served_indexes import HashEmbedder
from bench.synthetic_text import Prose
from local.seed_demo import make_services
from local.stack import Stack

WORDS = 120
SIZES = (500, 2000, 8000)
AT_ONCE = 100
CLIENTS = {1: 100, 8: 200}
ASKER = "tomas@halden.example"
# Upstream by meaning alone, at the largest size, in milliseconds.
UPSTREAM_MS = 23.0


def measure(console: Console) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as folder:
        stack = Stack(Path(folder), keys="hs256")
        try:
            stack.up(0, durable=False)
            with closing(make_services(stack)) as services:
                return run(BenchStack(stack, services), console)
        finally:
            stack.remove()


def run(bench: BenchStack, console: Console) -> list[Figure]:
    accept_model(bench)
    prose, token = Prose(set()), bench.stack.token(ASKER)
    figures: list[Figure] = []
    with serve_app(bench, "bench.served_indexes:app", environment(bench)) as server:
        outcomes = {size: index(server.url, token, texts(prose, size)) for size in SIZES}
        for size, outcome in outcomes.items():
            figures.append(Figure(f"documents indexed a second, {size:,}", size / outcome.elapsed, "1/s"))
        analyze(bench)
        for dense in (False, True):
            set_hybrid(bench, not dense)
            method = "by meaning" if dense else "by both"
            for route in ("/query", "/retrieve"):
                figures += measure_sizes(server.url, token, prose, route, method, console)
    figures.append(flatness(figures))
    return figures


def accept_model(bench: BenchStack) -> None:
    """Let the database store embeddings of the stand-in."""
    with psycopg.connect(bench.stack.database_url(), autocommit=True) as connection:
        connection.execute("update rag.settings set other_embedding_models = %s", [[HashEmbedder.model]])


def environment(bench: BenchStack) -> dict[str, str]:
    return {
        "BENCH_POSTGREST": f"http://127.0.0.1:{bench.stack.state.postgrest_port}",
        # Any key keeps the local model out of the process; nothing is asked of it.
        "OPENAI_API_KEY": "none",
        "RAG_LLM_API_KEY": "none",
    }


def measure_sizes(
    url: str, token: str, prose: Prose, route: str, method: str, console: Console
) -> Iterator[Figure]:
    for size in SIZES:
        for clients, requests in CLIENTS.items():
            outcome = questions(url, token, prose, route, size, clients, requests)
            who = f"{clients} client{'s' if clients > 1 else ''}"
            is_upstream_case = size == SIZES[-1] and clients == 1 and method == "by meaning"
            goal = f"<= {UPSTREAM_MS}" if is_upstream_case else None
            yield Figure(f"{route} {method}, {size:,} documents, {who}", outcome.p50_ms, "ms", goal=goal)
            console.print(f"{route} {method}, {size:,} documents, {who}: {outcome.p50_ms:.1f} ms")


def flatness(figures: Sequence[Figure]) -> Figure:
    """How much longer a search by both takes at one size than at another."""
    times = [
        figure.value
        for figure in figures
        if figure.name.startswith("/retrieve by both") and figure.name.endswith("1 client")
    ]
    name = "/retrieve by both, 1 client: the slowest size against the fastest"
    return Figure(name, max(times), "ms", min(times), "<= 1.5")


def texts(prose: Prose, size: int) -> Iterator[str]:
    for number in range(size):
        words = " ".join(prose.document(number).chunks).split()
        yield " ".join(words[:WORDS])


def index(url: str, token: str, words: Iterator[str]) -> Outcome:
    """All of them, by one client, a hundred a request; made beforehand."""
    documents = [{"text": text} for text in words]
    requests = [
        Request.of("/index", token, {"index_name": name_of(len(documents)), "documents": part})
        for part in batches(documents)
    ]
    return require_success(
        run_clients(url, 1, lambda _, number: requests[number] if number < len(requests) else None)
    )


def batches(documents: Sequence[dict[str, str]]) -> Iterator[Sequence[dict[str, str]]]:
    for first in range(0, len(documents), AT_ONCE):
        yield documents[first : first + AT_ONCE]


def name_of(size: int) -> str:
    return f"of {size}"


def questions(
    url: str, token: str, prose: Prose, route: str, size: int, clients: int, requests: int
) -> Outcome:
    """Each asks its own questions, once each; the first few warm the caches."""
    share = requests // clients

    def body(number: int) -> dict[str, str]:
        return {"index_name": name_of(size), "query": prose.question(number)}

    prepared = [Request.of(route, token, body(number)) for number in range(requests + 10)]
    require_success(
        run_clients(url, 1, lambda _, number: prepared[requests + number] if number < 10 else None)
    )
    return require_success(
        run_clients(
            url, clients, lambda client, number: prepared[client * share + number] if number < share else None
        )
    )


def require_success(outcome: Outcome) -> Outcome:
    """Raises RuntimeError unless every answer was a 200: speed at failing is not measured."""
    if outcome.unexpected:
        raise RuntimeError(f"statuses {outcome.statuses}")
    return outcome


def analyze(bench: BenchStack) -> None:
    with psycopg.connect(bench.stack.database_url(), autocommit=True) as connection:
        connection.execute("analyze")


def set_hybrid(bench: BenchStack, expected: bool) -> None:
    """Whether the indexes are searched by word as well."""
    with psycopg.connect(bench.stack.database_url(), autocommit=True) as connection:
        connection.execute(
            "update rag.collections set config = jsonb_build_object('enable_hybrid_search', %s::boolean) "
            "where name like 'of %%'",
            [expected],
        )
