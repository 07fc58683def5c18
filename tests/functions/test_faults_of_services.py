"""When a service that we call fails: the contract's status, nothing told, a bounded wait, one log line."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from functions import rag_answer, rag_search
from shared.api.dependencies import services_dependency
from shared.config import Settings
from shared.ingestion.synchronous_ingestion import NewDocument, ingest
from shared.services import Services
from tests.actors import Actor
from tests.conftest import People
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
def ask(caplog: pytest.LogCaptureFixture) -> Ask:
    """Put the question to a function that runs with these settings, in this process."""

    def put(function: ModuleType, path: str, settings: Settings, actor: Actor) -> Ended:
        services = Services(settings)
        function.app.dependency_overrides[services_dependency] = lambda: services
        caplog.clear()
        try:
            with_token = {"Authorization": f"Bearer {actor.token()}"}
            client = TestClient(function.app, raise_server_exceptions=False)
            answer = client.post(path, json={"query_text": QUESTION}, headers=with_token)
        finally:
            function.app.dependency_overrides.clear()
            services.close()
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


def test_an_embedding_error_is_reported(
    subtests: pytest.Subtests, ask: Ask, people: People, settings: Settings
):
    for fault, reply in {**SLOW_EMBEDDINGS, **EMBEDDING_FAULTS}.items():
        with subtests.test(fault=fault), StandIn() as service:
            service.replies(reply)
            seconds = SHORT if fault in SLOW_EMBEDDINGS else LONG
            remote = with_embeddings(settings, f"{service.url}/v1", seconds)
            ended = ask(rag_search, "/api/rag/search", remote, people.ann)
            code = "embedder_refused" if fault == "of a wrong dimension" else "embedding_failed"
            assert_failed_well(ended, 500, code, "embed", people.ann, is_cause_logged=True)


def test_an_embedding_of_another_number_than_the_database_s_is_reported(
    gateway: StandIn, ask: Ask, people: People, settings: Settings
):
    """The caller sent no vector: not 400, and the log names the reason."""
    gateway.replies(vectors([0.1] * 2000))
    remote = with_embeddings(settings, f"{gateway.url}/v1")
    nomic = remote.model_copy(update={"rag_embedding_model": "nomic"})
    ended = ask(rag_search, "/api/rag/search", nomic, people.ann)
    assert_failed_well(ended, 500, "embedding_failed", "embed", people.ann)
    assert ended.lines[0]["because"] == "wrong_dimensions"


def with_embeddings(settings: Settings, url: str, timeout: float = LONG) -> Settings:
    return Settings(
        **{
            **settings.model_dump(exclude_unset=True), "openai_api_key": "sk-of-the-tests",
            "rag_embedding_url": url, "rag_llm_timeout_seconds": 3 * timeout,
        }
    )  # fmt: skip


def completion(content: str | None) -> Reply:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return Reply({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


STEPS = {"authenticate", "limit", "embed", "match", "judge", "generate"}
BUSY_FOR_A_TIME = Reply(status=429, headers={"Retry-After": "7"}, json={"error": SECRET})
GATEWAY_FAULTS = {
    "busy and saying how long": (BUSY_FOR_A_TIME, 503, "generation_busy"),
    "broken": (Reply(status=500, json={"error": SECRET}), 500, "generation_failed"),
    "slow": (replace(completion(TEXT), delay=30), 500, "generation_timeout"),
    "dripping": (replace(completion(TEXT), drip=0.2), 500, "generation_timeout"),
    "blank": (completion(" \n"), 500, "generation_empty"),
}


@pytest.mark.usefixtures("short_pauses")
def test_a_gateway_error_is_reported(
    subtests: pytest.Subtests, ask: Ask, people: People, settings: Settings, services: Services
):
    document = NewDocument(org_id=people.acme.id, title="The kiln", text=TEXT)
    ingest(services.database, services.embedder, people.ann.principal, document)
    for fault, (reply, status, code) in GATEWAY_FAULTS.items():
        with subtests.test(fault=fault), StandIn() as service:
            service.replies(reply)
            is_slow = code == "generation_timeout"
            remote = with_gateway(settings, service, SHORT if is_slow else LONG)
            ended = ask(rag_answer, "/api/rag/answer", remote, people.ann)
            assert_failed_well(ended, status, code, "generate", people.ann, is_cause_logged=True)
            assert set(ended.lines[0]["steps"]) == STEPS
            # An answer without a text is requested once more.
            requests = 2 if code == "generation_empty" else 1
            # On a machine that is busy for half a second, the time is over before the request.
            assert len(service.requests) == requests or is_slow
            assert "x-ratelimit-remaining" in ended.answer.headers
            if status == 503:
                assert ended.answer.headers["retry-after"] == reply.headers["Retry-After"]


def with_gateway(settings: Settings, gateway: StandIn, timeout: float) -> Settings:
    return Settings(
        **{
            **settings.model_dump(exclude_unset=True), "rag_llm_api_key": "sk-of-the-tests",
            "rag_llm_url": f"{gateway.url}/v1", "rag_llm_timeout_seconds": timeout,
        }
    )  # fmt: skip
