"""rag-search over HTTP without embedding: compared with a bare handler that makes the same two database
calls. And rag-answer with a record of each request, compared with the same without."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import httpx
import psycopg
from fastapi.testclient import TestClient

from bench.bench_stack import BenchStack, Server, serve_app
from bench.figures import Figure
from bench.load_generator import Outcome, Request, run_clients
from functions import rag_answer, rag_search
from shared.api.dependencies import services_dependency
from shared.models.embedding_roles import Role
from shared.models.embeddings import embed

ROUNDS = 12
REQUESTS = {1: 150, 8: 400}
ANSWERS = 50
QUESTION = "What does error code E-42 mean?"
BODY = {"query_text": QUESTION, "top_k": 8}


def measure(bench: BenchStack) -> list[Figure]:
    """Both are served at once and asked in turns, so that what else the machine does meets both alike."""
    figures = list(round_trips(bench))
    token = bench.token()
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(
                serve_app(bench, f"bench.served_rag_search:{name}", server_environment(bench))
            )
            for name in ("ours", "bare")
        }
        for clients, requests in REQUESTS.items():
            outcomes = in_turns(servers, "/api/rag/search", clients, requests, token)
            ours, bare = outcomes["ours"], outcomes["bare"]
            who = f"{clients} client{'s' if clients > 1 else ''}"
            figures += [
                Figure(f"rag-search p50, {who}", ours.p50_ms, "ms", bare.p50_ms, "<= 1.3"),
                Figure(f"rag-search throughput, {who}", ours.per_second, "1/s", bare.per_second, ">= 0.8"),
            ]
    return [*figures, recorded(bench)]


def recorded(bench: BenchStack) -> Figure:
    """The time of an answer that is recorded, beside that of one that is not, both asked in turns."""
    with psycopg.connect(bench.stack.database_url(), autocommit=True) as database:
        database.execute("update rag.orgs set record_days = 30")
        with ExitStack() as stack:
            servers = {
                name: stack.enter_context(
                    serve_app(
                        bench,
                        "bench.served_rag_search:answers",
                        {**server_environment(bench), "BENCH_RECORDS": name},
                    )
                )
                for name in ("all", "none")
            }
            outcomes = in_turns(servers, "/api/rag/answer", 1, ANSWERS, bench.token())
        database.execute("update rag.orgs set record_days = null")
    ours, bare = outcomes["all"], outcomes["none"]
    return Figure("rag-answer p50 with a record, 1 client", ours.p50_ms, "ms", bare.p50_ms, "<= 1.3")


def in_turns(
    servers: Mapping[str, Server], path: str, clients: int, requests: int, token: str
) -> dict[str, Outcome]:
    outcomes = {name: Outcome() for name in servers}
    for turn in range(-1, ROUNDS):
        for name in sorted(servers, reverse=turn % 2 == 0):
            outcome = run(servers[name].url, path, clients, requests, token)
            if turn >= 0:  # the first warms both
                outcomes[name].add(outcome)
    return outcomes


def server_environment(bench: BenchStack) -> dict[str, str]:
    """The environment of bench.served_rag_search: the question's vector, embedded beforehand."""
    (vector,) = embed(bench.services.embedder, [QUESTION], Role.QUESTION)
    return {
        "BENCH_VECTOR": json.dumps(vector),
        "BENCH_MODEL": bench.services.embedder.model,
        "BENCH_POSTGREST": f"http://127.0.0.1:{bench.stack.state.postgrest_port}",
        # Any key keeps the local model out of the process, as in a deployment; nothing is asked of it.
        "OPENAI_API_KEY": "none",
    }


def run(url: str, path: str, clients: int, requests: int, token: str) -> Outcome:
    request = Request.of(path, token, BODY)
    return run_clients(url, clients, lambda _, number: request if number < requests // clients else None)


def round_trips(bench: BenchStack) -> Iterator[Figure]:
    """Requests to PostgREST, counted where they leave the process."""
    send = bench.services.database._client._handle
    for function, path in ((rag_search, "/api/rag/search"), (rag_answer, "/api/rag/answer")):
        sent: list[object] = []

        def count(request: httpx.Request, send: Any = send, sent: list[object] = sent) -> httpx.Response:
            sent.append(request)
            response: httpx.Response = send(request)
            return response

        bench.services.database._client._handle = count
        function.app.dependency_overrides[services_dependency] = lambda: bench.services
        try:
            headers = {"Authorization": f"Bearer {bench.token()}"}
            client = TestClient(function.app)
            # The first answer asks whether its org records requests.
            client.post(path, json=BODY, headers=headers).raise_for_status()
            sent.clear()
            client.post(path, json=BODY, headers=headers).raise_for_status()
        finally:
            function.app.dependency_overrides.clear()
            bench.services.database._client._handle = send
        yield Figure(f"database round trips of {path}", len(sent), "", goal="<= 2")
