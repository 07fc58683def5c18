"""Server-sent events: how they are written, kept alive and ended."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from shared.errors import GenerationFailed, RagError
from shared.observability.tracing import current

# Proxies close connections that say nothing for a minute, some for half of one.
KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"
# To OpenAPI, which has no words for what an event is.
DESCRIBED: dict[str, Any] = {"content": {"text/event-stream": {}}}

Message = TypeVar("Message")


def event(data: Any, name: str | None = None) -> bytes:
    """An event with JSON, which has no line ends, as its data."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    kind = f"event: {name}\n" if name else ""
    return f"{kind}data: {text}\n\n".encode("utf-8", "replace")


async def peek_first(messages: AsyncGenerator[Message]) -> AsyncGenerator[Message]:
    """The messages, once the first is there: what is wrong before it may still have a status. Raises what
    they raise."""
    try:
        first = await anext(messages)
    except BaseException:
        await messages.aclose()
        raise
    return _after(first, messages)


async def _after(first: Message, messages: AsyncGenerator[Message]) -> AsyncGenerator[Message]:
    async with aclosing(messages):
        yield first
        async for message in messages:
            yield message


async def last_event(messages: AsyncGenerator[Any], kind: type[Message]) -> Message:
    """The message of that kind, which is the last: what happened, as a whole. Raises what they raise, and
    GenerationFailed where it never comes."""
    async with aclosing(messages):
        async for message in messages:
            if isinstance(message, kind):
                return message
    raise GenerationFailed


async def events(
    messages: AsyncGenerator[Any],
    say: Callable[[Any], bytes],
    fail: Callable[[RagError], bytes],
    last: bytes = b"",
) -> AsyncGenerator[bytes]:
    """Each message as it is to be said, and then the last words; or, where something goes wrong on the way,
    what is to be said of that, since it is too late for a status."""
    try:
        async for message in messages:
            yield say(message)
    except RagError as error:
        if trace := current.get():
            trace.error, trace.because = error.code, error.because
        yield fail(error)
        return
    except Exception as fault:
        # A fault of ours: the client learns that it broke off, the log what it was.
        if trace := current.get():
            trace.error, trace.because = RagError.code, f"{type(fault).__name__} in a stream"
        yield fail(RagError())
        return
    if last:
        yield last


class EventStream(StreamingResponse):
    """A response of events, with comments while there are none. `until` is closed when the last is sent, or
    the client is gone."""

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncGenerator[bytes], until: AsyncExitStack, seconds: float = KEEP_ALIVE_SECONDS
    ) -> None:
        # Neither caches nor proxies such as nginx may wait for more.
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(self._kept_alive(), headers=headers)
        self._events = events
        self._until = until
        self._seconds = seconds
        self._waiting: asyncio.Future[bytes | None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._until:
            try:
                await super().__call__(scope, receive, send)
            finally:
                # Out here, where nothing is being cancelled any more, it may take its time.
                await self._stop()

    async def _kept_alive(self) -> AsyncGenerator[bytes]:
        while True:
            self._waiting = asyncio.ensure_future(self._next())
            while not self._waiting.done():
                # Unlike a time-out, it leaves what it waits for alone.
                done, _ = await asyncio.wait({self._waiting}, timeout=self._seconds)
                if not done:
                    yield KEEP_ALIVE
            part = self._waiting.result()
            if part is None:
                return
            yield part

    async def _next(self) -> bytes | None:
        try:
            return await anext(self._events)
        except StopAsyncIteration:
            return None

    async def _stop(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.cancel()
            await asyncio.wait({self._waiting})
        await self._events.aclose()
