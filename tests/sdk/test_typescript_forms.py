"""The TypeScript SDK's answers: malformed ones are errors, and no error shows the key, not even one
that the server sends. The caller is any key."""

import json
from typing import Any

import pytest

from tests.sdk.test_typescript_streams import ASK, DELTA, event
from tests.sdk.typescript_package import HOME, KEY, Package, Row
from tests.stand_in_server import Reply, StandIn

NEVER = {"maxRetries": 0}
LIST: Row = {"call": "documents.list", "args": [{"collectionId": HOME}]}
GET: Row = {"call": "documents.get", "args": ["d"]}
WAIT: Row = {"call": "documents.waitUntilReady", "args": ["d", {"timeout": 100}]}
RETRIEVE: Row = {"call": "retrievals.retrieve", "args": [{"query": "q"}]}
WHOLE: Row = {"call": "chat.completions.create", "args": [{"messages": []}]}
ALL = [
    GET, WAIT, RETRIEVE, WHOLE, LIST,
    {"call": "collections.list"}, {"call": "collections.get", "args": [HOME]},
    {"call": "collections.create", "args": [{"name": "n"}]},
    {"call": "documents.status", "args": ["d"]}, {"call": "documents.url", "args": ["d"]},
    {"call": "chat.sessions.list"}, {"call": "chat.sessions.messages", "args": ["s"]},
    {"call": "retrievals.graphQuery", "args": [{"query": "q"}]}, {"call": "health"}, {"call": "stats"},
    {"call": "orgs"}, {"call": "events"}, {"call": "collections.buildGraph", "args": [HOME]},
]  # fmt: skip
DETAILS = {"field": KEY, KEY: [{"deeper": f"<{KEY}>"}]}
ECHO = {"message": f"Bearer {KEY}", "code": KEY, "type": f"of {KEY}", "details": DETAILS}


@pytest.mark.parametrize("body", [{}, [1], None, "no", {"data": [{}], "results": {}, "response": 1, "id": 7}])
def test_a_response_in_another_form_is_an_error(typescript: Package, gateway: StandIn, body: Any):
    gateway.replies(Reply(json=body, headers={"X-Request-Id": "r-1"}))
    results = typescript.results({"baseUrl": gateway.url, **NEVER}, *ALL)
    for step, result in zip(ALL, results, strict=True):
        assert result["error"]["name"] == "UnexpectedResponseError", (step, result)
        assert step["call"] == "health" or (result["error"]["status"], result["error"]["requestId"]) == (
            200, "r-1",
        )  # fmt: skip


def test_an_invalid_or_unterminated_stream_is_an_error(typescript: Package, gateway: StandIn):
    gateway.replies(
        Reply(chunks=[b"<p>", 30.0], headers={"Content-Type": "text/html"}), Reply(json={}),
        Reply(chunks=[event(DELTA), event({"type": "done"})]),
    )  # fmt: skip
    html, other, no_end = typescript.results({"baseUrl": gateway.url, **NEVER}, ASK, ASK, ASK)
    for result in (html, other, no_end["value"]):
        assert result["error"]["name"] == "UnexpectedResponseError"
    assert gateway.left.is_set()


def test_no_error_shows_the_key_although_the_server_echoes_it(typescript: Package, gateway: StandIn):
    envelope = {"error": ECHO}
    steps = [
        (GET, Reply(status=400, json=envelope, headers={"X-Request-Id": KEY})),
        (GET, Reply(body=KEY.encode())), (LIST, Reply(json={KEY: KEY})),
        (WAIT, Reply(json={"id": KEY, "status": "failed", "error": ECHO})),
        (ASK, Reply(chunks=[event({"type": "error", "error": KEY, "error_detail": ECHO})])),
        (ASK, Reply(chunks=[f"data: {KEY}\n\n".encode()])),
    ]  # fmt: skip
    gateway.replies(*(reply for _, reply in steps))
    results = typescript.results({"baseUrl": gateway.url, **NEVER}, *(step for step, _ in steps))
    errors = [result.get("error") or result["value"]["error"] for result in results]
    assert KEY not in json.dumps(errors)
    hidden = "[the API key]"
    assert errors[0]["details"] == {"field": hidden, hidden: [{"deeper": f"<{hidden}>"}]}
    assert errors[3]["code"] == hidden
