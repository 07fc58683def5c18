"""The Python SDK's key: asked for before each attempt where a function gives it, and in no error,
also from a server that repeats it. The caller is a client with a key."""

import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mnemosyne import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AsyncMnemosyne,
    ConfigurationError,
    DocumentFailedError,
    Mnemosyne,
    StreamInterruptedError,
)
from tests.sdk.python_client import COLLECTION, DOCUMENT, HOME, KEY, ran
from tests.sdk.test_python_streams import MESSAGES, delta, event
from tests.stand_in_server import Reply, StandIn

BUSY = Reply(status=503, json={})
COLLECTION_REPLY = Reply(json=COLLECTION)
TIME = "2026-11-14T10:30:00Z"
DETAILS = {"field": KEY, KEY: [{"deeper": f"<{KEY}>"}]}
ECHO = {"message": f"Bearer {KEY}", "code": KEY, "type": f"of {KEY}", "details": DETAILS}


def shown(error: BaseException) -> str:
    """All that a log or a service for errors may show of it: what it came from, too."""
    text, at = "", [error]
    while at:
        one = at.pop()
        text += f"{one!r} {vars(one)} {getattr(one, 'request', None) and vars(one)}"
        at += [inner for inner in (one.__cause__, one.__context__) if inner]
    return text + "".join(traceback.format_exception(error))


@pytest.fixture
def client(gateway: StandIn) -> Iterator[Mnemosyne]:
    with Mnemosyne(KEY, gateway.url, max_retries=0) as opened:
        yield opened


@pytest.mark.parametrize(
    ("call", "reply"),
    [
        ("get", Reply(status=400, json={"error": ECHO}, headers={"X-Request-Id": KEY})),
        ("get", Reply(drop=True)), ("get", Reply(json={"id": KEY})),
        ("get", Reply(body=f"<p>{KEY}</p>".encode())),
        ("get", Reply(status=502, body=f"<p>Authorization: Bearer {KEY}</p>".encode())),
        ("get", Reply(status=409, json=["no", {"form": KEY}])),
        ("health", Reply(json={"status": "x", "version": "1", "services": {KEY: 1}, "timestamp": TIME})),
        ("stream", Reply(chunks=[event(type="error", error=KEY, error_detail=ECHO)])),
        ("stream", Reply(chunks=[delta("To")], drop=True)),
        ("stream", Reply(chunks=[event(type="done", metadata={
            "confidence_detail": {"level": "x", "score": 1, "thresholds": {KEY: "y"}}
        })])),
        ("wait", Reply(json={**DOCUMENT, "status": "failed", "error": ECHO})),
        ("wait", Reply(json={**DOCUMENT, "error": ECHO})),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("quick_sleep")
def test_no_error_shows_the_key_although_the_server_echoes_it(
    gateway: StandIn, client: Mnemosyne, call: str, reply: Reply, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    gateway.replies(reply)
    calls: dict[str, Callable[[], Any]] = {
        "get": lambda: client.collections.get(HOME),
        "health": client.health,
        "stream": lambda: list(client.chat.completions.create(HOME, MESSAGES, stream=True)),
        "wait": lambda: client.documents.wait_until_ready("d1", timeout=60),
    }
    with pytest.raises((APIError, APIConnectionError, DocumentFailedError)) as raised:
        calls[call]()
    assert KEY not in shown(raised.value)
    # httpcore's log has the headers of the response; the server is the one that repeats the key there.
    assert caplog.text
    assert "X-Request-Id" in reply.headers or KEY not in caplog.text
    # What a fault of the network came from knows the request, and so its headers.
    assert raised.value.__context__ is None
    if isinstance(raised.value, APIError) and raised.value.status_code == 400:
        hidden = "[the API key]"
        assert raised.value.details == {"field": hidden, hidden: [{"deeper": f"<{hidden}>"}]}
    assert not isinstance(raised.value, StreamInterruptedError) or "broke off" in str(raised.value)
    assert not isinstance(raised.value, APITimeoutError) or "processing" in str(raised.value)


async def _asked(url: str, key: Any) -> None:
    async with AsyncMnemosyne(key, url) as client:
        await client.collections.get(HOME)


@pytest.mark.parametrize("kind", ["function", "coroutine", "synchronous client"])
def test_a_key_function_is_called_before_each_attempt(gateway: StandIn, kind: str):
    gateway.replies(BUSY, COLLECTION_REPLY)
    tokens = iter(("first", "second"))

    async def renewed() -> str:
        return next(tokens)

    if kind == "synchronous client":
        with Mnemosyne(lambda: next(tokens), gateway.url) as client:
            client.collections.get(HOME)
    else:
        ran(_asked(gateway.url, renewed if kind == "coroutine" else lambda: next(tokens)))
    texts = [request.headers["authorization"] for request in gateway.requests]
    assert texts == ["Bearer first", "Bearer second"]


async def _coroutine() -> str:
    return KEY


@pytest.mark.parametrize(
    "given", [lambda: None, lambda: "", lambda: f"{KEY} x", lambda: f"{KEY}\n.", _coroutine]
)
def test_an_invalid_key_from_a_function_is_neither_sent_nor_shown(gateway: StandIn, given: Any):
    """Nor is a coroutine, by the client that cannot await it."""
    with Mnemosyne(given, gateway.url) as client, pytest.raises(ConfigurationError) as raised:
        client.collections.get(HOME)
    assert KEY not in shown(raised.value)
    assert gateway.requests == []


def test_an_exception_of_a_key_function_is_raised_unchanged_and_once(gateway: StandIn):
    requests = []

    def fails() -> str:
        requests.append(1)
        raise ConnectionResetError("the identity provider")

    with Mnemosyne(fails, gateway.url) as client, pytest.raises(ConnectionResetError):
        client.collections.get(HOME)
    assert (requests, gateway.requests) == ([1], [])
