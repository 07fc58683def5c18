"""The platform's chat with a model that answers at once: time to the first token beside a direct call of the
model, and 50 concurrent streams in one process."""

import asyncio
import json
import os
from contextlib import ExitStack
from statistics import median
from time import perf_counter
from typing import Any

import httpx

from bench.bench_stack import USER_EMAIL, BenchStack, Server, serve_app
from bench.figures import Figure
from local.seed_demo import principals_of
from shared import pipeline
from shared.answering.platform_chat.turn_text import chat_request
from shared.api.contracts.platform.chat_request import Request
from shared.models.chat_gateway import ChatGateway
from shared.types import Query

PATH = "/api/v1/chat"
QUESTION = "How often must loggers be calibrated?"
ROUNDS = 60
STREAMS = 50


def measure(bench: BenchStack) -> list[Figure]:
    with ExitStack() as stack:
        model = stack.enter_context(serve_app(bench, "bench.served_models:app", {"BENCH_TEXTS": os.devnull}))
        gateway = {"RAG_LLM_API_KEY": "none", "RAG_LLM_URL": f"{model.url}/v1"}
        ours = stack.enter_context(serve_app(bench, "functions.server:create", gateway, "--factory"))
        return [*first_tokens(bench, ours, model), *concurrent_streams(bench, ours)]


def first_tokens(bench: BenchStack, ours: Server, model: Server) -> list[Figure]:
    """Ours: from the sources to the first of the text. Directly: from asking with the same prompt to the
    first of it, on a connection of its own as ours has, by our own client and by the bare one; in turns."""
    request = prompt(bench)
    timings: dict[str, list[float]] = {"ours": [], "client": [], "bare": []}
    with httpx.Client(timeout=30) as client:
        for turn in range(-5, ROUNDS):
            measured = {
                "ours": after_retrieval(client, ours, bench.token()),
                "client": asyncio.run(client_stream(model, request)),
                "bare": bare_stream(model, request),
            }
            if turn >= 0:
                for name, seconds in measured.items():
                    timings[name].append(1000 * seconds)
    p50 = {name: median(result) for name, result in timings.items()}
    note = f"{ROUNDS} rounds in turns, a prompt of {len(json.dumps(request)):,} bytes"
    return [
        Figure("first token after retrieval, p50", p50["ours"], "ms", p50["bare"], "<= 1.3", note),
        Figure("first token after retrieval, p50, over the same client", p50["ours"], "ms", p50["client"]),
    ]


def prompt(bench: BenchStack) -> dict[str, Any]:
    """What our function asks the model: the same passages, the same words around them."""
    principal = principals_of(bench.stack)(USER_EMAIL)
    result = pipeline.search(bench.services, principal, Query(QUESTION, 5, neighbours=1))
    settings = bench.services.settings
    turn = Request(message=QUESTION).to_turn()
    request, _ = chat_request(turn, "m", result.matches, "", (), settings.rag_context_tokens)
    return {**request, "stream": True}


def after_retrieval(client: httpx.Client, ours: Server, token: str) -> float:
    headers = {"Authorization": f"Bearer {token}"}
    body = {"message": QUESTION, "retrieval": {"rerank": False}}
    with client.stream("POST", f"{ours.url}{PATH}", json=body, headers=headers) as answer:
        answer.raise_for_status()
        began = 0.0
        for line in answer.iter_lines():
            if line.startswith('data: {"type":"sources"'):
                began = perf_counter()
            elif line.startswith('data: {"type":"delta"'):
                return perf_counter() - began
    raise RuntimeError("no token came")


async def client_stream(model: Server, request: dict[str, Any]) -> float:
    gateway = ChatGateway("none", f"{model.url}/v1", "m", 30, 30)
    began = perf_counter()
    async with gateway.stream(request) as parts:
        async for _ in parts:
            return perf_counter() - began
    raise RuntimeError("no token came")


def bare_stream(model: Server, request: dict[str, Any]) -> float:
    with httpx.Client(timeout=30) as client:
        began = perf_counter()
        with client.stream("POST", f"{model.url}/v1/chat/completions", json=request) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    return perf_counter() - began
    raise RuntimeError("no token came")


def concurrent_streams(bench: BenchStack, ours: Server) -> list[Figure]:
    """As many streams together, and as many one after the other."""
    before = mib(ours)
    together = asyncio.run(streams(ours, bench.token(), STREAMS))
    alone = sum(asyncio.run(streams(ours, bench.token(), 1)) for _ in range(STREAMS))
    return [
        Figure(f"{STREAMS} streams at once, all done after", together, "s", alone, "<= 1"),
        Figure(f"memory after {STREAMS} streams at once", mib(ours), "MiB", before, "<= 1.2"),
    ]


async def streams(ours: Server, token: str, count: int) -> float:
    """How long it takes until the last is done. Raises RuntimeError where one is not answered."""

    async def one(client: httpx.AsyncClient, number: int) -> None:
        body = {"message": f"{QUESTION} ({number})"}
        answer = await client.post(
            f"{ours.url}{PATH}", json=body, headers={"Authorization": f"Bearer {token}"}
        )
        if '"type":"done"' not in answer.text:
            raise RuntimeError(f"a stream ended with {answer.text[-200:]}")

    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=count)) as client:
        began = perf_counter()
        await asyncio.gather(*(one(client, number) for number in range(count)))
        return perf_counter() - began


def mib(server: Server) -> float:
    return float(server.process.memory_info().rss) / 2**20
