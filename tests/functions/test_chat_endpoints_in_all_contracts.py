"""Answers of all contracts with chat endpoints as they are: refused parameters, thoughts, failures."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient

from shared.config import Settings
from shared.services import Services
from tests.conftest import People
from tests.functions.app_server import client_of
from tests.functions.chat_completions_client import with_model
from tests.functions.search_workspace import put
from tests.functions.test_answers_without_a_model import HOME, request_of, text_of
from tests.functions.test_confidence_in_all_contracts import APPS
from tests.shared.models.chat_endpoints import WAYS, Endpoint, Way
from tests.stand_in_server import Reply, StandIn

pytestmark = pytest.mark.usefixtures("short_pauses")

QUESTION = "What is the limit of a loan at the library?"
ANSWER = "The limit is 30 days"
TEXTS = {
    "Loans": "The limit of a loan at the library is 30 days.",
    "Members": "For members the limit of a loan is 30 days.",
}
# Every contract but the knowledge API, which has the answer of rag-answer; three of them also as a stream.
CONTRACTS = ("rag", "index", "completions", "platform", "search")
STREAMED = ("completions", "platform", "search")


def _fits(way: Way) -> bool:
    """Whether its answer, if it has one, is about the documents."""
    return not way.get("outcome", "").startswith("answer: ") or way["outcome"].startswith(f"answer: {ANSWER}")


# Each is asked eight times: the long tests have all, test_chat_endpoints.py as well, without the contracts.
CHOSEN = [
    pytest.param(way, id=way["name"], marks=[pytest.mark.long] if number % 40 else [])
    for number, way in enumerate(filter(_fits, WAYS))
]


@pytest.fixture(scope="module")
def people(shared_people: People, services: Services) -> People:
    for number, (title, text) in enumerate(TEXTS.items(), start=1):
        put(services, shared_people.ann, HOME, title, text, occurred_at=datetime(2025, 3, number, tzinfo=UTC))
    return shared_people


@pytest.mark.parametrize("way", CHOSEN)
def test_every_contract_answers_or_names_the_cause(
    subtests: pytest.Subtests, people: People, settings: Settings, way: Way
):
    for contract, stream in [*((name, False) for name in CONTRACTS), *((name, True) for name in STREAMED)]:
        with subtests.test(contract=contract, stream=stream), StandIn() as gateway:
            gateway.replies(Reply(json=Endpoint(way, f"{ANSWER} [1].")))
            with with_model(settings, gateway) as deployment, client_of(APPS[contract], deployment) as client:
                check(ask(people, client, contract, stream=stream), way, contract, stream=stream)


def ask(people: People, client: TestClient, contract: str, *, stream: bool) -> Any:
    """The response of the contract to the question."""
    path, body = request_of(people.ann, QUESTION)[contract]
    more = {"stream": True} if stream else {}
    return client.post(path, json={**body, **more}, headers=people.ann.headers())


def check(response: Any, way: Way, contract: str, *, stream: bool) -> None:
    outcome = way.get("outcome", "answer")
    if outcome.startswith("answer") or ("events" in way and not stream):
        assert response.status_code == 200, response.text
        text = written(response.text) if stream else text_of(contract, response.json())
        assert text.startswith(ANSWER)
        return
    # The callers of these two do not choose the model's request.
    is_ours = contract in ("rag", "index") and outcome == "generation_refused"
    code = "generation_failed" if is_ours else outcome
    assert stream or response.status_code >= 400
    # KAITO's contract has a sentence and no code.
    assert code in response.text or contract == "index"


def written(stream: str) -> str:
    """The answer's text in a stream of any of the contracts."""
    text = ""
    for line in stream.splitlines():
        data = line.removeprefix("data: ")
        if not data.startswith("{"):
            continue
        event = json.loads(data)
        deltas = [choice["delta"] for choice in event.get("choices", [])]
        text += "".join(delta.get("content") or "" for delta in deltas)
        text += (event.get("content") or "") if event.get("type") == "delta" else ""
        text += event.get("text") or ""
    return text


HIDDEN = {"error": "secret upstream"}
FAULTS = [
    (Reply(HIDDEN, 429, {"Retry-After": "7"}), 503, "generation_busy"),
    (Reply(HIDDEN, 404), 400, "generation_refused"),
    (Reply(HIDDEN, 500), 500, "generation_failed"),
    (Reply(json={"choices": []}), 500, "generation_empty"),
    (Reply(drop=True), 500, "generation_failed"),
]
# The search contract has a code for each status, and the cause among the details.
SEARCH_CODES = {400: "INVALID_ARGUMENT", 500: "INTERNAL", 503: "UNAVAILABLE"}


def test_every_contract_reports_a_model_s_failure_without_its_message(
    subtests: pytest.Subtests, people: People, settings: Settings
):
    for reply, status, code in FAULTS:
        with StandIn() as gateway, with_model(settings, gateway) as deployment:
            gateway.replies(reply)
            for contract in CONTRACTS:
                with (
                    subtests.test(contract=contract, code=code),
                    client_of(APPS[contract], deployment) as client,
                ):
                    response = ask(people, client, contract, stream=False)
                    check(response, {"outcome": code}, contract, stream=False)
                    is_ours = contract in ("rag", "index") and status == 400
                    assert response.status_code == (500 if is_ours else status)
                    assert contract != "search" or response.json()["error"]["code"] == SEARCH_CODES[status]
                    assert "secret" not in response.text
                    assert response.headers.get("Retry-After") == ("7" if status == 503 else None)
