"""The index API: documents a second, and how long a question takes among 500, 2,000 and 8,000 documents of
120 words each, by one client and by eight.

The embedder and the model answer at once (bench/served_indexes.py), so that everything but those is timed.
KAITO RAGEngine on a like machine, its embedder a stand-in too: 900 documents a second, in memory; questions
by meaning alone 12.7, 12.4 and 23 ms, by both 89, 390 and 1,327 ms.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psycopg
from rich.console import Console

from bench.figures import Figure
from bench.load import Outcome, Request, drive
from bench.prose import Prose
from bench.stage import Stage, serving
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
            with closing(make_services(stack)) as core:
                return asked(Stage(stack, core), console)
        finally:
            stack.remove()


def asked(stage: Stage, console: Console) -> list[Figure]:
    environment = {
        "BENCH_POSTGREST": f"http://127.0.0.1:{stage.stack.state.postgrest_port}",
        # Any key keeps the local model out of the process; nothing is asked of it.
        "OPENAI_API_KEY": "none",
        "RAG_LLM_API_KEY": "none",
    }
    prose, token = Prose(set()), stage.stack.token(ASKER)
    figures: list[Figure] = []
    with serving(stage, "bench.served_indexes:app", environment) as server:
        outcomes = {size: index(server.url, token, texts(prose, size)) for size in SIZES}
        for size, outcome in outcomes.items():
            figures.append(Figure(f"documents indexed a second, {size:,}", size / outcome.elapsed, "1/s"))
        settle(stage)
        for dense in (False, True):
            words_too(stage, not dense)
            way = "by meaning" if dense else "by both"
            for route in ("/query", "/retrieve"):
                figures += asked_of_each(server.url, token, prose, route, way, console)
    figures.append(flatness(figures))
    return figures


def asked_of_each(
    url: str, token: str, prose: Prose, route: str, way: str, console: Console
) -> Iterator[Figure]:
    for size in SIZES:
        for clients, requests in CLIENTS.items():
            outcome = questions(url, token, prose, route, size, clients, requests)
            who = f"{clients} client{'s' if clients > 1 else ''}"
            dearest = size == SIZES[-1] and clients == 1 and way == "by meaning"
            goal = f"<= {UPSTREAM_MS}" if dearest else None
            yield Figure(f"{route} {way}, {size:,} documents, {who}", outcome.p50_ms, "ms", goal=goal)
            console.print(f"{route} {way}, {size:,} documents, {who}: {outcome.p50_ms:.1f} ms")


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
        said = " ".join(prose.document(number).chunks).split()
        yield " ".join(said[:WORDS])


def index(url: str, token: str, said: Iterator[str]) -> Outcome:
    """All of them, by one client, a hundred a request; made beforehand."""
    documents = [{"text": text} for text in said]
    requests = [
        Request.of("/index", token, {"index_name": name_of(len(documents)), "documents": part})
        for part in in_parts(documents)
    ]
    return expected(drive(url, 1, lambda _, number: requests[number] if number < len(requests) else None))


def in_parts(documents: Sequence[dict[str, str]]) -> Iterator[Sequence[dict[str, str]]]:
    for first in range(0, len(documents), AT_ONCE):
        yield documents[first : first + AT_ONCE]


def name_of(size: int) -> str:
    return f"of {size}"


def questions(
    url: str, token: str, prose: Prose, route: str, size: int, clients: int, requests: int
) -> Outcome:
    """Each asks its own questions, once each; the first few warm what is warmed by them."""
    share = requests // clients

    def body(number: int) -> dict[str, str]:
        return {"index_name": name_of(size), "query": prose.question(number)}

    made = [Request.of(route, token, body(number)) for number in range(requests + 10)]
    expected(drive(url, 1, lambda _, number: made[requests + number] if number < 10 else None))
    return expected(
        drive(url, clients, lambda client, number: made[client * share + number] if number < share else None)
    )


def expected(outcome: Outcome) -> Outcome:
    """Raises RuntimeError unless every answer was a 200: speed at failing is not measured."""
    if outcome.unexpected:
        raise RuntimeError(f"statuses {outcome.statuses}")
    return outcome


def settle(stage: Stage) -> None:
    with psycopg.connect(stage.stack.database_url(), autocommit=True) as connection:
        connection.execute("analyze")


def words_too(stage: Stage, wanted: bool) -> None:
    """Whether the indexes are searched by word as well."""
    with psycopg.connect(stage.stack.database_url(), autocommit=True) as connection:
        connection.execute(
            "update rag.collections set config = jsonb_build_object('enable_hybrid_search', %s::boolean) "
            "where name like 'of %%'",
            [wanted],
        )
