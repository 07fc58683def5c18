"""A chat model's endpoint, spoken to in its own words: what is asked goes there as it is, and what comes back
stays as it was, whole or as a stream.

One connection for each call: it belongs to one of many event loops, and ends when nobody reads.
"""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any

import httpx

from shared.config import Settings
from shared.errors import GenerationFailed, GenerationRefused, GenerationTimedOut
from shared.generate import busy
from shared.patience import async_client

Body = dict[str, Any]

# Of one event, and of a whole answer: no model says more, and memory is shared.
MAX_EVENT_BYTES = 1024 * 1024
MAX_ANSWER_BYTES = 16 * 1024 * 1024
# What a caller chose and the endpoint does not take: the model's name, a parameter, a message.
REFUSED = frozenset({400, 404, 413, 422})
DONE = b"[DONE]"


class ChatGateway:
    """Raises GenerationBusy, GenerationRefused, GenerationTimedOut or GenerationFailed, before a stream and
    within it; what the endpoint said of it stays here."""

    def __init__(self, key: str, address: str, model: str, seconds: float, stream_seconds: float) -> None:
        self._address = f"{address}/chat/completions"
        # Uncompressed: what is bounded is what comes.
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        self.model = model
        self._seconds = seconds
        self._stream_seconds = stream_seconds

    async def complete(self, request: Body) -> Body:
        """The answer, as it came."""
        with _as_nouns():
            async with asyncio.timeout(self._seconds), self._asked(request) as answer:
                content = bytearray()
                async for data in _bounded(answer):
                    content += data
        body = _read(bytes(content))
        if not isinstance(body.get("choices"), list) or not body["choices"]:
            raise GenerationFailed
        return body

    @asynccontextmanager
    async def stream(self, request: Body) -> AsyncIterator[AsyncGenerator[Body]]:
        """The answer's parts, as they come, until the endpoint says that it is done. It has taken the request
        when this is entered, and is left alone when this is left."""
        deadline = asyncio.get_running_loop().time() + self._stream_seconds
        asked = self._asked(request)
        with _as_nouns():
            async with asyncio.timeout(self._seconds):
                answer = await asked.__aenter__()
        try:
            kind = answer.headers.get("content-type", "")
            if kind.partition(";")[0].strip().lower() != "text/event-stream":
                raise GenerationFailed(because=f"no stream but {kind[:50]!r}")
            async with aclosing(_parts(answer, deadline)) as parts:
                yield parts
        finally:
            await asked.__aexit__(None, None, None)

    @asynccontextmanager
    async def _asked(self, request: Body) -> AsyncIterator[httpx.Response]:
        async with async_client(self._seconds) as client:
            # (Its own rendering of JSON does not take half characters.)
            content = json.dumps(request).encode()
            sending = client.stream("POST", self._address, content=content, headers=self._headers)
            async with sending as answer:
                if answer.status_code == 429:
                    raise busy(answer.headers.get("retry-after", ""))
                if answer.status_code in REFUSED:
                    raise GenerationRefused(because=f"the gateway said {answer.status_code}")
                if answer.status_code != 200:
                    raise GenerationFailed(because=f"the gateway said {answer.status_code}")
                yield answer


def chat_gateway_for(settings: Settings) -> ChatGateway | None:
    """The endpoint that the settings name, None where they name none."""
    if settings.lovable_api_key is None:
        return None
    return ChatGateway(
        settings.lovable_api_key.get_secret_value(),
        settings.rag_gateway_url,
        settings.rag_gateway_model,
        settings.rag_gateway_timeout_seconds,
        settings.rag_stream_timeout_seconds,
    )


@contextmanager
def _as_nouns() -> Iterator[None]:
    try:
        yield
    except (TimeoutError, httpx.TimeoutException):
        raise GenerationTimedOut from None
    except (httpx.HTTPError, httpx.InvalidURL) as failed:
        raise GenerationFailed from failed


async def _parts(answer: httpx.Response, deadline: float) -> AsyncGenerator[Body]:
    """What is said until DONE. Raises GenerationFailed where that never comes."""
    async with aclosing(_events(_lines(answer, deadline))) as events:
        async for data in events:
            if data.strip() == DONE:
                return
            part = _read(data)
            if part.get("error"):
                raise GenerationFailed(because="an error in the stream")
            yield part
    raise GenerationFailed(because="the stream ended early")


async def _events(lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The data of each event; comments and other fields are passed over."""
    said: list[bytes] = []
    async with aclosing(lines):
        async for line in lines:
            if line.startswith(b"data:"):
                said.append(line[5:].removeprefix(b" "))
                if sum(map(len, said)) > MAX_EVENT_BYTES:
                    raise GenerationFailed(because="an event is too long")
            elif not line and said:
                yield b"\n".join(said)
                said = []
    # The last event may end with the stream.
    if said:
        yield b"\n".join(said)


async def _lines(answer: httpx.Response, deadline: float) -> AsyncGenerator[bytes]:
    rest = b""
    async with aclosing(_bounded(answer)) as arriving:
        while True:
            with _as_nouns():
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


async def _bounded(answer: httpx.Response) -> AsyncGenerator[bytes]:
    taken = 0
    async for data in answer.aiter_bytes():
        taken += len(data)
        if taken > MAX_ANSWER_BYTES:
            raise GenerationFailed(because="an answer is too long")
        yield data


def _read(data: bytes) -> Body:
    """JSON, as strictly as we write it ourselves. Raises GenerationFailed."""
    try:
        found = json.loads(data, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        raise GenerationFailed(because="no JSON") from None
    if not isinstance(found, dict):
        raise GenerationFailed(because="no object")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError
    return number
