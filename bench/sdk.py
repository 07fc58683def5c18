"""What the Python SDK costs a call: the same requests by it and by httpx alone, on kept connections, in
turns, to a deployment of the functions."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import httpx

from bench.figures import Figure
from bench.stage import Stage, serving
from local import ROOT

ROUNDS = 300
WARMING = 20
QUESTION = "How often must loggers be calibrated?"


def measure(stage: Stage) -> list[Figure]:
    sys.path.append(str(ROOT / "sdk" / "python" / "src"))
    from mnemosyne import Mnemosyne

    with ExitStack() as held:
        server = held.enter_context(serving(stage, "functions.server:create", {}, "--factory"))
        url, token = f"{server.url}/api/v1", stage.token()
        client = held.enter_context(Mnemosyne(token, url))
        http = held.enter_context(
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        )
        (collection, *_) = client.collections.list(limit=1)
        body = {"collection_id": collection.id, "query": QUESTION, "mode": "keyword"}
        return [
            *compared(
                "collections.get",
                lambda: client.collections.get(collection.id),
                lambda: parsed(http.get(f"/collections/{collection.id}")),
            ),
            *compared(
                "retrievals.retrieve",
                lambda: client.retrievals.retrieve(collection.id, QUESTION, mode="keyword"),
                lambda: parsed(http.post("/retrievals", json=body)),
            ),
        ]


def parsed(answer: httpx.Response) -> Any:
    """What somebody without the SDK does at least."""
    return answer.raise_for_status().json()


def compared(name: str, ours: Callable[[], Any], bare: Callable[[], Any]) -> list[Figure]:
    """The p50 of each, in which the server's time is; and what each computes in this process, which is the
    client's own and the same however busy the machine is."""
    waited: dict[str, list[float]] = {"ours": [], "bare": []}
    computed = {"ours": 0.0, "bare": 0.0}
    asked = {"ours": ours, "bare": bare}
    for turn in range(-WARMING, ROUNDS):
        for who in sorted(asked, reverse=turn % 2 == 0):
            began, worked = perf_counter(), thread_time()
            asked[who]()
            if turn >= 0:
                waited[who].append(1000 * (perf_counter() - began))
                computed[who] += 1000 * (thread_time() - worked) / ROUNDS
    p50 = {who: median(found) for who, found in waited.items()}
    note = f"{ROUNDS} rounds in turns"
    return [
        Figure(f"SDK, {name}, p50", p50["ours"], "ms", p50["bare"], "<= 1.1", note),
        Figure(f"SDK, {name}, computed by the client", computed["ours"], "ms", computed["bare"], note=note),
    ]
