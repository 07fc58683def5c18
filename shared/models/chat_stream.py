"""Responses of a chat endpoint, parsed within size limits, whole or streamed."""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import httpx

from shared.errors import GenerationBusy, GenerationFailed, GenerationTimedOut, RagError
from shared.types import Usage

Body = dict[str, Any]
# Limits of the memory for one response. No model writes as much.
MAX_EVENT_BYTES = 1024 * 1024
MAX_ANSWER_BYTES = 16 * 1024 * 1024
DONE = b"[DONE]"
# Time limit of the rest of the response, after DONE.
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
    """The events until DONE. Raises GenerationFailed without DONE."""
    async with aclosing(_events(_lines(answer, deadline))) as events:
        async for data in events:
            if data.strip() == DONE:
                await _drain(events)
                return
            part = read(data)
            if part.get("error"):
                raise GenerationFailed(log_reason="an error in the stream")
            yield part
    raise GenerationFailed(log_reason="the stream ended early")


async def _drain(events: AsyncGenerator[bytes]) -> None:
    """Read the rest of the response, so that its connection can be reused, if it ends soon."""
    with suppress(TimeoutError, RagError):
        async with asyncio.timeout(SECONDS_TO_END):
            async for _ in events:
                pass


async def _events(lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The data of each event; comments and other fields are ignored."""
    data: list[bytes] = []
    size = 0
    async with aclosing(lines):
        async for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
                size += len(line)
                if size > MAX_EVENT_BYTES:
                    raise GenerationFailed(log_reason="an event is too long")
            elif not line and data:
                yield b"\n".join(data)
                data, size = [], 0
    # The last event may end with the stream.
    if data:
        yield b"\n".join(data)


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
                raise GenerationFailed(log_reason="a line is too long")
    if rest:
        yield rest


async def bounded(answer: httpx.Response) -> AsyncGenerator[bytes]:
    received = 0
    async for data in answer.aiter_bytes():
        received += len(data)
        if received > MAX_ANSWER_BYTES:
            raise GenerationFailed(log_reason="an answer is too long")
        yield data


def read(data: bytes) -> Body:
    """A JSON object without NaN and infinity. Raises GenerationFailed."""
    try:
        content = json.loads(data, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        raise GenerationFailed(log_reason="no JSON") from None
    if not isinstance(content, dict):
        raise GenerationFailed(log_reason="no object")
    return content


def read_completion(data: bytes) -> Body:
    """A whole answer. Raises GenerationFailed for one without a choice."""
    body = read(data)
    if not isinstance(body.get("choices"), list) or not body["choices"]:
        raise GenerationFailed(log_reason="no completion")
    return body


def choices(body: Body) -> list[Body]:
    """The choices of a response, or of a part of one."""
    entries = body.get("choices")
    return [choice for choice in entries if isinstance(choice, dict)] if isinstance(entries, list) else []


def content_of(message: Any) -> str:
    """The text of a message or delta, empty for a malformed one."""
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""


def completion_text(body: Body) -> str:
    """The text of an answer's first choice."""
    return "".join(content_of(choice.get("message")) for choice in choices(body)[:1])


def usage_in(body: Body) -> Usage | None:
    """The endpoint's count of tokens in a response, or in a part of one; None without a count."""
    payload = body.get("usage")
    if not isinstance(payload, dict):
        return None
    prompt, completion = payload.get("prompt_tokens"), payload.get("completion_tokens")
    if not (type(prompt) is type(completion) is int and prompt >= 0 and completion >= 0):
        return None
    return Usage(prompt, completion)


class SurrogateJoiner:
    """Joins surrogate pairs that a stream's JSON escapes split between two parts."""

    def __init__(self) -> None:
        self._half = ""

    def joined(self, text: str) -> str:
        """The text. A high surrogate at its end is kept for the next part; an unpaired one becomes U+FFFD."""
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        whole = text[: len(text) - len(self._half)]
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError
    return number


DEFAULT_RETRY_AFTER = "30"


def busy_error(retry_after: str) -> GenerationBusy:
    """The error for a gateway's 429, with its Retry-After, if that is a number of seconds."""
    is_number = retry_after.isascii() and retry_after.isdigit()
    return GenerationBusy(headers={"Retry-After": retry_after if is_number else DEFAULT_RETRY_AFTER})
