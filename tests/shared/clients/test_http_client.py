"""Waits that end: whatever a server does, and for both generations of the HTTP client."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from time import monotonic
from types import SimpleNamespace
from typing import Any

import httpcore
import httpcore2
import httpx
import httpx2
import pytest
from openai import APIError, APITimeoutError

from shared import PRODUCT
from shared.clients import proxies
from shared.clients.http_client import async_client, deadline, http_client, http_transport, openai_client
from shared.clients.http_transport import remaining_seconds
from tests.stand_in_server import Reply, StandIn


@pytest.fixture
def dripping() -> Iterator[StandIn]:
    """Its reply takes 50 seconds, and no single wait is long."""
    with StandIn() as server:
        server.replies(Reply(json="x" * 1000, drip=0.05))
        yield server


def test_a_slow_server_is_abandoned_at_the_deadline(dripping: StandIn):
    with http_client(60) as client, pytest.raises(httpx.TimeoutException), deadline(0.4):
        client.get(dripping.url)
    openai = openai_client("a key", dripping.url, 60)
    with closing(openai), pytest.raises(APITimeoutError), deadline(0.4):
        openai.models.list()


@pytest.fixture
def skip(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of all deadlines forward, by so many seconds."""

    def skip(seconds: float) -> None:
        later = SimpleNamespace(monotonic=lambda: monotonic() + seconds)
        monkeypatch.setattr("shared.clients.http_transport.time", later)
        monkeypatch.setattr("shared.clients.http_client.time", later)

    return skip


def test_without_a_deadline_only_single_waits_are_bounded(dripping: StandIn, skip: Callable[[float], None]):
    with http_client(60) as client, client.stream("GET", dripping.url) as answer:
        pieces = answer.iter_raw(1)
        assert next(pieces) == b'"'
        skip(61)
        assert next(pieces) == b"x"


# The client's own time-out raises the same errors as a deadline, after a minute.


def test_a_silent_address_is_abandoned_at_the_deadline(silent: str):
    with http_client(60) as client:
        started = monotonic()
        with pytest.raises(httpx.ConnectTimeout), deadline(0.4):
            client.get(silent)
        assert monotonic() - started < 60


def test_a_full_connection_pool_is_abandoned_at_the_deadline(dripping: StandIn):
    transport = http_transport(httpx.Limits(max_connections=1))
    with http_client(60, transport) as client, client.stream("GET", dripping.url):
        started = monotonic()
        with pytest.raises(httpx.PoolTimeout), deadline(0.4):
            client.get(dripping.url)
        assert monotonic() - started < 60


def test_an_inner_deadline_only_shortens():
    with deadline(500):
        with deadline(1000):
            assert remaining_seconds() <= 500
        with deadline(100):
            assert remaining_seconds() <= 100
        assert remaining_seconds() > 200
    assert remaining_seconds() == float("inf")


def test_a_connection_is_reused_after_a_deadline(skip: Callable[[float], None]):
    with StandIn() as server, http_client(60) as client:
        server.replies(Reply(json=1))
        with deadline(60):
            assert client.get(server.url).json() == 1
        skip(61)
        with deadline(60):
            assert client.get(server.url).json() == 1
        assert client.get(server.url).json() == 1
        assert server.connections == 1


def test_each_error_of_both_generations_of_httpcore_becomes_one_of_httpx():
    for http, core in ((httpx, httpcore), (httpx2, httpcore2)):
        nouns = [getattr(core, name) for name in core.__all__]
        errors = [noun for noun in nouns if isinstance(noun, type) and issubclass(noun, Exception)]
        assert len(errors) > 10
        for error in errors:
            # httpcore catches this one itself.
            if error is not core.ConnectionNotAvailable:
                assert issubclass(getattr(http, error.__name__), http.TransportError)


def test_every_client_names_the_project():
    with StandIn() as server:
        with http_client(5) as client:
            client.get(server.url)
        for is_gateway in (False, True):
            openai = openai_client("a key", server.url, 5, is_gateway=is_gateway)
            with closing(openai), suppress(APIError):
                openai.models.list()
        asyncio.run(_get(server.url))
        assert [request.headers["user-agent"] for request in server.requests] == [PRODUCT] * 4


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """An HTTP proxy that the environment names. It answers itself."""
    proxies.proxy_of.cache_clear()
    with StandIn() as server:
        server.replies(Reply(json={"data": []}))
        monkeypatch.setenv("HTTP_PROXY", server.url.replace("//", "//user:word@"))
        yield server
    proxies.proxy_of.cache_clear()


def test_addresses_of_settings_are_reached_through_the_proxy(proxy: StandIn):
    address = "http://service.example/v1"
    with http_client(60) as client, deadline(60):
        client.get(address)
    with closing(openai_client("a key", address, 60)) as openai:
        assert list(openai.models.list()) == []
    asyncio.run(_get(address))
    assert [request.path for request in proxy.requests] == [address, f"{address}/models", address]
    assert {request.headers["proxy-authorization"] for request in proxy.requests} == {"Basic dXNlcjp3b3Jk"}


def test_a_proxy_obeys_the_deadline(proxy: StandIn, silent: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", silent)
    with http_client(60) as client, pytest.raises(httpx.ConnectTimeout), deadline(0.4):
        client.get("http://service.example/")


def test_this_machine_and_addresses_of_callers_are_reached_without_a_proxy(proxy: StandIn):
    seen: list[str] = []
    with StandIn() as server:
        server.replies(Reply(json=1))
        for transport in (None, http_transport(admits=seen.append)):
            with http_client(60, transport) as client:
                assert client.get(server.url.replace("127.0.0.1", "localhost")).json() == 1
        asyncio.run(_get(server.url))
        assert len(server.requests) == 3
    with http_client(60, http_transport(admits=seen.append)) as client, pytest.raises(httpx.ConnectError):
        client.get("http://nowhere.invalid/")
    assert "127.0.0.1" in seen
    assert proxy.requests == []


async def _get(url: str) -> None:
    async with async_client(url, 5) as client:
        await client.get(url)


def test_the_head_and_the_body_of_a_request_are_one_write(monkeypatch: pytest.MonkeyPatch):
    writes: list[bytes] = []
    for core in (httpcore, httpcore2):
        stream = type(core.SyncBackend())().connect_tcp.__globals__["SyncStream"]

        def write(own: Any, buffer: bytes, timeout: float | None = None, send: Any = stream.write) -> None:
            writes.append(buffer)
            send(own, buffer, timeout)

        monkeypatch.setattr(stream, "write", write)
    with (
        StandIn() as server,
        http_client(5) as client,
        closing(openai_client("a key", server.url, 5)) as openai,
    ):
        server.replies(Reply(json={"data": []}))
        for request in (
            lambda: client.get(server.url),
            lambda: client.post(server.url, content=b"a short body"),
            lambda: client.post(server.url, content=iter([b"two ", b"parts"])),
            openai.models.list,
        ):
            writes.clear()
            request()
            assert len(writes) == (3 if b"chunked" in writes[0] else 1)
    assert [request.body for request in server.requests][1:2] == [b"a short body"]


def test_an_endpoint_gets_no_cookies_and_redirects_to_no_other():
    moved = Reply(status=307, headers={"Location": "/elsewhere", "Set-Cookie": "user=ann"})
    with StandIn() as server, closing(openai_client("a key", server.url, 5)) as openai:
        server.replies(moved)
        for _ in range(2):
            with pytest.raises(APIError):
                openai.models.list()
        assert [request.path for request in server.requests] == ["/models"] * 2
        assert all("cookie" not in request.headers for request in server.requests)
    with pytest.raises(RuntimeError):
        openai.models.list()
