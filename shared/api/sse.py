"""Server-sent events: format, keep-alive comments, end of a stream."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from shared.errors import GenerationFailed, RagError
from shared.models.chat_stream import with_first
from shared.tracing import current

# Proxies close connections that are silent for a minute, some for half a minute.
KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"
# The response in OpenAPI, which cannot describe single events.
DESCRIBED: dict[str, Any] = {"content": {"text/event-stream": {}}}

Message = TypeVar("Message")


def event(data: Any, name: str | None = None) -> bytes:
    """An event with JSON on one line as its data."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    kind = f"event: {name}\n" if name else ""
    return f"{kind}data: {text}\n\n".encode("utf-8", "replace")


async def peek_first(messages: AsyncGenerator[Message]) -> AsyncGenerator[Message]:
    """The messages, after the first has arrived: an error before it can still have a status. Raises the
    errors of `messages`."""
    try:
        first = await anext(messages)
    except BaseException:
        await messages.aclose()
        raise
    return with_first(first, messages)


async def last_event(messages: AsyncGenerator[Any], kind: type[Message]) -> Message:
    """The last message, which has the type `kind`. Raises GenerationFailed without one, and the errors of
    `messages`."""
    async with aclosing(messages):
        async for message in messages:
            if isinstance(message, kind):
                return message
    raise GenerationFailed


async def events(
    messages: AsyncGenerator[Any],
    encode: Callable[[Any], bytes],
    fail: Callable[[RagError], bytes],
    last: bytes = b"",
) -> AsyncGenerator[bytes]:
    """The encoded messages, then `last`. After an error the stream ends with the event of `fail`, since the
    status is already sent."""
    try:
        async for message in messages:
            yield encode(message)
    except RagError as error:
        if trace := current.get():
            trace.error, trace.log_reason = error.code, error.log_reason
        yield fail(error)
        return
    except Exception as fault:
        # An internal error: the client gets no details, the log has the type.
        if trace := current.get():
            trace.error, trace.log_reason = RagError.code, f"{type(fault).__name__} in a stream"
        yield fail(RagError())
        return
    if last:
        yield last


async def stream_response(
    messages: AsyncGenerator[Any], encode: Callable[[Any], bytes], fail: Callable[[RagError], bytes]
) -> "EventStream":
    """A response of encoded messages. Raises the error of the first message, whose status is not sent yet."""
    async with AsyncExitStack() as stack:
        peeked = await stack.enter_async_context(aclosing(await peek_first(messages)))
        return EventStream(events(peeked, encode, fail), stack.pop_all())


class EventStream(StreamingResponse):
    """A response of events, with comments in pauses. `until` is closed after the last event, or when the
    client disconnects."""

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncGenerator[bytes], until: AsyncExitStack, seconds: float = KEEP_ALIVE_SECONDS
    ) -> None:
        # Caches and proxies such as nginx must not buffer events.
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
                # Here the task is no longer cancelled, so that the stop may take time.
                await self._stop()

    async def _kept_alive(self) -> AsyncGenerator[bytes]:
        while True:
            self._waiting = asyncio.ensure_future(self._next())
            while not self._waiting.done():
                # Unlike asyncio.timeout, this does not cancel the event.
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
