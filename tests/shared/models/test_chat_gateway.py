"""A chat model's endpoint over HTTP: connections that are kept, and what a stream is asked to say of its
cost."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.errors import GenerationFailed, GenerationRefused
from shared.models.chat_gateway import ChatGateway
from tests.functions.chatting import DONE, piece, sent
from tests.stand_in import Reply, StandIn

ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
WHOLE = Reply(json={"choices": [{"message": {"role": "assistant", "content": "Hi."}}]})
STREAM = Reply(chunks=[*sent(piece("Hi."), piece()), DONE])
REFUSED = Reply(status=400, json={"error": {"message": "unknown parameter: stream_options"}})


@pytest.fixture
def endpoint(gateway: StandIn) -> ChatGateway:
    return ChatGateway("key", gateway.url, "m", 5, 5)


def run(work: Coroutine[Any, Any, None]) -> None:
    """In an event loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


async def read(endpoint: ChatGateway, *, counted: bool = False) -> None:
    async with endpoint.stream({**ASKED, "stream": True}, counted=counted) as parts:
        async for _ in parts:
            pass


@pytest.mark.parametrize(("keeps", "connections"), [(True, 1), (False, 3)])
def test_a_server_keeps_its_connection_for_the_answers_to_come(
    gateway: StandIn, endpoint: ChatGateway, keeps: bool, connections: int
):
    gateway.replies(STREAM, WHOLE, STREAM)

    async def ask() -> None:
        await read(endpoint)
        await endpoint.complete(ASKED)
        await read(endpoint)

    async def serve() -> None:
        async with endpoint.keeping_connections(), endpoint.keeping_connections():
            await ask()

    run(serve() if keeps else ask())
    assert gateway.connections == connections


def test_streams_at_once_have_a_connection_each_and_a_second_event_loop_has_its_own(
    gateway: StandIn, endpoint: ChatGateway
):
    gateway.replies(Reply(chunks=[*sent(piece("Hi.")), 0.2, *sent(piece()), DONE]))

    async def serve() -> None:
        async with endpoint.keeping_connections():
            await asyncio.gather(*(read(endpoint) for _ in range(3)))

    run(serve())
    assert gateway.connections == 3
    run(serve())
    assert gateway.connections == 6


def test_a_kept_connection_that_ends_as_it_is_used_again_is_made_anew(
    gateway: StandIn, endpoint: ChatGateway
):
    gateway.replies(WHOLE, Reply(drop=True), WHOLE)

    async def serve() -> None:
        async with endpoint.keeping_connections():
            await endpoint.complete(ASKED)
            await endpoint.complete(ASKED)

    run(serve())
    assert len(gateway.requests) == 3


def test_a_fresh_connection_that_ends_without_an_answer_is_a_failure(gateway: StandIn, endpoint: ChatGateway):
    gateway.replies(Reply(drop=True))

    async def serve() -> None:
        async with endpoint.keeping_connections():
            await read(endpoint)

    for number, asking in enumerate((read(endpoint), serve()), start=1):
        with pytest.raises(GenerationFailed):
            run(asking)
        assert len(gateway.requests) == number, "the model may have worked: it is not asked twice"


def test_an_event_of_very_many_lines_costs_no_more_than_its_bytes(gateway: StandIn, endpoint: ChatGateway):
    lines = b"data:\n" * 300_000
    gateway.replies(Reply(chunks=[lines, b"\n"]))
    with pytest.raises(GenerationFailed) as failed:
        run(asyncio.wait_for(read(endpoint), 20))
    assert failed.value.because == "an event is too long"


def test_an_endpoint_that_does_not_end_its_stream_keeps_nobody_waiting(
    gateway: StandIn, endpoint: ChatGateway
):
    gateway.replies(Reply(chunks=[*sent(piece("Hi."), piece()), DONE, 60.0]))
    run(asyncio.wait_for(read(endpoint), 5))


def test_nothing_that_the_endpoint_would_have_remembered_goes_along_with_another_s_question(
    gateway: StandIn, endpoint: ChatGateway
):
    gateway.replies(Reply(json=WHOLE.json, headers={"Set-Cookie": "asker=ann; Path=/"}))

    async def serve() -> None:
        async with endpoint.keeping_connections():
            await endpoint.complete(ASKED)
            await endpoint.complete(ASKED)

    run(serve())
    assert "cookie" not in gateway.requests[1].headers


def test_a_stream_is_asked_what_it_costs_until_the_endpoint_refuses_that_alone(
    gateway: StandIn, endpoint: ChatGateway
):
    gateway.replies(REFUSED, REFUSED, REFUSED, STREAM, STREAM)
    with pytest.raises(GenerationRefused):
        run(read(endpoint, counted=True))
    run(read(endpoint, counted=True))
    run(read(endpoint, counted=True))
    asked = ["stream_options" in request.json for request in gateway.requests]
    assert asked == [True, False, True, False, False]
