"""The Python SDK ends what takes too long: an attempt with all its body, a stream after its last part, a key
that does not come. Asked by a client with a key."""

import asyncio
from typing import Any

import httpx
import pytest

from mnemosyne import APITimeoutError, AsyncMnemosyne, Mnemosyne
from tests.sdk.python_client import COLLECTION, DOCUMENT, HOME, KEY, ran
from tests.sdk.test_python_streams import END, MESSAGES, delta
from tests.stand_in_server import Reply, StandIn

ANSWER = {"query": "q", "response": "r"}
# Each byte comes in time; all of them take many seconds.
DRIPPING = 0.1
COMMENTS: list[bytes | float] = [0.05, b": still here\n\n"] * 400


async def _told(url: str, timeout: float) -> None:
    async with AsyncMnemosyne(KEY, url, timeout=timeout, max_retries=0) as client:
        await client.collections.get(HOME)


def test_a_slow_response_ends_with_its_attempt_s_deadline(gateway: StandIn):
    gateway.replies(Reply(json=COLLECTION, drip=DRIPPING))
    late = pytest.raises(APITimeoutError)
    with Mnemosyne(KEY, gateway.url, timeout=0.5, max_retries=0) as client, late:
        client.collections.get(HOME)
    with pytest.raises(APITimeoutError):
        ran(_told(gateway.url, 0.5))


def test_waiting_for_a_document_ends_at_the_deadline_although_bytes_arrive(gateway: StandIn):
    gateway.replies(Reply(json={**DOCUMENT, "status": "completed"}, drip=DRIPPING))
    with Mnemosyne(KEY, gateway.url) as client, pytest.raises(APITimeoutError, match="did not answer"):
        client.documents.wait_until_ready("d1", timeout=1)


@pytest.mark.parametrize(
    ("timeout", "asked", "seconds"),
    [(None, "whole", 180.0), (None, "stream", 60.0), (None, "read", 60.0), (5.0, "whole", 5.0)],
)
def test_a_complete_answer_has_three_minutes_by_default(
    gateway: StandIn, timeout: float | None, asked: str, seconds: float
):
    """As many as deep reasoning may take the server, and some."""
    values: list[float] = []

    def see(request: httpx.Request) -> None:
        values.append(request.extensions["timeout"]["read"])

    with (
        httpx.Client(event_hooks={"request": [see]}) as http,
        Mnemosyne(KEY, gateway.url, timeout=timeout, http_client=http) as client,
    ):
        gateway.replies(Reply(chunks=[END]) if asked == "stream" else Reply(json={**COLLECTION, **ANSWER}))
        if asked == "read":
            client.collections.get(HOME)
        else:
            client.chat.completions.create(HOME, MESSAGES, stream=asked == "stream")
    assert values == [seconds]


async def _read(gateway: StandIn) -> None:
    async with AsyncMnemosyne(KEY, gateway.url) as client:
        stream = await client.chat.completions.create(HOME, MESSAGES, stream=True)
        assert len([chunk async for chunk in stream]) == 2
        assert await asyncio.to_thread(gateway.left.wait, 60)


@pytest.mark.parametrize("after", [COMMENTS, [30.0]])
@pytest.mark.parametrize("half", ["synchronous", "asynchronous"])
def test_a_finished_stream_does_not_wait_for_the_server_to_close(
    gateway: StandIn, half: str, after: list[bytes | float]
):
    gateway.replies(Reply(chunks=[delta("To"), END, *after]))
    if half == "asynchronous":
        ran(_read(gateway))
        return
    with Mnemosyne(KEY, gateway.url) as client:
        assert len(list(client.chat.completions.create(HOME, MESSAGES, stream=True))) == 2
        assert gateway.left.wait(60)


async def _never() -> str:
    await asyncio.Event().wait()
    return KEY


async def _hanging(url: str) -> None:
    key: Any = _never
    async with AsyncMnemosyne(key, url, timeout=0.2) as client:
        await client.collections.get(HOME)


def test_a_key_function_that_does_not_return_is_a_time_out(gateway: StandIn):
    with pytest.raises(APITimeoutError, match="api_key returned no key"):
        ran(_hanging(gateway.url))
    assert gateway.requests == []
