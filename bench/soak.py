"""Long measurements: memory after 50,000 requests, and ten minutes of mixed load by 16 clients."""

import os
import random
from time import monotonic, sleep

import httpx
import psycopg

from bench.bench_stack import BenchStack, Server, serve_app
from bench.figures import Figure
from bench.http_path import run_search_clients, server_environment
from bench.load_generator import Outcome, Request, run_clients

REQUESTS = int(os.environ.get("BENCH_REQUESTS", "50000"))
MINUTES = float(os.environ.get("BENCH_MINUTES", "10"))
CLIENTS = 16
QUESTIONS = (
    "What does error code E-42 mean?",
    "How often must loggers be calibrated?",
    "What happened in incident INC-4821?",
    "Wie wird kalibriert?",
)


def memory(bench: BenchStack) -> list[Figure]:
    """Of one worker as deployed, without the local model."""
    with serve_app(bench, "bench.served_rag_search:ours", server_environment(bench)) as server:
        run_search_clients(server.url, 8, 400, bench.token())
        warm = mib(server)
        run_search_clients(server.url, 8, REQUESTS, bench.token())
        after = mib(server)
    note = f"{REQUESTS} requests from 8 clients"
    return [
        Figure("memory of a warm worker", warm, "MiB"),
        Figure("memory of the worker afterwards", after, "MiB", warm, "<= 1.1", note),
    ]


def mixed_load(bench: BenchStack) -> list[Figure]:
    """All functions in one worker, local model: searches, answers, key lists, health, bad requests."""
    with serve_app(bench, "functions.server:create", {}, "--factory") as server:
        run_mixed_load(server, bench, 0.25)
        before, files = mib(server), open_files(server)
        outcome = run_mixed_load(server, bench, MINUTES)
        after, files_after = mib(server), open_files(server)
    with psycopg.connect(bench.stack.database_url()) as connection:
        busy = "select count(*) from pg_stat_activity where usename = 'authenticator' and state <> 'idle'"
        (active,) = connection.execute(busy).fetchone() or (None,)
    by_status = dict(sorted(outcome.statuses.items()))
    total = len(outcome.seconds)
    note = f"{total} requests in {outcome.elapsed / 60:.1f} minutes, {CLIENTS} clients, by status {by_status}"
    return [
        Figure("mixed load, requests a second", outcome.per_second, "1/s", note=note),
        Figure("mixed load, unexpected answers", outcome.unexpected, "", goal="<= 0"),
        Figure("mixed load, memory afterwards", after, "MiB", before, "<= 1.1"),
        Figure("mixed load, connections and files left open", files_after - files, "", goal="<= 0"),
        Figure("mixed load, statements left running", float(active), "", goal="<= 0"),
    ]


def run_mixed_load(server: Server, bench: BenchStack, number: float) -> Outcome:
    token = bench.token()
    response = httpx.post(
        f"{server.url}/api/keys",
        headers={"Authorization": f"Bearer {bench.stack.token('ines@halden.example')}"},
        json={"name": "bench", "scopes": ["admin"]},
    )
    key = response.json()["key"]
    choices = [
        *[Request.of("/api/rag/search", token, {"query_text": text}) for text in QUESTIONS],
        *[Request.of("/api/rag/answer", token, {"query_text": text}) for text in QUESTIONS],
        Request.of("/api/keys", key, method="GET"),
        Request.of("/health", token, method="GET"),
        Request.of("/api/rag/search", token, {"query_text": ""}, expects=400),
        Request.of("/api/rag/search", "no token", {"query_text": "x"}, expects=401),
    ]
    deadline = monotonic() + number * 60
    draw = random.Random(7)  # noqa: S311  # not a secret

    def next_request(_: int, __: int) -> Request | None:
        return draw.choice(choices) if monotonic() < deadline else None

    return run_clients(server.url, CLIENTS, next_request)


def mib(server: Server) -> float:
    return float(server.process.memory_info().rss) / 2**20


def open_files(server: Server) -> int:
    """Once it has come to rest: kept connections end after five seconds, when the next request finds them."""
    sleep(6)
    httpx.get(f"{server.url}/health").raise_for_status()
    sleep(1)
    return int(server.process.num_fds())
