"""Asynchronous client of the chat gateway, which passes requests and responses unchanged.

It limits the bytes of a response and of each event, for which the openai package, the client for threads
(openai_model.py), has no option. A connection belongs to one event loop. A server keeps the connections of
its loop for later calls; elsewhere each call opens its own.
"""

import asyncio
import json
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    closing,
    suppress,
)
from typing import Any

import httpx

from shared.access.token_quotas import Quota, add_call, reported_tokens
from shared.clients.http_client import async_client, deadline, http_client, read_at_most
from shared.clients.proxies import proxy_of_url
from shared.config import Settings
from shared.errors import ConfigurationError, GenerationFailed, GenerationRefused
from shared.models.chat_stream import (
    MAX_ANSWER_BYTES,
    Body,
    bounded,
    busy_error,
    choices,
    parts,
    read,
    read_completion,
    translate_http_errors,
)
from shared.text.token_count import count_tokens
from shared.tracing import Call, call, model_attributes, usage_attributes

# Statuses for a fault of the request: the model's name, a parameter, a message.
REFUSED = frozenset({400, 404, 413, 422})
# Time limits of the request for the list of models, and of a streamed answer.
LIST_SECONDS, STREAM_SECONDS = 5.0, 300.0


class ChatGateway:
    """Raises GenerationBusy, GenerationRefused, GenerationTimedOut or GenerationFailed, before and within a
    stream, without the error messages of the endpoint."""

    def __init__(
        self,
        key: str,
        address: str,
        model: str,
        seconds: float,
        stream_seconds: float,
    ) -> None:
        """Raises ConfigurationError for a proxy that cannot be used."""
        proxy_of_url(address)
        self._address = f"{address}/chat/completions"
        self._list_address = f"{address}/models"
        # Uncompressed, so that the bound on bytes is also a bound on the text.
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        self.model = model
        self._seconds = seconds
        self._stream_seconds = stream_seconds
        # Older endpoints refuse `stream_options`.
        self._takes_stream_options = True
        self._clients: dict[AbstractEventLoop, httpx.AsyncClient] = {}

    @asynccontextmanager
    async def keeping_connections(self) -> AsyncIterator[None]:
        """In this event loop, until the context ends."""
        loop = asyncio.get_running_loop()
        if loop in self._clients:
            yield
            return
        async with async_client(self._address, self._seconds) as client:
            self._clients[loop] = client
            try:
                yield
            finally:
                del self._clients[loop]

    def models(self) -> list[Any]:
        """The endpoint's list of its models, unchanged. Raises GenerationFailed, GenerationTimedOut."""
        with (
            translate_http_errors(),
            deadline(LIST_SECONDS),
            http_client(LIST_SECONDS) as client,
            client.stream("GET", self._list_address, headers=self._headers) as answer,
        ):
            if answer.status_code != 200:
                raise GenerationFailed(log_reason=f"status {answer.status_code}")
            content = read_at_most(MAX_ANSWER_BYTES, answer.iter_bytes())
        if content is None:
            raise GenerationFailed(log_reason="a list of models is too long")
        models = read(content).get("data")
        if not isinstance(models, list):
            raise GenerationFailed(log_reason="no list of models")
        return models

    async def complete(self, request: Body) -> Body:
        """The answer, unchanged."""
        with self._call(request) as span, closing(_CallUsage(request)) as usage:
            with translate_http_errors():
                async with asyncio.timeout(self._seconds), self._post(request, usage) as answer:
                    content = bytearray()
                    async for data in bounded(answer):
                        content += data
            completion = read_completion(bytes(content))
            span.attributes |= usage_attributes(completion)
            usage.add(completion, "message")
            return completion

    def _call(self, request: Body) -> AbstractContextManager[Call]:
        # The caller of a chat completion may choose the model.
        model = name if (name := request.get("model")) == self.model else None
        attributes = model_attributes("chat", "openai", model, self._address)
        return call(" ".join(filter(None, ("chat", model))), attributes)

    @asynccontextmanager
    async def stream(self, request: Body) -> AsyncIterator[AsyncGenerator[Body]]:
        """The parts of the response, one of them with the usage, if the endpoint supports it. The endpoint
        has accepted the request when the context begins. The end of the context ends the stream."""
        deadline = asyncio.get_running_loop().time() + self._stream_seconds
        async with AsyncExitStack() as until:
            span = until.enter_context(self._call(request))
            usage = until.enter_context(closing(_CallUsage(request)))
            with translate_http_errors():
                async with asyncio.timeout(self._seconds):
                    answer = await self._open(request, usage, until)
            kind = answer.headers.get("content-type", "")
            if kind.partition(";")[0].strip().lower() != "text/event-stream":
                raise GenerationFailed(log_reason="the answer is no stream")
            yield await until.enter_async_context(aclosing(_counted(parts(answer, deadline), span, usage)))

    async def _open(self, request: Body, usage: "_CallUsage", until: AsyncExitStack) -> httpx.Response:
        if self._takes_stream_options:
            with suppress(GenerationRefused):
                options = given if isinstance(given := request.get("stream_options"), dict) else {}
                with_usage = {**request, "stream_options": {**options, "include_usage": True}}
                return await until.enter_async_context(self._post(with_usage, usage))
        answer = await until.enter_async_context(self._post(request, usage))
        # The endpoint refused the option alone: later requests omit it.
        self._takes_stream_options = False
        return answer

    @asynccontextmanager
    async def _post(self, request: Body, usage: "_CallUsage") -> AsyncIterator[httpx.Response]:
        async with AsyncExitStack() as until:
            # (httpx's own JSON encoder refuses half a surrogate pair.)
            answer = await self._send(json.dumps(request).encode(), usage, until)
            usage.is_sent = answer.status_code == 200
            if answer.status_code == 429:
                raise busy_error(answer.headers.get("retry-after", ""))
            if answer.status_code in REFUSED:
                raise GenerationRefused(log_reason=f"status {answer.status_code}")
            if answer.status_code != 200:
                raise GenerationFailed(log_reason=f"status {answer.status_code}")
            yield answer

    async def _send(self, content: bytes, usage: "_CallUsage", until: AsyncExitStack) -> httpx.Response:
        is_new = False

        async def trace(event: str, _: object) -> None:
            nonlocal is_new
            is_new = is_new or event.startswith("connection.connect_tcp")
            usage.is_sent = usage.is_sent or event.endswith("send_request_body.complete")

        def sending(client: httpx.AsyncClient) -> AbstractAsyncContextManager[httpx.Response]:
            options: Any = {"content": content, "headers": self._headers, "extensions": {"trace": trace}}
            return client.stream("POST", self._address, **options)

        client = self._clients.get(asyncio.get_running_loop())
        if client:
            try:
                return await until.enter_async_context(sending(client))
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                # An idle connection may close while it is reused. On a new one the model may have run.
                if is_new:
                    raise
        own = await until.enter_async_context(async_client(self._address, self._seconds))
        return await until.enter_async_context(sending(own))


class _CallUsage:
    """The tokens of a call of the gateway, added to the usage of the request once the call has ended, also
    with an error or if its reader leaves. A call counts if `is_sent` and not refused."""

    def __init__(self, request: Body) -> None:
        self._request = request
        self._reported: int | None = None
        # By the index of the choice.
        self._texts: dict[str, list[str]] = {}
        self.is_sent = False

    def add(self, body: Body, message: str) -> None:
        """The response, or a part of it. `message`: the name of the field with a choice's text."""
        if (reported := reported_tokens(body)) is not None:
            self._reported = reported
        for choice in choices(body):
            self._texts.setdefault(str(choice.get("index")), []).extend(_strings(choice.get(message)))

    def close(self) -> None:
        if self.is_sent:
            self.is_sent = False
            add_call(Quota.MODEL, self._estimate if self._reported is None else self._reported)

    def _estimate(self) -> int:
        """The tokens of the whole request, and of the texts in all choices."""
        request = json.dumps(self._request, ensure_ascii=False)
        return sum(map(count_tokens, (request, *map("".join, self._texts.values()))))


def _strings(value: Any) -> Iterator[str]:
    """The strings in a message or delta: its text, calls of tools, the reasoning."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


async def _counted(replies: AsyncGenerator[Body], span: Call, usage: _CallUsage) -> AsyncGenerator[Body]:
    """The parts; the counts of tokens are added to the call, and to the usage of the request."""
    with closing(usage):
        async with aclosing(replies):
            async for part in replies:
                if part.get("usage"):
                    span.attributes |= usage_attributes(part)
                usage.add(part, "delta")
                yield part


def chat_gateway_for(settings: Settings) -> ChatGateway | None:
    """The gateway that the settings name, or None. Raises ConfigurationError for one without a key."""
    if settings.rag_llm_api_key is None:
        if settings.model_fields_set & {"rag_llm_url", "rag_llm_model"}:
            raise ConfigurationError(
                "RAG_LLM_API_KEY: not set, but RAG_LLM_URL or RAG_LLM_MODEL is; set it, or remove them; "
                "a gateway without keys accepts any value"
            )
        return None
    return ChatGateway(
        settings.rag_llm_api_key.get_secret_value(),
        settings.rag_llm_url,
        settings.rag_llm_model,
        settings.rag_llm_timeout_seconds,
        STREAM_SECONDS,
    )
