"""A chat model's endpoint, spoken to in its own words: what is asked goes there as it is, and what comes back
stays as it was, whole or as a stream.

One connection for each call: it belongs to one of many event loops, and ends when nobody reads.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx

from shared.chat.asked import Body
from shared.chat.reading import as_nouns, bounded, parts, read
from shared.config import Settings
from shared.errors import GenerationFailed, GenerationRefused
from shared.generate import busy
from shared.patience import async_client

# What a caller chose and the endpoint does not take: the model's name, a parameter, a message.
REFUSED = frozenset({400, 404, 413, 422})


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
        with as_nouns():
            async with asyncio.timeout(self._seconds), self._asked(request) as answer:
                content = bytearray()
                async for data in bounded(answer):
                    content += data
        body = read(bytes(content))
        if not isinstance(body.get("choices"), list) or not body["choices"]:
            raise GenerationFailed
        return body

    @asynccontextmanager
    async def stream(self, request: Body) -> AsyncIterator[AsyncGenerator[Body]]:
        """The answer's parts, as they come, until the endpoint says that it is done. It has taken the request
        when this is entered, and is left alone when this is left."""
        deadline = asyncio.get_running_loop().time() + self._stream_seconds
        asked = self._asked(request)
        with as_nouns():
            async with asyncio.timeout(self._seconds):
                answer = await asked.__aenter__()
        try:
            kind = answer.headers.get("content-type", "")
            if kind.partition(";")[0].strip().lower() != "text/event-stream":
                raise GenerationFailed(because="the answer is no stream")
            async with aclosing(parts(answer, deadline)) as said:
                yield said
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
