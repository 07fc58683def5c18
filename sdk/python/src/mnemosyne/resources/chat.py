# Generated from aio/ by `make generated`. Do not edit.
"""Chat: answers from documents, whole or as a stream, and stored sessions."""

from collections.abc import Iterable
from typing import Literal, Unpack, overload

from pydantic import TypeAdapter

from mnemosyne import errors
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
from mnemosyne.names import id_of
from mnemosyne.pages import Page
from mnemosyne.requests import WHOLE_SECONDS, Request, path, query, without_none
from mnemosyne.streaming import Stream
from mnemosyne.transport import Transport

_SESSIONS = TypeAdapter(list[ChatSession])
_MESSAGES = TypeAdapter(list[SessionMessage])


class ChatCompletionsResource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @overload
    def create(
        self,
        collection_id: str | None,
        messages: Iterable[ChatMessageParam],
        *,
        stream: Literal[False] | None = False,
        **options: Unpack[ChatOptions],
    ) -> ChatCompletion: ...

    @overload
    def create(
        self,
        collection_id: str | None,
        messages: Iterable[ChatMessageParam],
        *,
        stream: Literal[True],
        **options: Unpack[ChatOptions],
    ) -> Stream[ChatCompletionChunk]: ...

    @overload
    def create(
        self,
        collection_id: str | None,
        messages: Iterable[ChatMessageParam],
        *,
        stream: bool | None,
        **options: Unpack[ChatOptions],
    ) -> ChatCompletion | Stream[ChatCompletionChunk]: ...

    def create(
        self,
        collection_id: str | None,
        messages: Iterable[ChatMessageParam],
        *,
        stream: bool | None = False,
        **options: Unpack[ChatOptions],
    ) -> ChatCompletion | Stream[ChatCompletionChunk]:
        """An answer to the last message. `collection_id`: an id or a name; None searches all of the caller's
        documents, or the session's collection.

        Each turn is stored in a session; send the answer's `session_id` to continue it. A request is repeated
        only if the API did nothing; a stream never after it has begun.
        """
        # The API ignores names that it does not know.
        if unknown := options.keys() - ChatOptions.__annotations__.keys():
            raise TypeError(f"create has no argument {', '.join(sorted(unknown))}")
        fields = without_none(
            collection_id=collection_id and id_of(self._transport, "collection", collection_id),
            messages=list(messages),
            stream=bool(stream),
            **options,
        )
        if stream:
            answer = self._transport.open(Request("POST", "/chat", json=fields, repeatable=False))
            secret, request_id = errors.secret_of(answer), errors.request_id(answer)
            return Stream(
                answer,
                lambda name, data: chunk_of(name, data, secret, request_id),
                lambda chunk: chunk.type == "done",
            )
        request = Request("POST", "/chat", json=fields, repeatable=False, default_seconds=WHOLE_SECONDS)
        return ChatCompletion.of(self._transport.send(request))


class ChatSessionsResource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self, messages: Iterable[SessionMessageParam], *, collection_id: str | None = None
    ) -> SessionReference:
        """A session of 1 to 100 messages of your own, without a search. `collection_id`: an id or a name;
        None for all of the caller's documents."""
        home = collection_id and id_of(self._transport, "collection", collection_id)
        fields = without_none(messages=[*messages], collection_id=home)
        request = Request("POST", "/chat/sessions", json=fields, repeatable=False)
        return SessionReference.of(self._transport.send(request))

    def add_messages(self, session_id: str, messages: Iterable[SessionMessageParam]) -> None:
        """Add 1 to 100 messages of your own, in order. Raises NotFoundError."""
        place = path("chat", "sessions", session_id, "messages")
        fields = {"messages": [*messages]}
        self._transport.send(Request("POST", place, json=fields, repeatable=False))

    def list(self, *, limit: int = 20, offset: int = 0) -> Page[ChatSession]:
        """A page of at most 100 of the caller's sessions, the most recent first."""

        def fetch(offset: int) -> Page[ChatSession]:
            answer = self._transport.send(Request("GET", "/chat/sessions", query(limit=limit, offset=offset)))
            page = validated(_SESSIONS.validate_json, answer)
            return Page(page, None, offset + limit if len(page) == limit else None, fetch)

        return fetch(offset)

    def messages(self, session_id: str, *, limit: int = 1000, offset: int = 0) -> Page[SessionMessage]:
        """A page of at most 1000 messages of the session, in order. Raises NotFoundError."""
        place = path("chat", "sessions", session_id, "messages")

        def fetch(offset: int) -> Page[SessionMessage]:
            answer = self._transport.send(Request("GET", place, query(limit=limit, offset=offset)))
            page = validated(_MESSAGES.validate_json, answer)
            return Page(page, None, offset + limit if len(page) == limit else None, fetch)

        return fetch(offset)

    def delete(self, session_id: str) -> None:
        """Delete the session with its messages. Raises NotFoundError."""
        self._transport.send(Request("DELETE", path("chat", "sessions", session_id)))


class ChatResource:
    def __init__(self, transport: Transport) -> None:
        self.completions = ChatCompletionsResource(transport)
        self.sessions = ChatSessionsResource(transport)
