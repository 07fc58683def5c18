"""Streamed chat completions: parts as they come, silence, clients who leave, models that break off."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from functions import chat_completions
from shared.config import Settings
from shared.models import chat_gateway
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.deploy.conftest import event
from tests.functions.app_server import client_of, invoke, live, wait_for
from tests.functions.chat_completions_client import (
    ASKING,
    DONE,
    KETTLE,
    PATH,
    STREAM,
    ask,
    chat_client,
    encode,
    events_of,
    index,
    piece,
    streams,
    user,
    with_model,
    words,
)
from tests.stand_in_server import StandIn

COUNTED = "select label from rag.api_metrics where name = 'rag_chat_requests_total' and user_id = %s"
USAGE = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}


@contextmanager
def opened(url: str, actor: Actor, **body: Any) -> Iterator[httpx.Response]:
    """A stream that a client begins to read, and leaves when this is left."""
    request = {"messages": ASKING, "stream": True, **body}
    with (
        httpx.Client() as client,
        client.stream("POST", f"{url}{PATH}", json=request, headers=actor.headers()) as answer,
    ):
        yield answer


@pytest.fixture
def client(settings: Settings, gateway: StandIn) -> Iterator[TestClient]:
    with chat_client(settings, gateway) as client:
        yield client


def test_the_model_s_stream_passes_unchanged(client: TestClient, people: People, gateway: StandIn):
    odd = piece("Well. ", x_vendor={"a": 1})
    gateway.replies(streams([b": PROCESSING\n\n", *encode(odd), b"event: x\n", *STREAM]))
    response = ask(client, people.ann, stream=True, model="vendor/model-1", seed=7)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert "x-ratelimit-remaining" in response.headers
    parts = [odd, piece("At "), piece("100 degrees."), piece(source_nodes=None)]
    assert events_of(response.text) == [*parts, "[DONE]"]
    request = {"messages": ASKING, "stream": True, "model": "vendor/model-1", "seed": 7}
    # The usage is requested for the quotas.
    assert gateway.requests[0].json == {**request, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize("counts", [True, False])
def test_usage_comes_last_on_request(client: TestClient, people: People, gateway: StandIn, counts: bool):
    usage = encode({**piece(), "choices": [], "usage": USAGE}) if counts else []
    gateway.replies(streams([*STREAM[:-1], *usage, DONE]))
    response = ask(client, people.ann, stream=True, stream_options={"include_usage": True})
    assert gateway.requests[0].json["stream_options"] == {"include_usage": True}
    part, done = events_of(response.text)[-2:]
    assert (part["choices"], part["id"], done) == ([], "gen-42", "[DONE]")
    assert part["usage"] == USAGE if counts else part["usage"]["completion_tokens"] > 0


def test_a_missing_end_of_the_endpoint_s_stream_is_added(
    client: TestClient, people: People, services: Services, gateway: StandIn
):
    index(services, people.ann, "kettles", KETTLE)
    gateway.replies(streams([*encode(piece("At 100.")), DONE]))
    events = events_of(ask(client, people.ann, stream=True, index_name="kettles").text)
    assert events[-2]["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert len(events[-2]["source_nodes"]) == 1


@pytest.mark.parametrize("wants", [True, False])
def test_without_a_model_an_index_streams_extracted_sentences(
    people: People, services: Services, wants: bool
):
    index(services, people.ann, "kettles", KETTLE)
    with client_of(chat_completions.app, services) as client:
        more = {"stream_options": {"include_usage": True}} if wants else {}
        events = events_of(ask(client, people.ann, stream=True, index_name="kettles", **more).text)
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "The kettle switches off at 100 degrees." in words(events)
    assert {part["id"] for part in events[:-1]} == {events[0]["id"]}
    assert {part["object"] for part in events[:-1]} == {"chat.completion.chunk"}
    (last,) = [part for part in events[:-1] if "source_nodes" in part]
    assert last["source_nodes"][0]["text"] == KETTLE
    assert [part["usage"]["total_tokens"] > 0 for part in events[:-1] if "usage" in part] == [True] * wants


def test_chunks_arrive_as_they_are_generated(people: People, settings: Settings, gateway: StandIn):
    release = Event()
    gateway.replies(streams([*STREAM[:1], release, *STREAM[1:]]))
    with (
        with_model(settings, gateway) as services,
        live(chat_completions.app, services) as url,
        opened(url, people.ann) as answer,
    ):
        lines = answer.iter_lines()
        first = next(lines)
        release.set()
        events = events_of("\n".join([first, *lines]))
    assert words(events_of(first)) == "At "
    assert words(events) == "At 100 degrees."


def test_a_disconnected_client_ends_the_generation(
    people: People, settings: Settings, gateway: StandIn, world: World
):
    gateway.replies(streams([*STREAM[:1], Event(), *STREAM[1:]]))
    with with_model(settings, gateway) as services, live(chat_completions.app, services) as url:
        with opened(url, people.ann) as answer:
            assert next(answer.iter_lines()).startswith("data: ")
        assert gateway.left.wait(60), "the request to the model has not ended"
        wait_for(lambda: world.sql(COUNTED, people.ann.id) == [("failure",)])


GIANT = b'data: {"choices": [], "secret": "' + b"x" * 1_100_000
GIANT_LINE, LARGE = b"data: " + b"x" * 70_000 + b"\n", {"choices": [], "x": "x" * 900_000}
DRIPS: list[bytes | float] = [b": hm\n", 0.1] * 3000
FAULTS = {
    "breaks off": (streams(STREAM[:2], drop=True), "generation_failed"),
    "ends early": (streams(STREAM[:2]), "generation_failed"),
    "ends at once": (streams([]), "generation_failed"),
    "says nothing": (streams(encode(b"[DONE]")), "generation_empty"),
    "no json": (streams([*STREAM[:1], *encode(b"<html>secret</html>"), *STREAM[1:]]), "generation_failed"),
    "no object": (streams([*STREAM[:1], *encode(["secret"]), *STREAM[1:]]), "generation_failed"),
    "not finite": (streams(encode(b'{"secret": NaN}', b"{}")), "generation_failed"),
    "an error": (streams([*STREAM[:1], *encode({"error": {"message": "secret"}})]), "generation_failed"),
    "a giant line": (streams([*STREAM[:1], GIANT, *STREAM]), "generation_failed"),
    "a giant event": (streams([*STREAM[:1], *([GIANT_LINE] * 16)]), "generation_failed"),
    "no end": (streams([*STREAM[:1], *(encode(LARGE) * 20)]), "generation_failed"),
    "silent too long": (streams([*STREAM[:1], Event(), *STREAM[1:]]), "generation_timeout"),
    "drips for ever": (streams([*STREAM[:1], *DRIPS]), "generation_timeout"),
}  # fmt: skip


def test_a_broken_stream_ends_with_an_error_and_without_done(
    subtests: pytest.Subtests, settings: Settings, world: World, monkeypatch: pytest.MonkeyPatch
):
    for name, (reply, code) in FAULTS.items():
        with subtests.test(name=name), StandIn() as gateway:
            gateway.replies(reply)
            # The time-outs are short only where one of them is what ends the stream. On a busy machine the
            # shortest may end the request before the stream begins.
            for seconds in (0.5, 5.0, 50.0) if code == "generation_timeout" else (50.0,):
                monkeypatch.setattr(chat_gateway, "STREAM_SECONDS", 3 * seconds)
                actor = world.user(world.org())
                with chat_client(settings, gateway, rag_llm_timeout_seconds=seconds) as client:
                    response = ask(client, actor, stream=True)
                if response.status_code == 200:
                    break
            assert response.status_code == 200
            events = events_of(response.text)
            assert set(events[-1]) == {"error"}
            assert (events[-1]["error"]["code"], events[-1]["error"]["type"]) == (code, "server_error")
            assert "[DONE]" not in events
            assert "secret" not in response.text
            assert world.sql(COUNTED, actor.id) == [("failure",)]


def test_forty_idle_streams_do_not_block_other_requests(people: People, settings: Settings, gateway: StandIn):
    """The threads that wait for the database are forty; streams wait in none."""
    gateway.replies(streams([Event(), *STREAM]))
    with (
        with_model(settings, gateway) as services,
        live(chat_completions.app, services) as url,
        ExitStack() as streaming,
    ):
        for _ in range(45):
            assert streaming.enter_context(opened(url, people.ann)).status_code == 200
        refused = httpx.post(f"{url}{PATH}", json={"messages": []}, headers=people.ann.headers())
        assert refused.status_code == 400


def test_behind_api_gateway_a_stream_arrives_in_one_piece(
    people: People, settings: Settings, gateway: StandIn
):
    """Mangum cannot stream: it gives one answer, which must be right."""
    gateway.replies(streams([*STREAM[:1], 0.05, *STREAM[1:]]))
    with with_model(settings, gateway) as services, client_of(chat_completions.app, services):
        headers = {"content-type": "application/json", "authorization": f"Bearer {people.ann.token()}"}
        body = json.dumps({"messages": [user()], "stream": True})
        request = event("http_api", "POST", PATH, headers=headers, body=body)
        answer = invoke(chat_completions.handler, request)
    assert answer["statusCode"] == 200
    assert answer["headers"]["content-type"].startswith("text/event-stream")
    assert not answer["isBase64Encoded"]
    assert (words(events_of(answer["body"])), events_of(answer["body"])[-1]) == ("At 100 degrees.", "[DONE]")
