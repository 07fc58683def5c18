"""The reverse proxy of deploy/nginx.conf.template before two HTTP servers."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from shared.clients.postgrest import SECRET_HEADER
from tests.reverse_proxy import reverse_proxy
from tests.stand_in_server import Reply, StandIn

MEGABYTE = 1 << 20


def port_of(server: StandIn) -> int:
    return int(server.url.rpartition(":")[2])


@pytest.fixture
def functions() -> Iterator[StandIn]:
    with StandIn() as server:
        server.replies(Reply(json="functions"))
        yield server


@pytest.fixture
def postgrest() -> Iterator[StandIn]:
    with StandIn() as server:
        server.replies(Reply(json="postgrest"))
        yield server


@pytest.fixture
def proxy(functions: StandIn, postgrest: StandIn, tmp_path: Path) -> Iterator[str]:
    with reverse_proxy(port_of(functions), port_of(postgrest), tmp_path) as address:
        yield address


def test_requests_reach_their_server_without_the_functions_secret(
    proxy: str, functions: StandIn, postgrest: StandIn
):
    headers = {"Authorization": "Bearer token", SECRET_HEADER: "guessed"}
    assert httpx.post(f"{proxy}/rest/v1/rpc/rag_match", json={}, headers=headers).json() == "postgrest"
    assert httpx.post(f"{proxy}/api/rag/search?a=b", json={}, headers=headers).json() == "functions"
    ((direct,), (search,)) = postgrest.requests, functions.requests
    assert (direct.path, search.path) == ("/rpc/rag_match", "/api/rag/search?a=b")
    for request in (direct, search):
        assert request.headers["authorization"] == "Bearer token"
        assert request.headers["host"] == proxy.removeprefix("http://")
        assert SECRET_HEADER.lower() not in request.headers


def test_a_large_body_does_not_reach_postgrest(proxy: str, functions: StandIn, postgrest: StandIn):
    address = f"{proxy}/rest/v1/rpc/rag_match"
    for body in (b"x" * (MEGABYTE + 1), iter([b"x" * MEGABYTE, b"x"])):
        answer = httpx.post(address, content=body)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert httpx.post(address, content=b"x" * MEGABYTE).json() == "postgrest"
    assert len(postgrest.requests) == 1
    assert httpx.post(f"{proxy}/api/v1/documents", content=b"x" * (6 * MEGABYTE)).json() == "functions"
    assert httpx.post(f"{proxy}/api/v1/documents", content=b"x" * (9 * MEGABYTE)).status_code == 413


def test_an_address_above_the_rate_waits_and_then_gets_429(proxy: str):
    """Of 125 requests at once, 21 are answered at once, 80 wait for their turn and 24 are refused."""

    async def send() -> tuple[list[httpx.Response], httpx.Response]:
        limits = httpx.Limits(max_connections=None)
        other = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
        async with (
            httpx.AsyncClient(limits=limits, timeout=60) as client,
            httpx.AsyncClient(transport=other) as guest,
        ):
            tasks = {asyncio.create_task(client.get(f"{proxy}/health")) for _ in range(125)}
            refused: list[httpx.Response] = []
            while not refused:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                refused = [answer for task in done if (answer := task.result()).status_code == 429]
            answer = await guest.get(f"{proxy}/health")
            for task in tasks:
                task.cancel()
            return refused, answer

    refused, answer = asyncio.run(send())
    assert refused[0].json()["code"] == "rate_limited"
    assert refused[0].headers["retry-after"] == "1"
    assert answer.json() == "functions"


def test_an_event_passes_before_its_stream_ends(proxy: str, functions: StandIn):
    functions.replies(Reply(chunks=[b"data: 1\n\n", 60.0, b"data: 2\n\n"]))
    functions.replies(Reply(json="functions"))
    httpx.get(proxy)
    with httpx.stream("GET", f"{proxy}/api/v1/chat") as answer:
        assert next(answer.iter_raw()) == b"data: 1\n\n"
    # The proxy also closes its own connection when the client leaves.
    assert functions.left.wait(30)
