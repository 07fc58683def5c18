"""Chat: answers from documents, whole or as a stream, and stored sessions."""

from collections.abc import Iterable
from typing import Literal, Unpack, overload

from pydantic import TypeAdapter

from mnemosyne import errors
from mnemosyne.aio.names import id_of
from mnemosyne.aio.pages import AsyncPage
from mnemosyne.aio.streaming import AsyncStream
from mnemosyne.aio.transport import AsyncTransport
from mnemosyne.chunks import chunk_of
from mnemosyne.models.base import validated
from mnemosyne.models.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatMessageParam,
    ChatOptions,
    ChatSession,
    SessionMessage,
    SessionMessageParam,
    SessionReference,
)
from mnemosyne.requests import WHOLE_SECONDS, Request, path, query, without_none

_SESSIONS = TypeAdapter(list[ChatSession])
_MESSAGES = TypeAdapter(list[SessionMessage])


class AsyncChatCompletionsResource:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    @overload
    async def create(
        self,
        collection_id: str | None,
        messages: Iterable[ChatMessageParam],
        *,
        stream: Literal[False] | None = False,
        **options: Unpack[ChatOptions],
    ) -> ChatCompletion: ...

    @overload
    async def create(
        self,
        collection_id: str | None,
        messages: Iterable[ChatMessageParam],
        *,
        stream: Literal[True],
        **options: Unpack[ChatOptions],
    ) -> AsyncStream[ChatCompletionChunk]: ...

    @overload
    async def create(
        self,
        collection_id: str | None,
        messages: Iterable[ChatMessageParam],
        *,
        stream: bool | None,
        **options: Unpack[ChatOptions],
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk]: ...

    async def create(
        self,
        collection_id: str | None,
        messages: Iterable[ChatMessageParam],
        *,
        stream: bool | None = False,
        **options: Unpack[ChatOptions],
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk]:
        """An answer to the last message. `collection_id`: an id or a name; None searches all of the caller's
        documents, or the session's collection.

        Each turn is stored in a session; send the answer's `session_id` to continue it. A request is repeated
        only if the API did nothing; a stream never after it has begun.
        """
        # The API ignores names that it does not know.
        if unknown := options.keys() - ChatOptions.__annotations__.keys():
            raise TypeError(f"create has no argument {', '.join(sorted(unknown))}")
        fields = without_none(
            collection_id=collection_id and await id_of(self._transport, "collection", collection_id),
            messages=list(messages),
            stream=bool(stream),
            **options,
        )
        if stream:
            answer = await self._transport.open(Request("POST", "/chat", json=fields, repeatable=False))
            secret, request_id = errors.secret_of(answer), errors.request_id(answer)
            return AsyncStream(
                answer,
                lambda name, data: chunk_of(name, data, secret, request_id),
                lambda chunk: chunk.type == "done",
            )
        request = Request("POST", "/chat", json=fields, repeatable=False, default_seconds=WHOLE_SECONDS)
        return ChatCompletion.of(await self._transport.send(request))


class AsyncChatSessionsResource:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, messages: Iterable[SessionMessageParam], *, collection_id: str | None = None
    ) -> SessionReference:
        """A session of 1 to 100 messages of your own, without a search. `collection_id`: an id or a name;
        None for all of the caller's documents."""
        home = collection_id and await id_of(self._transport, "collection", collection_id)
        fields = without_none(messages=[*messages], collection_id=home)
        request = Request("POST", "/chat/sessions", json=fields, repeatable=False)
        return SessionReference.of(await self._transport.send(request))

    async def add_messages(self, session_id: str, messages: Iterable[SessionMessageParam]) -> None:
        """Add 1 to 100 messages of your own, in order. Raises NotFoundError."""
        place = path("chat", "sessions", session_id, "messages")
        fields = {"messages": [*messages]}
        await self._transport.send(Request("POST", place, json=fields, repeatable=False))

    async def list(self, *, limit: int = 20, offset: int = 0) -> AsyncPage[ChatSession]:
        """A page of at most 100 of the caller's sessions, the most recent first."""

        async def fetch(offset: int) -> AsyncPage[ChatSession]:
            answer = await self._transport.send(
                Request("GET", "/chat/sessions", query(limit=limit, offset=offset))
            )
            page = validated(_SESSIONS.validate_json, answer)
            return AsyncPage(page, None, offset + limit if len(page) == limit else None, fetch)

        return await fetch(offset)

    async def messages(
        self, session_id: str, *, limit: int = 1000, offset: int = 0
    ) -> AsyncPage[SessionMessage]:
        """A page of at most 1000 messages of the session, in order. Raises NotFoundError."""
        place = path("chat", "sessions", session_id, "messages")

        async def fetch(offset: int) -> AsyncPage[SessionMessage]:
            answer = await self._transport.send(Request("GET", place, query(limit=limit, offset=offset)))
            page = validated(_MESSAGES.validate_json, answer)
            return AsyncPage(page, None, offset + limit if len(page) == limit else None, fetch)

        return await fetch(offset)

    async def delete(self, session_id: str) -> None:
        """Delete the session with its messages. Raises NotFoundError."""
        await self._transport.send(Request("DELETE", path("chat", "sessions", session_id)))


class AsyncChatResource:
    def __init__(self, transport: AsyncTransport) -> None:
        self.completions = AsyncChatCompletionsResource(transport)
        self.sessions = AsyncChatSessionsResource(transport)
