"""A chat model's endpoint, spoken to in its own words: what is asked goes there as it is, and what comes back
stays as it was, whole or as a stream.

A connection belongs to one of many event loops, and a stream's ends when nobody reads. A server keeps those
of its loop for the calls to come; elsewhere each call has its own.
"""

import asyncio
import json
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import httpx

from shared.clients.http import async_client, deadline, http_client
from shared.config import Settings
from shared.errors import GenerationFailed, GenerationRefused
from shared.models.chat_stream import (
    MAX_ANSWER_BYTES,
    Body,
    bounded,
    busy_error,
    parts,
    read,
    read_completion,
    translate_http_errors,
)

# What a caller chose and the endpoint does not take: the model's name, a parameter, a message.
REFUSED = frozenset({400, 404, 413, 422})
# How long the endpoint's own list of models is waited for.
LIST_SECONDS = 5.0


class ChatGateway:
    """Raises GenerationBusy, GenerationRefused, GenerationTimedOut or GenerationFailed, before a stream and
    within it; what the endpoint said of it stays here."""

    def __init__(self, key: str, address: str, model: str, seconds: float, stream_seconds: float) -> None:
        self._address = f"{address}/chat/completions"
        self._list_address = f"{address}/models"
        # Uncompressed: what is bounded is what comes.
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        self.model = model
        self._seconds = seconds
        self._stream_seconds = stream_seconds
        # Whether it takes `stream_options`; older endpoints refuse what they do not know.
        self._counts = True
        self._kept: dict[AbstractEventLoop, httpx.AsyncClient] = {}

    @asynccontextmanager
    async def keeping_connections(self) -> AsyncIterator[None]:
        """In this event loop, until it is left."""
        loop = asyncio.get_running_loop()
        if loop in self._kept:
            yield
            return
        async with async_client(self._seconds) as client:
            self._kept[loop] = client
            try:
                yield
            finally:
                del self._kept[loop]

    def models(self) -> list[Any]:
        """The endpoint's own list of its models, as it came. Raises GenerationFailed, GenerationTimedOut."""
        content = bytearray()
        with (
            translate_http_errors(),
            deadline(LIST_SECONDS),
            http_client(LIST_SECONDS) as client,
            client.stream("GET", self._list_address, headers=self._headers) as answer,
        ):
            if answer.status_code != 200:
                raise GenerationFailed(because=f"the gateway said {answer.status_code}")
            for data in answer.iter_bytes():
                content += data
                if len(content) > MAX_ANSWER_BYTES:
                    raise GenerationFailed(because="a list of models is too long")
        models = read(bytes(content)).get("data")
        if not isinstance(models, list):
            raise GenerationFailed(because="no list of models")
        return models

    async def complete(self, request: Body) -> Body:
        """The answer, as it came."""
        with translate_http_errors():
            async with asyncio.timeout(self._seconds), self._asked(request) as answer:
                content = bytearray()
                async for data in bounded(answer):
                    content += data
        return read_completion(bytes(content))

    @asynccontextmanager
    async def stream(self, request: Body, *, counted: bool = False) -> AsyncIterator[AsyncGenerator[Body]]:
        """The answer's parts, as they come, until the endpoint says that it is done; `counted` with its usage
        as one of them, from an endpoint that knows how to say that. It has taken the request when this is
        entered, and is left alone when this is left."""
        deadline = asyncio.get_running_loop().time() + self._stream_seconds
        async with AsyncExitStack() as until:
            with translate_http_errors():
                async with asyncio.timeout(self._seconds):
                    answer = await self._begun(request, counted, until)
            kind = answer.headers.get("content-type", "")
            if kind.partition(";")[0].strip().lower() != "text/event-stream":
                raise GenerationFailed(because="the answer is no stream")
            yield await until.enter_async_context(aclosing(parts(answer, deadline)))

    async def _begun(self, request: Body, counted: bool, until: AsyncExitStack) -> httpx.Response:
        if counted and self._counts:
            try:
                asking = {**request, "stream_options": {"include_usage": True}}
                return await until.enter_async_context(self._asked(asking))
            except GenerationRefused:
                answer = await until.enter_async_context(self._asked(request))
                # So that was it; it will not be asked for again.
                self._counts = False
                return answer
        return await until.enter_async_context(self._asked(request))

    @asynccontextmanager
    async def _asked(self, request: Body) -> AsyncIterator[httpx.Response]:
        async with AsyncExitStack() as until:
            # (Its own rendering of JSON does not take half characters.)
            answer = await self._sent(json.dumps(request).encode(), until)
            if answer.status_code == 429:
                raise busy_error(answer.headers.get("retry-after", ""))
            if answer.status_code in REFUSED:
                raise GenerationRefused(because=f"the gateway said {answer.status_code}")
            if answer.status_code != 200:
                raise GenerationFailed(because=f"the gateway said {answer.status_code}")
            yield answer

    async def _sent(self, content: bytes, until: AsyncExitStack) -> httpx.Response:
        is_new = False

        async def trace(event: str, _: object) -> None:
            nonlocal is_new
            is_new = is_new or event.startswith("connection.connect_tcp")

        def sending(client: httpx.AsyncClient) -> AbstractAsyncContextManager[httpx.Response]:
            options: Any = {"content": content, "headers": self._headers, "extensions": {"trace": trace}}
            return client.stream("POST", self._address, **options)

        kept = self._kept.get(asyncio.get_running_loop())
        if kept:
            try:
                return await until.enter_async_context(sending(kept))
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                # A kept one may end just as it is used again; over a new one the model may have worked.
                if is_new:
                    raise
        own = await until.enter_async_context(async_client(self._seconds))
        return await until.enter_async_context(sending(own))


def chat_gateway_for(settings: Settings) -> ChatGateway | None:
    """The endpoint that the settings name, None where they name none."""
    if settings.rag_llm_api_key is None:
        return None
    return ChatGateway(
        settings.rag_llm_api_key.get_secret_value(),
        settings.rag_llm_url,
        settings.rag_llm_model,
        settings.rag_llm_timeout_seconds,
        settings.rag_stream_timeout_seconds,
    )
