"""One JSON line a request: what it was, how long each step took, how it ended; no token and no text."""

import json
import re
import subprocess
import sys
import time
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from functions import rag_answer, rag_search
from local import ROOT
from local.stack import Stack
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.services import Services
from tests.actors import Actor
from tests.conftest import People
from tests.ingestion import ingest
from tests.shared.app_lifespan import started_client

FIELDS = {
    "level", "message", "time", "trace_id", "request_id", "function", "method", "route", "status", "ms",
    "steps",
}  # fmt: skip
SEARCH_STEPS = ["authenticate", "limit", "embed", "match"]
ANSWER_STEPS = [*SEARCH_STEPS, "judge", "generate"]
DOCUMENT = "The code of the vault door is QUARTZ-5521, and nobody else may know it."
QUESTION = "What is the code of the vault door, ZEBRAFISH?"


def log_of(stack: Stack) -> str:
    """All that the stack's functions wrote, which run under uvicorn in a process of their own."""
    return (stack.folder / "logs" / "gateway.log").read_text()


def lines(text: str) -> list[dict[str, Any]]:
    """The complete log lines as JSON, without those of uvicorn. The last line may be incomplete."""
    complete = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in complete.splitlines() if line.startswith("{")]


def line_of(stack: Stack, request_id: str) -> dict[str, Any]:
    """The one line of that request, which is written after its response was sent."""
    end = time.monotonic() + 60
    results: list[dict[str, Any]] = []
    while not results and time.monotonic() < end:
        results = [line for line in lines(log_of(stack)) if line.get("request_id") == request_id]
    (line,) = results
    return line


def logged(actor: Actor, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
    """The line of this request."""
    request_id = str(uuid4())
    answer = actor.request(method, path, body, **{"X-Request-Id": request_id, **headers})
    assert answer.headers["x-request-id"] == request_id
    line = line_of(actor.stack, request_id)
    assert line["status"] == answer.status_code
    return line


@pytest.fixture
def document(services: Services, people: People) -> str:
    assert people.ann.org
    new = NewDocument("The vault door", DOCUMENT)
    return ingest(services.database, services.embedder, people.ann.principal, new).document_id


def test_a_search_is_one_line_with_its_four_steps(people: People, document: str):
    line = logged(people.ann, "POST", "/api/rag/search", {"query_text": QUESTION})
    assert set(line) == FIELDS
    assert (line["level"], line["message"], line["function"]) == ("INFO", "request", "rag-search")
    assert (line["method"], line["route"], line["status"]) == ("POST", "/api/rag/search", 200)
    assert datetime.fromisoformat(line["time"]).tzinfo
    assert list(line["steps"]) == SEARCH_STEPS
    assert all(isinstance(spent, float) and spent >= 0 for spent in line["steps"].values())
    assert min(line["steps"][name] for name in ("limit", "embed", "match")) > 0
    assert sum(line["steps"].values()) <= line["ms"] + 1


def test_an_answer_is_one_line_with_all_six_steps_and_a_withheld_one_with_five(people: People, document: str):
    line = logged(people.ann, "POST", "/functions/v1/rag-answer", {"query_text": QUESTION})
    assert (line["function"], line["route"]) == ("rag-answer", "/functions/v1/rag-answer")
    assert list(line["steps"]) == ANSWER_STEPS
    assert sum(line["steps"].values()) <= line["ms"] + 1
    line = logged(people.bob, "POST", "/api/rag/answer", {"query_text": QUESTION})
    assert list(line["steps"]) == ANSWER_STEPS[:-1]


def test_every_response_is_a_line_with_its_route_template_and_error_code(people: People):
    cases: list[tuple[str, str, Any, dict[str, str], tuple[Any, ...]]] = [
        ("POST", "/api/rag/search", {}, {}, (400, "/api/rag/search", "invalid_request", SEARCH_STEPS[:2])),
        ("POST", "/api/rag/search", {"query_text": "x"}, {"Authorization": "Bearer a.b.c"},
         (401, "/api/rag/search", "unauthorized", SEARCH_STEPS[:1])),
        ("GET", "/api/rag/answer", None, {}, (405, "/api/rag/answer", "method_not_allowed", [])),
        ("OPTIONS", "/api/rag/answer", None, {}, (204, None, None, [])),
        ("GET", "/health", None, {}, (200, "/health", None, [])),
        ("GET", "/metrics", None, {}, (401, "/metrics", "unauthorized", [])),
        ("GET", "/api/keys", None, {}, (200, "/api/keys", None, SEARCH_STEPS[:2])),
        ("DELETE", "/api/keys/11111111-1111-1111-1111-111111111111", None, {},
         (404, "/api/keys/{key_id}", "key_not_found", SEARCH_STEPS[:2])),
        ("POST", "/api/keys/not-an-id/rotate", None, {},
         (400, "/api/keys/{key_id}/rotate", "invalid_request", SEARCH_STEPS[:2])),
    ]  # fmt: skip
    for method, path, body, headers, expected in cases:
        line = logged(people.ann, method, path, body, **headers)
        assert (line["status"], line["route"], line.get("error"), list(line["steps"])) == expected
        assert line["level"] == "INFO"
        assert "limit" not in line["steps"] or line["steps"]["limit"] > 0
        assert "because" not in line
        assert "not-an-id" not in str(line)


def test_the_log_has_no_token_key_secret_or_document_text(people: People, document: str):
    """Of good requests and bad ones: also where the secret stands in the path, the query or a header."""
    stack = people.ann.stack
    body = people.ada.request("POST", "/api/keys", {"name": "ZEBRAFISH", "scopes": ["admin"]}).json()
    key, token = body["key"], people.ann.token()
    people.ann.search(QUESTION, filters={"lang": "zz-ZEBRAFISH"})
    people.ann.answer(QUESTION)
    people.ann.search("ZEBRAFISH" * 100)
    people.ann.post("/api/rag/search", {"query_text": {"ZEBRAFISH": 1}, "ZEBRAFISH": [QUESTION]})
    people.ann.request("GET", f"/api/keys/{key}")
    people.ann.request("DELETE", f"/api/keys/{key}")
    people.ann.request("GET", f"/api/rag/search?apikey={token}&q=ZEBRAFISH")
    people.ada.request("GET", "/api/keys", token=key)
    people.ada.request("GET", "/api/keys", token=key[:-1] + "*")
    people.ada.request("POST", f"/api/keys/{body['id']}/rotate")
    people.ann.request("GET", "/ZEBRAFISH/QUARTZ-5521")
    spoiled = {**people.ann.headers(token), "Content-Type": "application/json"}
    httpx.post(f"{stack.url}/api/rag/search", content=b'{"query_text": ZEBRAFISH', headers=spoiled)
    forged = {"X-Request-Id": f"{token} ZEBRAFISH", "Traceparent": token, "User-Agent": "ZEBRAFISH"}
    for headers in ({"X-Request-Id": key}, forged):
        line_of(stack, people.ann.request("GET", "/health", **headers).headers["x-request-id"])
    text = log_of(stack)
    assert len(lines(text)) >= 13
    secrets = [token, key, body["prefix"], stack.state.jwt_secret, stack.state.password, stack.anon_key]
    for secret in (*secrets, "ZEBRAFISH", "QUARTZ-5521", "vault door", people.ann.email):
        assert secret not in text, secret
    assert not re.search(r"eyJ|mn_live_|sk_", text)


def records(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    results = [vars(record) for record in caplog.records if record.name == "rag"]
    return [record for record in results if record["msg"] == "request"]


@pytest.mark.usefixtures("short_pauses")
def test_a_database_outage_is_an_error_with_its_cause(
    people: People, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    gone = {"SUPABASE_URL": "http://127.0.0.1:9", "SUPABASE_JWT_ISSUER": f"{people.ann.stack.url}/auth/v1"}
    with started_client(rag_search.app, people.ann.stack, monkeypatch, **gone) as client:
        answer = client.post("/api/rag/search", json={"query_text": QUESTION}, headers=people.ann.headers())
    assert answer.status_code == 500
    (line,) = records(caplog)
    assert (line["levelname"], line["status"], line["error"]) == ("ERROR", 500, "database_error")
    assert line["because"] == "ConnectError"
    assert list(line["steps"]) == SEARCH_STEPS[:2]
    assert "127.0.0.1" not in str(line["because"])


def test_a_failure_in_a_step_is_logged_by_type_and_location_only(
    people: People, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, document: str
):
    """A setting that no provider stands behind makes a real fault of the answer's last step."""
    nowhere = {"RAG_LLM_API_KEY": "sk-gateway-secret", "RAG_LLM_URL": "http://127.0.0.1:9/v1"}
    with started_client(rag_answer.app, people.ann.stack, monkeypatch, **nowhere) as client:
        answer = client.post("/api/rag/answer", json={"query_text": QUESTION}, headers=people.ann.headers())
    assert answer.status_code == 500
    (line,) = records(caplog)
    assert (line["levelname"], line["status"]) == ("ERROR", 500)
    assert line["error"].startswith("generation_")
    assert list(line["steps"]) == ANSWER_STEPS
    for hidden in ("sk-gateway-secret", "ZEBRAFISH", "QUARTZ", "eyJ"):
        assert hidden not in str({name: line[name] for name in ("error", "because", "steps", "route", "msg")})


HANDLERS = """
import logging, sys
root = logging.StreamHandler(sys.stdout)
root.setFormatter(logging.Formatter("ROOT %(message)s"))
logging.getLogger().addHandler(root)
from shared.api.app import create_app
from shared.api.contracts import rag
for name in ("one", "two"):
    create_app(rag, name, errors=())
logging.getLogger("rag").info("said once", extra={"request_id": "r"})
"""


def test_a_line_is_written_once_with_several_apps_and_root_handlers():
    process = subprocess.run(
        [sys.executable, "-c", HANDLERS],
        env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout == ""
    (line,) = process.stderr.splitlines()
    assert {**json.loads(line), "time": ""} == {
        "level": "INFO", "message": "said once", "request_id": "r", "time": "",
    }  # fmt: skip
