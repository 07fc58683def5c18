"""Responses of a chat endpoint, parsed within size limits, whole or streamed."""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any, TypeVar

import httpx

from shared.errors import GenerationFailed, GenerationTimedOut, RagError
from shared.types import Usage

Body = dict[str, Any]
Part = TypeVar("Part")
# Limits of the memory for one response. No model writes as much.
MAX_EVENT_BYTES = 1024 * 1024
MAX_ANSWER_BYTES = 16 * 1024 * 1024
DONE = b"[DONE]"
# Types of the parts of a content that belong to the answer; others are thoughts.
TEXTS = ("text", "output_text")
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


async def parts(
    answer: httpx.Response, deadline: float, error_of: Callable[[Body], RagError]
) -> AsyncGenerator[Body]:
    """The events until DONE; a whole completion, from a server that streams no model, is one. Raises
    `error_of` an event with an error, and GenerationFailed for a stream that breaks off: it has neither DONE
    nor a reason of its end."""
    has_ended = False
    async with aclosing(_events(_lines(answer, deadline))) as events:
        async for data in events:
            if data.strip() == DONE:
                await _drain(events)
                return
            if not data.strip() or data.lstrip().startswith(b":"):
                continue  # A ping of a server that writes it as data.
            part = read(data)
            if part.get("error") or part.get("object") == "error":
                raise error_of({**part, "error": part.get("error") or part})
            if any(choice.get("error") for choice in choices(part)):
                raise GenerationFailed(log_reason="an error in the stream")
            if any("message" in choice and "delta" not in choice for choice in choices(part)):
                part = _as_part(part)
            has_ended = has_ended or any(choice.get("finish_reason") for choice in choices(part))
            yield part
    if not has_ended:
        raise GenerationFailed(log_reason="the stream ended early")


async def with_first(first: Part, rest: AsyncGenerator[Part]) -> AsyncGenerator[Part]:
    """The parts of a stream of which the first was already read."""
    async with aclosing(rest):
        yield first
        async for part in rest:
            yield part


def _as_part(completion: Body) -> Body:
    """A whole completion as a part of a stream."""
    made = [
        {
            **{name: value for name, value in choice.items() if name != "message"},
            "delta": choice.get("message"),
        }
        for choice in choices(completion)
    ]
    return {**completion, "object": "chat.completion.chunk", "choices": made}


async def _drain(events: AsyncGenerator[bytes]) -> None:
    """Read the rest of the response, so that its connection can be reused, if it ends soon."""
    with suppress(TimeoutError, RagError):
        async with asyncio.timeout(SECONDS_TO_END):
            async for _ in events:
                pass


async def _events(lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The data of each event; comments and other fields are ignored. A body that begins with a brace is the
    data of one event."""
    data: list[bytes] = []
    size = 0
    is_json: bool | None = None
    async with aclosing(lines):
        async for line in lines:
            if is_json is None and line.strip():
                is_json = line.lstrip().startswith(b"{")
            if is_json:
                data.append(line)
                size += len(line)
            elif line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
                size += len(line)
            elif not line and data:
                yield b"\n".join(data)
                data, size = [], 0
            if size > MAX_EVENT_BYTES:
                raise GenerationFailed(log_reason="an event is too long")
    # The last event may end with the stream.
    if data:
        yield b"\n".join(data)
    if is_json:
        yield DONE


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
        # Some servers write the end of a stream behind a whole answer.
        text = data.decode().strip().removesuffix("data: [DONE]")
        content = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        raise GenerationFailed(log_reason="no JSON") from None
    if not isinstance(content, dict):
        raise GenerationFailed(log_reason="no object")
    return content


def read_completion(data: bytes) -> Body:
    """A whole answer, also of a server that streams it although no stream was requested. Raises
    GenerationFailed for one without a list of choices, or an error."""
    if not data.lstrip().startswith(b"{") and b"data:" in data:
        events = (line[5:].strip() for line in data.splitlines() if line.startswith(b"data:"))
        body = _joined([read(event) for event in events if event.startswith(b"{")])
    else:
        body = read(data)
    if not isinstance(body.get("choices"), list) and not body.get("error"):
        raise GenerationFailed(log_reason="no completion")
    return body


def _joined(events: list[Body]) -> Body:
    """The completion of a stream's parts: the texts of its first choice."""
    body: Body = {**(events[-1] if events else {}), "object": "chat.completion"}
    deltas = [(choice, choice.get("delta") or {}) for event in events for choice in choices(event)[:1]]
    reasons = [choice["finish_reason"] for choice, _ in deltas if choice.get("finish_reason")]
    if deltas:
        message = {"role": "assistant", "content": "".join(content_of(delta) for _, delta in deltas)}
        body["choices"] = [
            {"index": 0, "message": message, "finish_reason": reasons[-1] if reasons else None}
        ]
    return body | {"usage": next((event["usage"] for event in reversed(events) if event.get("usage")), None)}


def choices(body: Body) -> list[Body]:
    """The choices of a response, or of a part of one."""
    entries = body.get("choices")
    return [choice for choice in entries if isinstance(choice, dict)] if isinstance(entries, list) else []


def content_of(message: Any) -> str:
    """The text of a message or delta, which may come in parts; empty for a malformed one."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") in TEXTS]
        return "".join(text for text in texts if isinstance(text, str))
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
