"""Cost of the Python SDK per call: the same requests with it and with httpx alone, on persistent connections,
alternately."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import httpx

from bench.bench_stack import BenchStack, serve_app
from bench.figures import Figure
from local import ROOT

ROUNDS = 300
WARMING = 20
QUESTION = "How often must loggers be calibrated?"


def measure(bench: BenchStack) -> list[Figure]:
    sys.path.append(str(ROOT / "sdk" / "python" / "src"))
    from mnemosyne import Mnemosyne

    with ExitStack() as stack:
        server = stack.enter_context(serve_app(bench, "functions.server:create", {}, "--factory"))
        url, token = f"{server.url}/api/v1", bench.token()
        client = stack.enter_context(Mnemosyne(token, url))
        http = stack.enter_context(
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        )
        (collection, *_) = client.collections.list(limit=1)
        body = {"collection_id": collection.id, "query": QUESTION, "mode": "keyword"}
        return [
            *compare(
                "collections.get",
                lambda: client.collections.get(collection.id),
                lambda: parse(http.get(f"/collections/{collection.id}")),
            ),
            *compare(
                "retrievals.retrieve",
                lambda: client.retrievals.retrieve(collection.id, QUESTION, mode="keyword"),
                lambda: parse(http.post("/retrievals", json=body)),
            ),
        ]


def parse(answer: httpx.Response) -> Any:
    """The least that a caller without the SDK does."""
    return answer.raise_for_status().json()


def compare(name: str, ours: Callable[[], Any], bare: Callable[[], Any]) -> list[Figure]:
    """The p50 of each, in which the server's time is; and what each computes in this process, which is the
    client's own and the same however busy the machine is."""
    waited: dict[str, list[float]] = {"ours": [], "bare": []}
    computed = {"ours": 0.0, "bare": 0.0}
    request = {"ours": ours, "bare": bare}
    for turn in range(-WARMING, ROUNDS):
        for who in sorted(request, reverse=turn % 2 == 0):
            began, worked = perf_counter(), thread_time()
            request[who]()
            if turn >= 0:
                waited[who].append(1000 * (perf_counter() - began))
                computed[who] += 1000 * (thread_time() - worked) / ROUNDS
    p50 = {who: median(entry) for who, entry in waited.items()}
    note = f"{ROUNDS} rounds in turns"
    return [
        Figure(f"SDK, {name}, p50", p50["ours"], "ms", p50["bare"], "<= 1.1", note),
        Figure(f"SDK, {name}, computed by the client", computed["ours"], "ms", computed["bare"], note=note),
    ]
