"""When a service that we call fails: the contract's status, nothing told, a bounded wait, one log line."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from functions import rag_answer, rag_search
from shared.config import Settings
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.services import Services
from tests.actors import Actor
from tests.conftest import People
from tests.functions.app_server import app_with
from tests.functions.test_rag_search import completion
from tests.ingestion import ingest
from tests.stand_in_server import Reply, StandIn

QUESTION = "How hot may the kiln become?"
TEXT = "The kiln may become 1180 degrees hot. Above that the glaze runs off and the shelves bend."
SECRET = "a detail of the service"
# Of a service that is slow, and of one that answers.
SHORT, LONG = 0.5, 30.0


@dataclass
class Ended:
    """A response, and the lines logged meanwhile."""

    answer: httpx2.Response
    lines: list[dict[str, Any]]


Ask = Callable[..., Ended]


@pytest.fixture
def ask(caplog: pytest.LogCaptureFixture, settings: Settings) -> Ask:
    """Put the question to a function that runs with these settings, in this process."""

    def put(app: FastAPI, path: str, actor: Actor, **changes: Any) -> Ended:
        caplog.clear()
        with app_with(app, settings, **changes) as client:
            answer = client.post(path, json={"query_text": QUESTION}, headers=actor.headers())
        lines = [
            {name: value for name, value in vars(record).items() if name in LINE}
            for record in caplog.records
            if record.name == "rag" and record.getMessage() == "request"
        ]
        return Ended(answer, lines)

    return put


LINE = {"trace_id", "request_id", "function", "method", "route", "status", "ms", "steps", "error", "because"}


def assert_failed_well(
    ended: Ended, status: int, code: str, step: str, actor: Actor, *, is_cause_logged: bool = False
) -> None:
    """The contract's envelope; the body does not say what the service said, the log says where, and the
    service's own words only with `is_cause_logged`."""
    assert (ended.answer.status_code, ended.answer.json()["error"]["code"]) == (status, code)
    (line,) = ended.lines
    assert (line["status"], line["error"]) == (status, code)
    assert line["request_id"] == ended.answer.headers["x-request-id"]
    assert set(line["steps"]) >= {"authenticate", "limit", step}
    assert all(milliseconds >= 0 for milliseconds in line["steps"].values())
    text = ended.answer.text + json.dumps(line) + str(ended.answer.headers)
    assert SECRET not in (ended.answer.text if is_cause_logged else text)
    for hidden in (QUESTION, "kiln", actor.token()[:20], "sk-", "Traceback", "127.0.0.1"):
        assert hidden not in text
    assert not re.search(r"openai|httpx|postgres|\.py\b", ended.answer.text, re.IGNORECASE)


def vectors(*vectors: list[Any]) -> Reply:
    data = [{"object": "embedding", "index": index, "embedding": v} for index, v in enumerate(vectors)]
    # Python writes NaN as NaN, which is no JSON but what a careless service sends.
    body = json.dumps({"object": "list", "model": "m", "data": data, "usage": {}})
    return Reply(body=body.encode())


# After its slowness each service answers well, so that only the time-out makes an error of it.
SLOW_EMBEDDINGS = {
    "slow": replace(vectors([0.1] * 1536), delay=30),
    "dripping": replace(vectors([0.1] * 1536), drip=0.01),
}
EMBEDDING_FAULTS = {
    "busy for a minute": Reply(status=429, headers={"Retry-After": "60"}, json={"error": SECRET}),
    "dropping the connection": Reply(drop=True),
    "of a wrong dimension": vectors([0.1] * 3072),
    "not a number": vectors([float("nan")] + [0.1] * 1535),
    "not JSON": Reply(body=b"<html>" + SECRET.encode()),
}


def test_an_embedding_error_is_reported(subtests: pytest.Subtests, ask: Ask, people: People):
    for fault, reply in {**SLOW_EMBEDDINGS, **EMBEDDING_FAULTS}.items():
        with subtests.test(fault=fault), StandIn() as service:
            service.replies(reply)
            seconds = SHORT if fault in SLOW_EMBEDDINGS else LONG
            ended = ask(rag_search.app, "/api/rag/search", people.ann, **embeddings_of(service, seconds))
            code = "embedder_refused" if fault == "of a wrong dimension" else "embedding_failed"
            assert_failed_well(ended, 500, code, "embed", people.ann, is_cause_logged=True)


def test_an_embedding_of_another_number_than_the_database_s_is_reported(
    gateway: StandIn, ask: Ask, people: People
):
    """The caller sent no vector: not 400, and the log names the reason."""
    gateway.replies(vectors([0.1] * 2000))
    nomic = {**embeddings_of(gateway), "rag_embedding_model": "nomic"}
    ended = ask(rag_search.app, "/api/rag/search", people.ann, **nomic)
    assert_failed_well(ended, 500, "embedding_failed", "embed", people.ann)
    assert ended.lines[0]["because"] == "wrong_dimensions"


def embeddings_of(service: StandIn, timeout: float = LONG) -> dict[str, Any]:
    return {
        "openai_api_key": "sk-of-the-tests", "rag_embedding_url": f"{service.url}/v1",
        "rag_llm_timeout_seconds": 3 * timeout,
    }  # fmt: skip


STEPS = {"authenticate", "limit", "embed", "match", "judge", "generate"}
GATEWAY_FAULTS = {
    "broken": (Reply(status=500, json={"error": SECRET}), "generation_failed"),
    "slow": (replace(completion(TEXT), delay=30), "generation_timeout"),
    "dripping": (replace(completion(TEXT), drip=0.2), "generation_timeout"),
    "blank": (completion(" \n"), "generation_empty"),
}


@pytest.mark.usefixtures("short_pauses")
def test_a_gateway_error_is_reported(subtests: pytest.Subtests, ask: Ask, people: People, services: Services):
    document = NewDocument(title="The kiln", text=TEXT)
    ingest(services.database, services.embedder, people.ann.principal, document)
    for fault, (reply, code) in GATEWAY_FAULTS.items():
        with subtests.test(fault=fault), StandIn() as service:
            service.replies(reply)
            is_slow = code == "generation_timeout"
            changes = {
                "rag_llm_api_key": "sk-of-the-tests", "rag_llm_url": f"{service.url}/v1",
                "rag_llm_timeout_seconds": SHORT if is_slow else LONG,
            }  # fmt: skip
            ended = ask(rag_answer.app, "/api/rag/answer", people.ann, **changes)
            assert_failed_well(ended, 500, code, "generate", people.ann, is_cause_logged=True)
            assert set(ended.lines[0]["steps"]) == STEPS
            # An answer without a text is requested once more.
            requests = 2 if code == "generation_empty" else 1
            # On a machine that is busy for half a second, the time is over before the request.
            assert len(service.requests) == requests or is_slow
            assert "x-ratelimit-remaining" in ended.answer.headers
