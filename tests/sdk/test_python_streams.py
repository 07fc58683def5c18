"""The Python SDK's chat: whole and as a stream, of the real function with a scripted model, and of a server
that breaks off. Asked by ann, and by a client with a key."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, assert_type

import pytest

from functions import chat
from mnemosyne import (
    AsyncMnemosyne,
    AuthenticationError,
    Mnemosyne,
    Stream,
    StreamInterruptedError,
    UnexpectedResponseError,
)
from mnemosyne.models import ChatCompletion, ChatCompletionChunk, ChatMessageParam
from shared.api.contracts.platform.chat_response import encode_error
from shared.config import Settings
from shared.errors import Unauthorized
from shared.services import Services
from tests.conftest import People
from tests.functions.app_server import live, services_with
from tests.functions.platform_chat_client import ANSWER, QUESTION, reply_of, streams
from tests.functions.search_workspace import Workspace, workspace
from tests.sdk.python_client import HOME, KEY, key_of, ran
from tests.stand_in_server import Reply, StandIn

MESSAGES: list[ChatMessageParam] = [{"role": "user", "content": QUESTION}]
PIECES = ("Stripe webhook ", "retries piled up ", "in the queue.")
LONG = 30.0


@pytest.fixture
def home(services: Services, people: People) -> Workspace:
    return workspace(services, people.ann)


@contextmanager
def chatting(settings: Settings, gateway: StandIn, home: Workspace) -> Iterator[Mnemosyne]:
    """Ann's client of a deployment with that model."""
    model = {"rag_llm_api_key": "sk-model", "rag_llm_url": gateway.url}
    with (
        services_with(settings, **model) as services,
        live(chat.app, services) as url,
        Mnemosyne(key_of(home.actor), f"{url}/api/v1", max_retries=0) as client,
    ):
        yield client


def collection_of(home: Workspace) -> str:
    """Its id, without the prefix that the search API gives it."""
    return home.id.removeprefix("ws_")


def event(**text: Any) -> bytes:
    return f"data: {json.dumps(text, ensure_ascii=False)}\n\n".encode()


def delta(text: str) -> bytes:
    return event(type="delta", content=text, delta=text)


END = event(type="done", metadata={"session_id": "s1", "of tomorrow": 1})


@pytest.fixture
def client(gateway: StandIn) -> Iterator[Mnemosyne]:
    with Mnemosyne(KEY, gateway.url) as opened:
        yield opened


def streamed(client: Mnemosyne) -> Stream[ChatCompletionChunk]:
    stream = client.chat.completions.create(HOME, MESSAGES, stream=True)
    assert_type(stream, Stream[ChatCompletionChunk])
    return stream


def text_of(chunk: ChatCompletionChunk) -> str:
    return chunk.choices[0].delta.content or ""


def test_a_complete_answer_has_a_choice_and_every_field_of_the_api(
    settings: Settings, home: Workspace, gateway: StandIn
):
    gateway.replies(reply_of(ANSWER))
    with chatting(settings, gateway, home) as client:
        create = client.chat.completions.create
        answer = create(
            collection_of(home),
            MESSAGES,
            model="vendor/m",
            temperature=0.1,
            retrieval={"top_k": 3},
            stream=False,
        )
        assert_type(answer, ChatCompletion)
    assert answer.choices[0].message.content == answer.response == ANSWER
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.query, answer.model) == (QUESTION, "vendor/m")
    assert answer.sources[0].title == "Billing outage"
    assert answer.usage
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer.session_id
    assert answer.confidence_detail
    assert answer.confidence == answer.confidence_detail.score > 0
    assert (answer.is_follow_up, answer.sub_queries) == (False, [])
    assert gateway.requests[-1].json["temperature"] == 0.1


def test_a_stream_has_sources_then_text_then_usage_and_the_end(
    settings: Settings, home: Workspace, gateway: StandIn
):
    gateway.replies(streams(*PIECES))
    with chatting(settings, gateway, home) as client:
        chunks = list(client.chat.completions.create(collection_of(home), MESSAGES, stream=True))
    assert [chunk.type for chunk in chunks] == ["sources", *["delta"] * 3, "usage", "done"]
    assert tuple(text_of(chunk) for chunk in chunks) == ("", *PIECES, "", "")
    first, last = chunks[0], chunks[-1]
    assert first.sources
    assert first.sources[0].title == "Billing outage"
    assert chunks[-2].usage
    assert (last.choices[0].finish_reason, last.model) == ("stop", "google/gemini-3.5-flash-lite")
    assert last.session_id


def test_deep_reasoning_streams_its_steps(settings: Settings, home: Workspace, gateway: StandIn):
    plan = {"steps": [{"description": "Finding the cause", "query": QUESTION}]}
    gateway.replies(reply_of(json.dumps(plan)), reply_of(json.dumps({"steps": []})), streams(*PIECES))
    with chatting(settings, gateway, home) as client:
        create = client.chat.completions.create
        chunks = list(create(collection_of(home), MESSAGES, reasoning_mode="deep", stream=True))
    steps = [chunk.reasoning_step.description for chunk in chunks if chunk.reasoning_step]
    assert "Finding the cause" in steps
    assert QUESTION in [chunk.sub_query for chunk in chunks]
    assert chunks[-1].sub_queries


def test_a_token_that_expires_during_a_stream_raises_the_same_error(gateway: StandIn, client: Mnemosyne):
    expired = encode_error(Unauthorized("The token is not valid or has expired."))
    gateway.replies(Reply(chunks=[delta("To"), expired], headers={"X-Request-Id": "r-1"}))
    stream = streamed(client)
    assert text_of(next(stream)) == "To"
    with pytest.raises(AuthenticationError, match="has expired") as raised:
        next(stream)
    assert (raised.value.status_code, raised.value.code) == (401, "invalid_api_key")
    assert raised.value.request_id == "r-1"
    assert len(gateway.requests) == 1


@pytest.mark.parametrize("drops", [True, False])
def test_a_truncated_stream_raises_an_error_and_is_not_retried(
    gateway: StandIn, client: Mnemosyne, drops: bool
):
    gateway.replies(Reply(chunks=[delta("To"), delta(" deploy")], drop=drops))
    texts = list[str]()
    with pytest.raises(StreamInterruptedError):
        texts.extend(map(text_of, streamed(client)))
    assert (texts, len(gateway.requests)) == (["To", " deploy"], 1)


def test_split_characters_are_joined_and_unknown_events_ignored(gateway: StandIn, client: Mnemosyne):
    words = delta("Überblick 索引 📚\u2028")
    text = b": keep-alive\n\n" + event(type="of tomorrow") + words + END + event(type="delta", content="late")
    gateway.replies(Reply(chunks=[part for byte in text for part in (bytes([byte]), 0.0)]))
    chunks = list(streamed(client))
    assert [chunk.type for chunk in chunks] == ["delta", "done"]
    assert text_of(chunks[0]) == "Überblick 索引 📚\u2028"
    assert chunks[1].metadata
    assert chunks[1].metadata.model_extra == {"of tomorrow": 1}


@pytest.mark.parametrize("event", [b"data: [DONE]\n\n", b"data: [1]\n\n", b'data: {"type":"delta"}\n\n'])
def test_an_invalid_event_is_an_error(gateway: StandIn, client: Mnemosyne, event: bytes):
    gateway.replies(Reply(chunks=[delta("To"), event]))
    with pytest.raises(UnexpectedResponseError):
        list(streamed(client))


@pytest.mark.parametrize("way", ["break", "with", "close"])
def test_leaving_a_stream_early_closes_the_connection(gateway: StandIn, client: Mnemosyne, way: str):
    gateway.replies(Reply(chunks=[delta("To"), LONG, END]))
    stream = streamed(client)
    if way == "break":
        for _ in stream:
            break
    elif way == "with":
        with stream:
            next(stream)
    else:
        next(stream)
        stream.close()
    assert gateway.left.wait(60)


def test_a_connection_is_reused_after_a_stream(gateway: StandIn, client: Mnemosyne):
    gateway.replies(Reply(chunks=[delta("To"), END]))
    for _ in range(3):
        assert len(list(streamed(client))) == 2
    pool: Any = client._transport._http._transport
    assert len(pool._pool.connections) == 1


async def _first(gateway: StandIn, leave: bool) -> list[str]:
    texts: list[str] = []
    async with AsyncMnemosyne(KEY, gateway.url) as client:
        stream = await client.chat.completions.create(HOME, MESSAGES, stream=True)
        async for chunk in stream:
            texts.append(text_of(chunk))
            if leave:
                break
        if leave:
            # Before the client is closed, which closes all open ones.
            assert await asyncio.to_thread(gateway.left.wait, 60)
    return texts


def test_the_async_stream_behaves_the_same(gateway: StandIn):
    gateway.replies(Reply(chunks=[delta("To"), END]), Reply(chunks=[delta("To"), LONG, END]))
    assert ran(_first(gateway, leave=False)) == ["To", ""]
    assert ran(_first(gateway, leave=True)) == ["To"]


@pytest.mark.parametrize("kind", ["application/json", "text/html; charset=utf-8", ""])
def test_a_response_that_is_not_a_stream_is_closed_unread(gateway: StandIn, client: Mnemosyne, kind: str):
    gateway.replies(Reply(chunks=[b"<p>", LONG], headers={"Content-Type": kind}))
    with pytest.raises(UnexpectedResponseError, match="not a stream of this API"):
        streamed(client)
    assert gateway.left.wait(60)


def test_a_stream_must_be_requested(gateway: StandIn, client: Mnemosyne):
    gateway.replies(Reply(json={"query": "q", "response": "r"}))
    answer = client.chat.completions.create(None, MESSAGES, stream=None, retrieval={"document_type": "legal"})
    assert_type(answer, ChatCompletion)
    fields = {"messages": MESSAGES, "stream": False, "retrieval": {"document_type": "legal"}}
    assert (answer.response, gateway.requests[0].json) == ("r", fields)


@pytest.mark.parametrize("stream", [True, False])
def test_an_unknown_option_is_refused(gateway: StandIn, client: Mnemosyne, stream: bool):
    create: Any = client.chat.completions.create
    with pytest.raises(TypeError, match="temprature"):
        create(HOME, MESSAGES, stream=stream, temprature=0.1)
    assert gateway.requests == []
