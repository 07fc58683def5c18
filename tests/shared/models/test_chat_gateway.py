"""A chat model's endpoint over HTTP: connections that are kept, and what a stream is asked to say of its
cost."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.access.token_usage import Quota, measured
from shared.errors import GenerationFailed, GenerationRefused, GenerationTimedOut, RagError
from shared.models.chat_gateway import ChatGateway
from tests.functions.chat_completions_client import DONE, encode, piece
from tests.stand_in_server import Reply, StandIn

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
WHOLE = Reply(json={"choices": [{"message": {"role": "assistant", "content": "Hi."}}]})
STREAM = Reply(chunks=[*encode(piece("Hi."), piece()), DONE])
REFUSED = Reply(status=400, json={"error": {"message": "unknown parameter: stream_options"}})


@pytest.fixture
def endpoint(gateway: StandIn) -> ChatGateway:
    return ChatGateway("key", gateway.url, "m", 600, 600)


def run(work: Coroutine[Any, Any, None]) -> None:
    """In an event loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


async def read(endpoint: ChatGateway) -> None:
    async with endpoint.stream({**REQUEST, "stream": True}) as parts:
        async for _ in parts:
            pass


@pytest.mark.parametrize(("keeps", "connections"), [(True, 1), (False, 3)])
def test_a_server_reuses_its_connection(
    gateway: StandIn, endpoint: ChatGateway, keeps: bool, connections: int
):
    gateway.replies(STREAM, WHOLE, STREAM)

    async def ask() -> None:
        await read(endpoint)
        await endpoint.complete(REQUEST)
        await read(endpoint)

    async def serve() -> None:
        async with endpoint.keeping_connections(), endpoint.keeping_connections():
            await ask()

    run(serve() if keeps else ask())
    assert gateway.connections == connections


def test_concurrent_streams_and_a_second_event_loop_have_their_own_connections(
    gateway: StandIn, endpoint: ChatGateway
):
    gateway.replies(Reply(chunks=[*encode(piece("Hi.")), 0.2, *encode(piece()), DONE]))

    async def serve() -> None:
        async with endpoint.keeping_connections():
            await asyncio.gather(*(read(endpoint) for _ in range(3)))

    run(serve())
    assert gateway.connections == 3
    run(serve())
    assert gateway.connections == 6


async def complete_twice(endpoint: ChatGateway) -> None:
    async with endpoint.keeping_connections():
        await endpoint.complete(REQUEST)
        await endpoint.complete(REQUEST)


def test_an_idle_connection_that_breaks_on_reuse_is_replaced(gateway: StandIn, endpoint: ChatGateway):
    gateway.replies(WHOLE, Reply(drop=True), WHOLE)
    run(complete_twice(endpoint))
    assert len(gateway.requests) == 3


def test_no_cookies_are_sent_with_another_user_s_question(gateway: StandIn, endpoint: ChatGateway):
    gateway.replies(Reply(json=WHOLE.json, headers={"Set-Cookie": "asker=ann; Path=/"}))
    run(complete_twice(endpoint))
    assert "cookie" not in gateway.requests[1].headers


def test_a_new_connection_that_breaks_without_a_response_is_a_failure(
    gateway: StandIn, endpoint: ChatGateway
):
    gateway.replies(Reply(drop=True))

    async def serve() -> None:
        async with endpoint.keeping_connections():
            await read(endpoint)

    for number, asking in enumerate((read(endpoint), serve()), start=1):
        with pytest.raises(GenerationFailed):
            run(asking)
        assert len(gateway.requests) == number, "the model may have worked: it is not asked twice"


def test_the_time_for_an_event_of_many_lines_is_linear(gateway: StandIn, endpoint: ChatGateway):
    lines = b"data:\n" * 300_000
    gateway.replies(Reply(chunks=[lines, b"\n"]))
    with pytest.raises(GenerationFailed) as failed:
        run(read(endpoint))
    assert failed.value.log_reason == "an event is too long"


def test_an_endpoint_that_never_ends_its_stream_blocks_no_caller(gateway: StandIn, endpoint: ChatGateway):
    gateway.replies(Reply(chunks=[*encode(piece("Hi."), piece()), DONE, 600.0]))
    run(read(endpoint))


def test_usage_is_requested_until_the_endpoint_rejects_that_option(gateway: StandIn, endpoint: ChatGateway):
    gateway.replies(REFUSED, STREAM, STREAM)
    run(read(endpoint))
    run(read(endpoint))
    requests = ["stream_options" in request.json for request in gateway.requests]
    assert requests == [True, False, False]


def tokens_of(endpoint: ChatGateway, request: Any, *, error: type[RagError] | None = None) -> list[int]:
    """The tokens of each counted call: at most one."""
    counted: list[int] = []

    async def ask() -> None:
        with measured() as usage:
            try:
                if request.get("stream"):
                    async with endpoint.stream(request) as parts:
                        async for _ in parts:
                            pass
                else:
                    await endpoint.complete(request)
            finally:
                counted.extend(usage.tokens(Quota.MODEL) for _ in usage.calls)

    if error:
        with pytest.raises(error):
            run(ask())
    else:
        run(ask())
    return counted


def test_a_call_that_may_have_run_counts_at_least_its_request(subtests: pytest.Subtests):
    # A whole answer without a text is requested again, in which case both calls count.
    replies: dict[str, tuple[Reply, type[RagError], int]] = {
        "no choice": (Reply(json={"choices": []}), GenerationFailed, 1),
        "dropped": (Reply(drop=True), GenerationFailed, 1),
        "silent": (Reply(chunks=[600.0]), GenerationTimedOut, 1),
        "failing": (Reply(status=500, json={}), GenerationFailed, 0),
        "refused": (REFUSED, GenerationRefused, 0),
    }
    for case, (reply, error, calls) in replies.items():
        for stream in (False, True):
            with subtests.test(case, stream=stream), StandIn() as gateway:
                gateway.replies(reply)
                endpoint = ChatGateway("key", gateway.url, "m", 1, 1)
                # A response in chunks is a stream of events.
                counted = tokens_of(endpoint, {**REQUEST, "stream": stream}, error=error)
                assert len(counted) == calls + (case == "no choice" and not stream)
                assert all(tokens > 5 for tokens in counted)


def test_an_estimate_counts_tools_and_every_choice(gateway: StandIn, endpoint: ChatGateway):
    call = {"function": {"name": "look_up", "arguments": '{"city": "Vienna"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning": "Think. " * 50}
    choices = [{"index": index, "message": message} for index in range(3)]
    deltas = [{"index": index, "delta": message} for index in range(3)]
    gateway.replies(
        WHOLE, Reply(json={"choices": choices}), Reply(chunks=[*encode({"choices": deltas}, piece()), DONE])
    )
    tool = {"type": "function", "function": {"name": "look_up", "description": "Weather. " * 100}}
    (plain,) = tokens_of(endpoint, REQUEST)
    for stream in (False, True):
        (tokens,) = tokens_of(endpoint, {**REQUEST, "stream": stream, "tools": [tool]})
        assert tokens > plain + 3 * 100 + 200


def test_the_client_s_own_options_of_the_stream_are_kept(gateway: StandIn, endpoint: ChatGateway):
    gateway.replies(STREAM)
    options = {"include_obfuscation": False, "include_usage": False}
    tokens_of(endpoint, {**REQUEST, "stream": True, "stream_options": options})
    sent = gateway.requests[0].json["stream_options"]
    assert sent == {"include_obfuscation": False, "include_usage": True}
