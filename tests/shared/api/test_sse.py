"""Server-sent events on their own: what they look like, silence, ends, and who is told to stop."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
from starlette.requests import ClientDisconnect

from shared.api.sse import KEEP_ALIVE, EventStream, event, events
from shared.errors import GenerationFailed, RagError

T = TypeVar("T")
SCOPE = {"type": "http", "asgi": {"spec_version": "2.3"}}


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """In a thread of its own, since the main one's loop is pytest's."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def encode_error(error: RagError) -> bytes:
    return event({"error": error.code})


async def sent_bytes(
    text: AsyncGenerator[bytes], seconds: float = 15, until: AsyncExitStack | None = None,
    leaves: Callable[[bytes], bool] = lambda _: False,
) -> list[bytes]:  # fmt: skip
    """What a client gets, who leaves once something is said to which `leaves` says yes."""
    got: list[bytes] = []
    gone = asyncio.Event()

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if body := message.get("body"):
            got.append(body)
            if leaves(body):
                gone.set()

    stream = EventStream(text, until or AsyncExitStack(), seconds)
    await stream(SCOPE, receive, send)
    return got


def test_an_event_is_one_line_of_json():
    hard = {"a": 'line\nend\r\n"\u2028', "b": "\ud800", "c": "ö"}
    text = event(hard).decode()
    assert text.startswith("data: {")
    assert text.endswith("}\n\n")
    assert text.count("\n") == 2
    assert "\r" not in text
    assert json.loads(text.removeprefix("data: ")) == {**hard, "b": "?"}
    assert event({}, "meta") == b"event: meta\ndata: {}\n\n"


def test_an_error_during_the_stream_replaces_the_end_event():
    async def one() -> AsyncGenerator[int]:
        yield 1
        raise GenerationFailed(log_reason="secret")

    got = run(sent_bytes(events(one(), event, encode_error, b"data: [DONE]\n\n")))
    assert got == [b"data: 1\n\n", b'data: {"error":"generation_failed"}\n\n']


def test_comments_fill_pauses_and_lose_nothing():
    comments: list[bytes] = []

    async def slow() -> AsyncGenerator[bytes]:
        for number in range(3):
            while len(comments) <= 2 * number:
                await asyncio.sleep(0.01)
            yield event(number)

    def stays(part: bytes) -> bool:
        comments.extend([part] if part == KEEP_ALIVE else [])
        return False

    got = run(sent_bytes(slow(), seconds=0.1, leaves=stays))
    assert [part for part in got if part != KEEP_ALIVE] == [b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"]


@pytest.mark.parametrize("silent", [True, False], ids=["in silence", "in the middle of talk"])
def test_a_disconnected_client_stops_the_generator_before_its_resources_close(silent: bool):
    happened: list[str] = []

    async def endless() -> AsyncGenerator[bytes]:
        try:
            while True:
                yield event(1)
                await asyncio.sleep(30 if silent else 0)
        finally:
            await asyncio.sleep(0.05)
            happened.append("stopped")

    async def leave() -> None:
        async def close() -> None:
            await asyncio.sleep(0)
            happened.append("closed")

        until = AsyncExitStack()
        until.push_async_callback(close)
        got = await sent_bytes(endless(), until=until, leaves=lambda _: True)
        assert got[0] == b"data: 1\n\n"
        assert len(asyncio.all_tasks()) == 1, "nothing runs on"

    run(leave())
    assert happened == ["stopped", "closed"]


def test_a_stream_that_never_began_closes_its_resources():
    closed: list[bool] = []

    async def broken(*_: Any) -> Any:
        raise OSError

    async def never() -> AsyncGenerator[bytes]:
        yield b""

    async def begin() -> None:
        until = AsyncExitStack()
        until.callback(closed.append, True)
        stream = EventStream(never(), until)
        with pytest.raises(ClientDisconnect):
            await stream({**SCOPE, "asgi": {"spec_version": "2.4"}}, broken, broken)

    run(begin())
    assert closed == [True]
