"""What a chat model's endpoint sends, read within bounds: JSON, and streams of it."""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import httpx

from shared.errors import (
    GenerationBusy,
    GenerationFailed,
    GenerationTimedOut,
    RagError,
)
from shared.types import Usage

Body = dict[str, Any]
# Of one event, and of a whole answer: no model says more, and memory is shared.
MAX_EVENT_BYTES = 1024 * 1024
MAX_ANSWER_BYTES = 16 * 1024 * 1024
DONE = b"[DONE]"
# What follows that.
SECONDS_TO_END = 0.05


@contextmanager
def translate_http_errors() -> Iterator[None]:
    try:
        yield
    except (TimeoutError, httpx.TimeoutException):
        raise GenerationTimedOut from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise GenerationFailed from error


async def parts(answer: httpx.Response, deadline: float) -> AsyncGenerator[Body]:
    """The JSON of each event until DONE. Raises GenerationFailed where that never comes."""
    async with aclosing(_events(_lines(answer, deadline))) as events:
        async for data in events:
            if data.strip() == DONE:
                await _ended(events)
                return
            part = read(data)
            if part.get("error"):
                raise GenerationFailed(because="an error in the stream")
            yield part
    raise GenerationFailed(because="the stream ended early")


async def _ended(events: AsyncGenerator[bytes]) -> None:
    """Read on: where the answer ends at once, as it should, its connection serves again."""
    with suppress(TimeoutError, RagError):
        async with asyncio.timeout(SECONDS_TO_END):
            async for _ in events:
                pass


async def _events(lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The data of each event; comments and other fields are passed over."""
    parts: list[bytes] = []
    size = 0
    async with aclosing(lines):
        async for line in lines:
            if line.startswith(b"data:"):
                parts.append(line[5:].removeprefix(b" "))
                size += len(line)
                if size > MAX_EVENT_BYTES:
                    raise GenerationFailed(because="an event is too long")
            elif not line and parts:
                yield b"\n".join(parts)
                parts, size = [], 0
    # The last event may end with the stream.
    if parts:
        yield b"\n".join(parts)


async def _lines(answer: httpx.Response, deadline: float) -> AsyncGenerator[bytes]:
    rest = b""
    async with aclosing(bounded(answer)) as arriving:
        while True:
            with translate_http_errors():
                async with asyncio.timeout_at(deadline):
                    data = await anext(arriving, None)
            if data is None:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line.removesuffix(b"\r")
            if len(rest) > MAX_EVENT_BYTES:
                raise GenerationFailed(because="a line is too long")
    if rest:
        yield rest


async def bounded(answer: httpx.Response) -> AsyncGenerator[bytes]:
    received = 0
    async for data in answer.aiter_bytes():
        received += len(data)
        if received > MAX_ANSWER_BYTES:
            raise GenerationFailed(because="an answer is too long")
        yield data


def read(data: bytes) -> Body:
    """JSON, as strictly as we write it ourselves. Raises GenerationFailed."""
    try:
        content = json.loads(data, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        raise GenerationFailed(because="no JSON") from None
    if not isinstance(content, dict):
        raise GenerationFailed(because="no object")
    return content


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError
    return number


DEFAULT_RETRY_AFTER = "30"


def busy_error(retry_after: str) -> GenerationBusy:
    """What a gateway's 429 is to callers, with its wait, as far as that is a number of seconds."""
    known = retry_after.isascii() and retry_after.isdigit()
    return GenerationBusy(headers={"Retry-After": retry_after if known else DEFAULT_RETRY_AFTER})


def parse_usage(read: Any, written: Any) -> Usage | None:
    """What a gateway says that it counted; None where it says nothing of use."""
    if not (type(read) is type(written) is int and read >= 0 and written >= 0):
        return None
    return Usage(read, written)
