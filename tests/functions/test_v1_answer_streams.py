"""/v1/answer as a stream: events in their order, checked as they come, and ended with the client."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import httpx
import pytest

from functions import v1_answer
from shared.config import Settings
from shared.services import Services
from tests.functions.app_server import client_of, live, services_with
from tests.functions.chat_completions_client import DONE, encode, piece, streams
from tests.functions.search_workspace import Row, Workspace, error_of
from tests.functions.test_v1_answer import HOLDS, INVENTED, KEY, MISQUOTED, QUESTION, assert_traceable
from tests.stand_in_server import Reply, StandIn


def events_of(text: str) -> list[tuple[str, Any]]:
    """The events, by name."""
    results = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            name, data = lines
            results.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return results


def tokens(text: str, size: int = 7) -> list[bytes]:
    """A model's stream of that text, in pieces that know no words."""
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return [*encode(*map(piece, pieces), piece()), DONE]


@contextmanager
def with_model(settings: Settings, gateway: StandIn) -> Iterator[Services]:
    with services_with(settings, rag_llm_api_key="sk-model", rag_llm_url=gateway.url) as services:
        yield services


def ask(services: Services, home: Workspace, *, key: str | None = None, **body: Any) -> Any:
    request = {"workspaceId": home.id, "question": QUESTION, "stream": True, **body}
    headers = home.actor.headers() | ({"Idempotency-Key": key} if key else {})
    with client_of(v1_answer.app, services) as client:
        return client.post("/v1/answer", json=request, headers=headers)


def assert_whole(events: list[tuple[str, Any]]) -> Row:
    """In the contract's order, and the tokens are the answer; the final body."""
    names = [name for name, _ in events]
    order = ["meta", "token", "citation", "final"]
    assert names == sorted(names, key=order.index)
    assert (names[0], names[-1], names.count("meta"), names.count("final")) == ("meta", "final", 1, 1)
    final: Row = events[-1][1]
    assert "".join(data["text"] for name, data in events if name == "token") == final["answer"]
    assert [data for name, data in events if name == "citation"] == final["citations"]
    assert events[0][1]["retrieval"] == final["retrieval"]
    assert events[0][1]["requestId"] == final["requestId"]
    return final


@pytest.mark.parametrize("size", [1, 1000])
def test_sentences_are_checked_as_they_are_streamed(
    home: Workspace, settings: Settings, gateway: StandIn, size: int
):
    gateway.replies(streams(tokens(f"{HOLDS} {INVENTED} {MISQUOTED}", size)))
    with with_model(settings, gateway) as services:
        response = ask(services, home)
    assert response.headers["content-type"].startswith("text/event-stream")
    final = assert_whole(events_of(response.text))
    assert final["answer"] == HOLDS.removesuffix(" [1].") + ". [1]"
    assert "4 million" not in response.text
    assert "never have used" not in response.text
    assert final["support"]["dropped"] == 2
    assert_traceable(home, final)


def test_without_a_model_extracted_sentences_are_streamed(home: Workspace, services: Services):
    final = assert_whole(events_of(ask(services, home).text))
    assert final["generation"]["model"] == "extractive"


def test_a_sentence_is_sent_as_soon_as_it_is_complete(home: Workspace, settings: Settings, gateway: StandIn):
    second = " The on-call engineer was Priya Nair [1]."
    begin = encode(piece(HOLDS), piece(" The on-call"))
    release = Event()
    gateway.replies(streams([*begin, release, *encode(piece(second[12:]), piece()), DONE]))
    with with_model(settings, gateway) as services, live(v1_answer.app, services) as url:
        body = {"workspaceId": home.id, "question": QUESTION, "stream": True}
        with httpx.stream("POST", f"{url}/v1/answer", json=body, headers=home.actor.headers()) as answer:
            token_lines = (line for line in answer.iter_lines() if line.startswith("event: token"))
            next(token_lines)
            release.set()
            assert len(list(token_lines)) == 1


def test_a_disconnected_client_ends_the_model_call_and_releases_the_key(
    home: Workspace, settings: Settings, gateway: StandIn
):
    endless: list[bytes | Event] = [*encode(piece(f"{HOLDS} The")), Event(), *encode(piece(" end."))]
    gateway.replies(streams(endless), streams(tokens(HOLDS)))
    body = {"workspaceId": home.id, "question": QUESTION, "stream": True}
    headers = {**home.actor.headers(), "Idempotency-Key": KEY}
    with with_model(settings, gateway) as services, live(v1_answer.app, services) as url:
        with (
            httpx.Client() as client,
            client.stream("POST", f"{url}/v1/answer", json=body, headers=headers) as answer,
        ):
            for line in answer.iter_lines():
                if line.startswith("event: token"):
                    break
        assert gateway.left.wait(60), "the model is no longer read"
        until = time.monotonic() + 60
        while (second := httpx.post(f"{url}/v1/answer", json=body, headers=headers)).status_code == 409:
            assert time.monotonic() < until
            time.sleep(0.05)
    assert_whole(events_of(second.text))


def test_an_error_before_the_first_event_has_a_status(home: Workspace, services: Services):
    error_of(ask(services, home, workspaceId="ws_nobodys"), 404, "NOT_FOUND")


def test_a_stored_stream_is_replayed_as_a_stream(home: Workspace, settings: Settings, gateway: StandIn):
    gateway.replies(streams(tokens(f"{HOLDS} {INVENTED}")))
    with with_model(settings, gateway) as services:
        first, second = (ask(services, home, key=KEY) for _ in range(2))
    assert assert_whole(events_of(second.text)) == assert_whole(events_of(first.text))
    assert second.headers["idempotency-replayed"] == "true"
    assert len(gateway.requests) == 1


# What the endpoint sends, and the events. test_chat_completions_streams.py has all faults of endpoints.
FAULTS = [
    (streams(encode(piece(f"{HOLDS} The"), {"error": {"message": "secret"}})), ["meta", "token", "error"]),
    (Reply(status=400, json={"error": "secret"}), ["meta", "error"]),
]


@pytest.mark.parametrize(("reply", "names"), FAULTS)
def test_a_fault_of_the_model_ends_the_stream_with_an_error_and_without_a_final_event(
    home: Workspace, settings: Settings, gateway: StandIn, reply: Reply, names: list[str]
):
    gateway.replies(reply)
    with with_model(settings, gateway) as services:
        response = ask(services, home)
    events = events_of(response.text)
    assert [name for name, _ in events] == names
    assert events[-1][1]["error"]["code"]
    assert events[-1][1]["requestId"]
    assert "secret" not in response.text
