"""/v1/answer over HTTP, whole and as a stream: without a model, and with one whose sentences are checked."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from functions import v1_answer
from shared.config import Settings
from shared.generation.confidence import CALIBRATIONS
from shared.generation.refusal_texts import INSUFFICIENT
from shared.services import Services
from tests import graph_documents
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import app_with, client_of, live, services_with
from tests.functions.chat_completions_client import DONE, encode, piece, streams
from tests.functions.search_workspace import OUTAGE, Row, Workspace, error_of, ok, workspace_id
from tests.hosted_reranker import MODEL, hosted_reranker
from tests.sql.passages import deployed_with
from tests.stand_in_server import Reply, StandIn

QUESTION = "What was the root cause of the billing outage?"
HOLDS = "The root cause of the billing outage were Stripe webhook retries that piled up in the queue [1]."
INVENTED = "The outage cost the company 4 million dollars [1]."
MISQUOTED = 'Priya Nair said "we should never have used Stripe" [1].'


def says(text: str) -> Reply:
    return Reply(json={"choices": [{"message": {"role": "assistant", "content": text}}]})


def model_of(gateway: StandIn) -> dict[str, str]:
    return {"rag_llm_api_key": "sk-model", "rag_llm_url": gateway.url}


@pytest.fixture
def client(settings: Settings, gateway: StandIn) -> Iterator[TestClient]:
    """A deployment whose model is the stand-in."""
    with app_with(v1_answer.app, settings, **model_of(gateway)) as client:
        yield client


def post(client: TestClient, home: Workspace, key: str = "", **body: Any) -> Any:
    headers = {**home.actor.headers(), **({"Idempotency-Key": key} if key else {})}
    request = {"workspaceId": home.id, "question": QUESTION, **body}
    return client.post("/v1/answer", json=request, headers=headers)


def ask(client: TestClient, home: Workspace, **body: Any) -> Row:
    return ok(post(client, home, **body))


def assert_traceable(home: Workspace, body: Row) -> None:
    """Every sentence's passages stand in chunks that are cited, and those are among the results."""
    chunks = {result["chunkId"] for result in body["retrieval"]["results"]}
    cited = {citation["chunkId"] for citation in body["citations"]}
    assert cited <= chunks
    for sentence in body["support"]["sentences"]:
        span = sentence["span"]
        assert body["answer"][span["start"] : span["end"]] == sentence["text"]
        for reference in sentence["references"]:
            assert reference["chunkId"] in cited
            raw = home.contents(reference["documentId"], includeRaw=True)["documents"][0]["body"]
            assert raw[reference["span"]["start"] : reference["span"]["end"]].strip()


def test_without_a_model_the_answer_is_extracted_from_the_documents(home: Workspace):
    body = home.answer(QUESTION)
    assert set(body) == {
        "answer", "withheld", "confidence", "citations", "support", "rationale", "retrieval", "generation",
        "usage", "requestId", "confidenceDetail",
    }  # fmt: skip
    assert "Stripe webhook retries that piled up in the queue. [1]" in body["answer"]
    assert body["generation"]["model"] == body["generation"]["answerType"] == "extractive"
    assert body["citations"][0]["documentId"] == home.documents["Billing outage"]
    for sentence in body["support"]["sentences"]:
        for reference in sentence["references"]:
            raw = home.contents(reference["documentId"], includeRaw=True)["documents"][0]["body"]
            assert raw[reference["span"]["start"] : reference["span"]["end"]] == sentence["text"]
    assert_traceable(home, body)


def test_confidence_does_not_depend_on_the_number_of_results(own_home: Workspace):
    own_home.put("Pumps", "The pumps of the old harbour were replaced, and the harbour has new pumps.")
    own_home.put("Crane FL-900", "The crane FL-900 was built for the yard.")
    question = "When were the pumps of the harbour replaced by the FL-900?"
    one, ten = (own_home.answer(question, topK=count) for count in (1, 10))
    assert len(one["retrieval"]["results"]) == 1
    assert "Crane FL-900" in {result["title"] for result in ten["retrieval"]["results"]}
    assert one["confidenceDetail"] == ten["confidenceDetail"]


def test_a_fitted_reranker_s_score_counts_and_its_failure_does_not(
    home: Workspace, settings: Settings, world: World, gateway: StandIn
):
    fit = {
        "slope": 8, "intercept": -4, "high": 0.9, "medium": 0.5, "ceiling_high": 0.1, "ceiling_medium": 0.1,
        "relevance": 1,
    }  # fmt: skip

    def level(reranker: dict[str, str]) -> tuple[str, float]:
        with app_with(v1_answer.app, settings, **reranker) as client:
            detail = ask(client, home, quality={"rerank": True})["confidenceDetail"]
        return detail["level"], detail["thresholds"]["high"]

    with deployed_with(world, calibrations={f"all-MiniLM-L6-v2 + {MODEL}": fit}):
        with hosted_reranker("Stripe webhook retries") as reranker:
            assert level(reranker) == ("high", 0.9)
        with hosted_reranker("a text of no passage") as reranker:
            assert level(reranker) == ("low", 0.9)
        gateway.replies(Reply(status=500))
        built_in = CALIBRATIONS["all-MiniLM-L6-v2"].thresholds.high
        assert level({**reranker, "rag_rerank_url": gateway.url}) == ("high", built_in)


def test_supported_sentences_are_kept_and_unsupported_ones_dropped(
    client: TestClient, home: Workspace, gateway: StandIn
):
    gateway.replies(says(f"{HOLDS} {INVENTED} {MISQUOTED}"))
    body = ask(client, home)
    assert body["answer"] == HOLDS.removesuffix(" [1].") + ". [1]"
    assert "4 million" not in str(body["support"]["sentences"])
    assert (body["support"]["kept"], body["support"]["dropped"]) == (1, 2)
    assert body["support"]["reasons"]
    assert (body["withheld"], body["generation"]["answerType"]) == (False, "abstractive")
    assert [citation["documentId"] for citation in body["citations"]] == [home.documents["Billing outage"]]
    assert_traceable(home, body)
    (request,) = gateway.requests
    assert request.json["max_tokens"] == 400
    assert OUTAGE in request.json["messages"][-1]["content"]


def test_an_answer_without_supported_sentences_or_an_abstention_is_withheld(
    client: TestClient, home: Workspace, gateway: StandIn
):
    gateway.replies(says(INVENTED), says("NO_ANSWER"))
    invented, abstention = ask(client, home), ask(client, home)
    for body in (invented, abstention):
        assert (body["answer"], body["withheld"], body["citations"]) == (INSUFFICIENT, True, [])
    assert (abstention["confidence"], abstention["confidenceDetail"]["level"]) == ("low", "low")


def test_the_caller_sets_the_model_and_the_length(client: TestClient, home: Workspace, gateway: StandIn):
    gateway.replies(says(HOLDS))
    body = ask(client, home, model="gpt-4o-mini", maxTokens=64)
    assert body["generation"]["model"] == gateway.requests[0].json["model"] == "gpt-4o-mini"
    assert gateway.requests[0].json["max_tokens"] == 64


def test_extractive_answers_call_no_model(client: TestClient, home: Workspace, gateway: StandIn):
    body = ask(client, home, answerType="extractive", maxTokens=16)
    assert body["generation"]["answerType"] == "extractive"
    assert len(body["support"]["sentences"]) == 1, "no more fits"
    assert gateway.requests == []


def test_without_citations_the_text_has_no_markers_and_is_still_checked(
    client: TestClient, home: Workspace, gateway: StandIn
):
    gateway.replies(says(f"{HOLDS} {INVENTED}"))
    body = ask(client, home, citations=False)
    assert body["citations"] == []
    assert "[" not in body["answer"]
    assert body["support"]["dropped"] == 1


def test_context_gives_the_model_more_of_each_document(
    client: TestClient, own_home: Workspace, gateway: StandIn
):
    about = " ".join(f"Blue whales near Sri Lanka were counted {number} times." for number in range(60))
    own_home.put("Whales", about)
    gateway.replies(says("Blue whales near Sri Lanka were counted [1]."))
    for context in (False, True):
        body = ask(client, own_home, question="Where were blue whales counted?", context=context, topK=1)
        assert body["withheld"] is False, body
    short, long = (len(request.json["messages"][-1]["content"]) for request in gateway.requests)
    assert long > short


def test_constraints_and_the_rationale_are_those_of_a_search(home: Workspace):
    body = home.answer(QUESTION, constraints={"before": "2026-01-01"}, include={"rationale": True})
    assert "Billing outage" not in {result["title"] for result in body["retrieval"]["results"]}
    assert set(body["rationale"]["graph"]) == {"entities", "edges", "evidenceChunks"}
    assert body["usage"]["routerScope"] == "workspace"


# --- Idempotency keys ---

KEY = "2b1c6d1e-8a1f-4a0e-9a51-7c0f3f3f9d10"


def test_the_same_key_and_body_replay_the_answer(client: TestClient, home: Workspace, gateway: StandIn):
    gateway.replies(says(HOLDS))
    first, second = post(client, home, KEY), post(client, home, KEY)
    other = post(client, home, KEY, maxTokens=64)
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.json() == first.json()
    assert second.json()["requestId"] == first.headers["x-request-id"]
    assert second.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert error_of(other, 409, "CONFLICT")["details"]["reason"] == "idempotency_mismatch"
    assert len(gateway.requests) == 1


def test_the_same_key_and_question_in_another_workspace_are_a_conflict(home: Workspace):
    other = home.actor.post("/v1/collections", {"name": f"other {home.actor.id}"}).json()["id"]

    def once(workspace: str, **headers: str) -> httpx.Response:
        body = {"question": QUESTION, **({} if headers else {"workspaceId": workspace})}
        return home.actor.request("POST", "/v1/answer", body, **headers, **{"Idempotency-Key": KEY})

    ok(once(home.id))
    for answer in (once(f"ws_{other}"), once("", **{"X-Workspace-Id": f"ws_{other}"})):
        assert error_of(answer, 409, "CONFLICT")["details"]["reason"] == "idempotency_mismatch"


def test_an_equivalent_workspace_is_the_same_request_and_deleted_documents_end_replays(
    client: TestClient, own_home: Workspace, gateway: StandIn
):
    gateway.replies(says(HOLDS))

    def is_replayed(workspace: str) -> bool:
        response = post(client, own_home, KEY, workspaceId=workspace, maxTokens=None)
        assert response.status_code == 200, response.text
        return "idempotency-replayed" in response.headers

    assert not is_replayed(own_home.id)
    assert is_replayed(own_home.id.removeprefix("ws_").upper())
    outage = own_home.documents["Billing outage"].removeprefix("doc_")
    deleted = own_home.actor.rpc("rag_delete_document", {"document_id": outage})
    assert deleted.status_code == 200, deleted.text
    assert not is_replayed(own_home.id)


def test_a_deleted_graph_source_ends_the_replay(services: Services, people: People):
    documents = graph_documents.put_all(services, people.ann, "graph")
    request = {
        "workspaceId": workspace_id(people.ann, "graph"), "question": "What does Kestrel own?", "topK": 1,
        "mode": "graph", "include": {"rationale": True},
    }  # fmt: skip

    def once() -> httpx.Response:
        response = people.ann.request("POST", "/v1/answer", request, **{"Idempotency-Key": KEY})
        assert response.status_code == 200, response.text
        return response

    first, second = once(), once()
    titles = [result["title"] for result in first.json()["retrieval"]["results"]]
    assert titles == [graph_documents.TEAM], "it shows no chunk of what will be gone"
    assert "OWNED_BY" in first.text
    assert "idempotency-replayed" in second.headers
    assert people.ann.rpc("rag_delete_document", {"document_id": documents["Billing Service"]}).json()
    third = once()
    assert "idempotency-replayed" not in third.headers
    assert "OWNED_BY" not in third.text


def test_the_answer_is_stored_for_a_day(client: TestClient, home: Workspace, gateway: StandIn, world: World):
    gateway.replies(says(HOLDS))
    for age, calls in (("23 hours 59 minutes", 1), ("2 minutes", 2)):
        post(client, home, KEY)
        world.sql(f"update rag.stored_responses set created_at = created_at - interval '{age}'")
        post(client, home, KEY)
        assert len(gateway.requests) == calls


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


def ask_stream(services: Services, home: Workspace, *, key: str | None = None, **body: Any) -> Any:
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
        response = ask_stream(services, home)
    assert response.headers["content-type"].startswith("text/event-stream")
    final = assert_whole(events_of(response.text))
    assert final["answer"] == HOLDS.removesuffix(" [1].") + ". [1]"
    assert "4 million" not in response.text
    assert "never have used" not in response.text
    assert final["support"]["dropped"] == 2
    assert_traceable(home, final)


def test_without_a_model_extracted_sentences_are_streamed(home: Workspace, services: Services):
    final = assert_whole(events_of(ask_stream(services, home).text))
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
    error_of(ask_stream(services, home, workspaceId="ws_nobodys"), 404, "NOT_FOUND")


def test_a_stored_stream_is_replayed_as_a_stream(home: Workspace, settings: Settings, gateway: StandIn):
    gateway.replies(streams(tokens(f"{HOLDS} {INVENTED}")))
    with with_model(settings, gateway) as services:
        first, second = (ask_stream(services, home, key=KEY) for _ in range(2))
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
        response = ask_stream(services, home)
    events = events_of(response.text)
    assert [name for name, _ in events] == names
    assert events[-1][1]["error"]["code"]
    assert events[-1][1]["requestId"]
    assert "secret" not in response.text
