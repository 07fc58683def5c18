"""Asynchronous client of the chat gateway.

Models and servers differ in the parameters that they take (model_capabilities.py), in where they put their
thoughts (completion_text.py) and in how they fail (endpoint_failures.py): callers need not know.

It limits the bytes of a response and of each event, for which the openai package, the client for threads
(openai_model.py), has no option. A connection belongs to one event loop. A server keeps the connections of
its loop for later calls; elsewhere each call opens its own.
"""

import asyncio
import json
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, AsyncIterator, Set
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    closing,
    suppress,
)
from copy import copy
from typing import Any

import httpx

from shared.access.token_usage import Quota, add_call, reported_tokens
from shared.clients.http_client import async_client, deadline, http_client, read_at_most
from shared.clients.proxies import proxy_of_url
from shared.config import Settings
from shared.errors import (
    ConfigurationError,
    GenerationEmpty,
    GenerationFailed,
    GenerationFiltered,
    GenerationRefused,
    PromptTooLong,
    RagError,
)
from shared.models.chat_stream import (
    MAX_ANSWER_BYTES,
    Body,
    bounded,
    choices,
    parts,
    read,
    read_completion,
    translate_http_errors,
    with_first,
)
from shared.models.completion_text import (
    has_answer,
    is_filtered,
    parts_without_thoughts,
    until_empty_end,
    without_thoughts,
)
from shared.models.endpoint_failures import MAX_REFUSAL_BYTES, Refusal
from shared.models.endpoint_words import strings_in
from shared.models.model_capabilities import Author, CapabilitiesByModel, ModelCapabilities
from shared.text.token_count import count_tokens
from shared.tracing import Call, call, model_attributes, usage_attributes

# Statuses of refusals that may be about a parameter.
MAY_NAME_PARAMETERS = frozenset({400, 404, 413, 422, 500})
# Forms of one request that are tried, and the pauses before the same form is tried again, in seconds.
MAX_FORMS, PAUSES = 6, (0.25, 1.0)
# A longer Retry-After is handed on to the caller.
MAX_PAUSE = 5.0
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
        effort: str | None = None,
    ) -> None:
        """`effort`: of thinking, for the requests of the product itself. Raises ConfigurationError for a
        proxy that cannot be used."""
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
        self._key = key
        self._capabilities = CapabilitiesByModel(effort)
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

    async def complete(self, request: Body, author: Author = Author.CALLER) -> Body:
        """The completion, whose texts are without thoughts. A model that has returned no text is asked once
        more."""
        capabilities = self._capabilities.of(request, author)
        with translate_http_errors():
            async with asyncio.timeout(self._seconds) as limit:
                completion = await self._complete_once(request, capabilities, limit)
                if not has_answer(completion, "message") and not is_filtered(completion):
                    completion = await self._complete_once(request, capabilities, limit)
        if not has_answer(completion, "message"):
            raise self._error_of_empty(completion)
        return completion

    async def _complete_once(
        self, request: Body, capabilities: ModelCapabilities, limit: asyncio.Timeout
    ) -> Body:
        with self._call(request) as span, closing(_CallUsage(request)) as usage:
            async with self._post(request, capabilities, usage, limit.when()) as answer:
                content = bytearray()
                async for data in bounded(answer):
                    content += data
            completion = read_completion(bytes(content))
            span.attributes |= usage_attributes(completion)
            usage.add(completion, "message")
            return without_thoughts(completion, request, capabilities)

    def _error_of_empty(self, answer: Body) -> RagError:
        """The error for an answer without text."""
        if error := answer.get("error"):
            code = error.get("code") if isinstance(error, dict) else None
            status = code if type(code) is int and 400 <= code < 600 else 500
            return Refusal(status, {}, error).error(self._key)
        reasons = {choice.get("finish_reason") for choice in choices(answer)}
        if is_filtered(answer):
            return GenerationFiltered(log_reason="finish_reason content_filter")
        return GenerationEmpty(log_reason=f"no text, finish_reason {', '.join(map(str, reasons)) or 'none'}")

    def _call(self, request: Body) -> AbstractContextManager[Call]:
        # The caller of a chat completion may choose the model.
        model = name if (name := request.get("model")) == self.model else None
        attributes = model_attributes("chat", "openai", model, self._address)
        return call(" ".join(filter(None, ("chat", model))), attributes)

    @asynccontextmanager
    async def stream(
        self, request: Body, author: Author = Author.CALLER
    ) -> AsyncIterator[AsyncGenerator[Body]]:
        """The parts of the response without thoughts, one of them with the usage, if the endpoint counts. The
        endpoint has accepted the request when the context begins. The end of the context ends the stream.
        A model that has ended without a text is asked once more."""
        deadline = asyncio.get_running_loop().time() + self._stream_seconds
        capabilities = self._capabilities.of(request, author)
        async with AsyncExitStack() as until:
            first = await until.enter_async_context(self._stream_once(request, capabilities, deadline))
            yield await until.enter_async_context(
                aclosing(self._with_second_attempt(first, request, capabilities, deadline))
            )

    async def _with_second_attempt(
        self,
        first: AsyncGenerator[Body],
        request: Body,
        capabilities: ModelCapabilities,
        deadline: float,
    ) -> AsyncGenerator[Body]:
        empty_ends: list[Body] = []
        async for part in until_empty_end(first, empty_ends):
            yield part
        if not empty_ends:
            return
        if is_filtered(empty_ends[0]):
            raise self._error_of_empty(empty_ends[0])
        async with self._stream_once(request, capabilities, deadline) as second:
            async for part in until_empty_end(second, empty_ends):
                yield part
        if len(empty_ends) > 1:
            raise self._error_of_empty(empty_ends[-1])

    @asynccontextmanager
    async def _stream_once(
        self, request: Body, capabilities: ModelCapabilities, deadline: float
    ) -> AsyncIterator[AsyncGenerator[Body]]:
        async with AsyncExitStack() as until:
            span = until.enter_context(self._call(request))
            usage = until.enter_context(closing(_CallUsage(request)))
            options = given if isinstance(given := request.get("stream_options"), dict) else {}
            with_usage = {**request, "stream_options": {**options, "include_usage": True}}
            with translate_http_errors():
                async with asyncio.timeout(self._seconds) as limit:
                    answer = await until.enter_async_context(
                        self._post(with_usage, capabilities, usage, limit.when())
                    )
            arriving = parts(answer, deadline, self._error_of_empty)
            if "text/event-stream" not in answer.headers.get("content-type", ""):
                arriving = await self._checked(arriving)
            replies = _counted(arriving, span, usage)
            yield await until.enter_async_context(
                aclosing(parts_without_thoughts(replies, request, capabilities))
            )

    async def _checked(self, arriving: AsyncGenerator[Body]) -> AsyncGenerator[Body]:
        """The parts of a response that may be no stream, so that its error has a status. Raises it."""
        first: Body = await anext(arriving, {})
        is_whole = all(choice.get("finish_reason") for choice in choices(first))
        if is_whole and not has_answer(first, "delta"):
            await arriving.aclose()
            raise self._error_of_empty(first)
        return with_first(first, arriving)

    @asynccontextmanager
    async def _post(
        self,
        request: Body,
        capabilities: ModelCapabilities,
        usage: "_CallUsage",
        until_time: float | None,
    ) -> AsyncIterator[httpx.Response]:
        """The endpoint's response to the request, in the form that it takes. Another form is tried after a
        refused parameter, and the same one after a failure that may pass, if the time allows it."""
        trial = copy(capabilities)
        pauses = iter(PAUSES)
        forms = 0
        minimal: Body | None = None
        omitted: Set[str] = frozenset()
        while True:
            body = minimal or trial.adapted(request)
            async with AsyncExitStack() as until:
                # (httpx's own JSON encoder refuses half a surrogate pair.)
                answer = await self._send(json.dumps(body).encode(), usage, until)
                usage.is_sent = answer.status_code == 200
                if answer.status_code == 200:
                    if minimal:
                        trial.omit(omitted)
                    capabilities.remember(trial)
                    yield answer
                    return
                refusal = Refusal.of(answer.status_code, answer.headers, await _beginning(answer))
            error = refusal.error(self._key)
            if refusal.status in MAY_NAME_PARAMETERS and forms < MAX_FORMS and minimal is None:
                forms += 1
                is_too_long = isinstance(error, PromptTooLong)
                if trial.reduce_thinking_tokens(body) if is_too_long else trial.learn(body, refusal.content):
                    continue
                # Some gateways hide which parameter is refused.
                if type(error) is GenerationRefused and len(trial.minimal(body)) < len(body):
                    minimal = trial.minimal(body)
                    omitted = body.keys() - minimal.keys()
                    continue
            pause = next(pauses, None)
            if pause is None or refusal.seconds is None:
                raise error
            seconds = max(pause, refusal.seconds)
            remaining = (until_time or 0.0) - asyncio.get_running_loop().time()
            if seconds > min(MAX_PAUSE, remaining / 2):
                raise error
            await asyncio.sleep(seconds)

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
            self._texts.setdefault(str(choice.get("index")), []).extend(strings_in(choice.get(message)))

    def close(self) -> None:
        if self.is_sent:
            self.is_sent = False
            add_call(Quota.MODEL, self._estimate if self._reported is None else self._reported)

    def _estimate(self) -> int:
        """The tokens of the whole request, and of the texts in all choices."""
        request = json.dumps(self._request, ensure_ascii=False)
        return sum(map(count_tokens, (request, *map("".join, self._texts.values()))))


async def _beginning(answer: httpx.Response) -> bytes:
    """The beginning of the body of an error, which may break off."""
    content = bytearray()
    with suppress(httpx.HTTPError):
        async for data in answer.aiter_bytes():
            content += data
            if len(content) > MAX_REFUSAL_BYTES:
                break
    return bytes(content[:MAX_REFUSAL_BYTES])


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
        settings.rag_llm_reasoning_effort,
    )
