"""The TypeScript SDK against a server that misbehaves: its errors, what it repeats, what it never tells. Who
asks is any key."""

import re
import time
from email.utils import formatdate
from typing import Any

import pytest

from tests.sdk.typescript_package import HOME, KEY, Package, Row
from tests.stand_in_server import Reply, StandIn

NEVER = {"maxRetries": 0}
GET: Row = {"call": "collections.get", "args": [HOME]}
UPDATE: Row = {"call": "collections.update", "args": [HOME, {"name": "n"}]}
DELETE: Row = {"call": "collections.delete", "args": [HOME]}
CREATE: Row = {"call": "collections.create", "args": [{"name": "n"}]}
KEYED: Row = {"call": "collections.create", "args": [{"name": "n"}, {"idempotencyKey": "once-1"}]}
RETRIEVE: Row = {"call": "retrievals.retrieve", "args": [{"query": "q"}]}
WRITE: Row = {"call": "documents.createFromText", "args": [{"collectionId": HOME, "content": "t"}]}
WRITE_NAMED: Row = {**WRITE, "args": [{"collectionId": HOME, "content": "t", "externalId": "e"}]}
RETRIEVAL_REPLY = Reply(json={"id": "c", "results": []})
GONE = Reply(status=204, body=b"")
BUSY, DROPPED = Reply(status=503, json={}), Reply(drop=True)
IN_PROGRESS = {"error": {"code": "request_in_progress", "message": "wait"}}
UNDER_WAY = Reply(status=409, headers={"Retry-After": "0"}, json=IN_PROGRESS)
UPLOAD: Row = {
    "call": "documents.create", "args": [{"collectionId": HOME}], "file": {"kind": "bytes", "text": "t"},
}  # fmt: skip
FETCH: Row = {"call": "documents.createFromUrl", "args": [{"collectionId": HOME, "url": "https://x.example"}]}
CHAT: Row = {"call": "chat.completions.create", "args": [{"messages": [{"role": "user", "content": "q"}]}]}


def keys_of(gateway: StandIn) -> list[str | None]:
    return [request.headers.get("idempotency-key") for request in gateway.requests]


def refusal(status: int, code: str, headers: dict[str, str] | None = None, **details: Any) -> Reply:
    body = {"error": {"type": "t", "code": code, "message": f"{code}!", "details": details}}
    return Reply(status=status, json=body, headers={"X-Request-Id": "r-1", **(headers or {})})


def test_each_status_has_its_own_error(typescript: Package, gateway: StandIn):
    kinds = [
        (refusal(400, "invalid_field_value", field="name"), "ValidationError"),
        (refusal(409, "duplicate_document", document_id="d"), "ConflictError"),
        (refusal(429, "rate_limit_exceeded", {"Retry-After": "17"}), "RateLimitError"),
        (refusal(418, "x"), "APIError"),
    ]
    gateway.replies(*(reply for reply, _ in kinds))
    results = typescript.results({"baseUrl": gateway.url, **NEVER}, *([GET] * len(kinds)))
    for result, (reply, name) in zip(results, kinds, strict=True):
        error, text = result["error"], reply.json["error"]
        assert (error["name"], error["status"], error["requestId"]) == (name, reply.status, "r-1")
        message = f"{text['message']} (status {reply.status}, code {text['code']}, request r-1)"
        assert (error["code"], error["message"], error["details"]) == (text["code"], message, text["details"])
        assert (error["ours"], error["api"]) == (True, True)
    assert results[2]["error"]["retryAfter"] == 17


def test_a_foreign_response_is_an_error_too(typescript: Package, gateway: StandIn):
    page = b"<h1>Bad gateway</h1>"
    gateway.replies(Reply(body=page), Reply(status=502, body=page), Reply(status=503, json={"fine": False}))
    steps = [GET, GET, {"call": "health"}]
    results = [step["error"] for step in typescript.results({"baseUrl": gateway.url, **NEVER}, *steps)]
    assert [(error["name"], error["status"]) for error in results[:2]] == [
        ("UnexpectedResponseError", 200), ("InternalServerError", 502),
    ]  # fmt: skip
    assert results[2]["message"] == "The response is not a health report. Check baseUrl."


@pytest.mark.parametrize("failure", [BUSY, DROPPED, Reply(status=500, json={}), Reply(status=408, json={})])
def test_only_safe_requests_are_retried(typescript: Package, gateway: StandIn, failure: Reply):
    repeated = (GET, UPDATE, DELETE, KEYED, RETRIEVE, CREATE, WRITE, WRITE_NAMED, UPLOAD, FETCH)
    for step in repeated:
        gateway.replies(failure, failure, GONE if step is DELETE else RETRIEVAL_REPLY)
    gateway.replies(failure)
    results = typescript.calls({"baseUrl": gateway.url}, *repeated, CHAT, hurried=True)
    assert [result["asked"] for result in results["results"]] == [3] * 10 + [1]
    assert ["error" in result for result in results["results"]] == [False] * 10 + [True]
    keys = keys_of(gateway)
    assert keys[:15] == [None] * 9 + ["once-1"] * 3 + [None] * 3
    drawn = [set(keys[first : first + 3]) for first in range(15, 30, 3)]
    assert [len(of_a_call) for of_a_call in drawn] == [1] * 5
    assert len(set().union(*drawn) - {None}) == 5
    assert keys[30:] == [None]
    waited = [wait for wait in results["waits"] if wait not in (60_000, 180_000)]
    assert len(waited) == 20
    assert all(0 <= first <= 500 for first in waited[::2])
    assert all(0 <= second <= 1000 for second in waited[1::2])


def test_a_request_in_progress_is_waited_for(typescript: Package, gateway: StandIn):
    gateway.replies(DROPPED, UNDER_WAY, RETRIEVAL_REPLY, UNDER_WAY, RETRIEVAL_REPLY)
    made, chat = typescript.results({"baseUrl": gateway.url}, CREATE, CHAT, hurried=True)
    assert (made["asked"], made["value"]["id"]) == (3, "c")
    assert (chat["asked"], chat["error"]["name"]) == (1, "ConflictError")


def test_a_creation_without_support_for_keys_is_sent_once_without_one(typescript: Package, gateway: StandIn):
    """Unless the caller asked for a key, or an attempt may have been done."""
    full = refusal(429, "too_many_replies")
    gateway.replies(full, DROPPED, full, DROPPED, full)
    results = typescript.results({"baseUrl": gateway.url}, CREATE, KEYED, CREATE, hurried=True)
    assert [result["error"]["name"] for result in results] == [
        "APIConnectionError", "RateLimitError", "RateLimitError",
    ]  # fmt: skip
    first, without, mine, *drawn = keys_of(gateway)
    assert (first is None, without, mine) == (False, None, "once-1")
    assert (len(drawn), None in drawn) == (2, False)


def test_the_last_error_is_raised_after_the_retries(typescript: Package, gateway: StandIn):
    gateway.replies(DROPPED, BUSY, DROPPED, BUSY)
    client = {"baseUrl": gateway.url}
    twice = {**GET, "args": [HOME, {"maxRetries": 3}]}
    first, second = typescript.results(client, GET, twice, hurried=True)
    assert (first["asked"], first["error"]["name"]) == (3, "APIConnectionError")
    assert (second["asked"], second["error"]["status"]) == (4, 503)


def test_a_rate_limit_is_waited_for_as_long_as_retry_after(typescript: Package, gateway: StandIn):
    limited = refusal(429, "rate_limit_exceeded", {"Retry-After": "7"})
    hour = refusal(429, "rate_limit_exceeded", {"Retry-After": "3600"})
    # A tier that is full: no time is named, and waiting does not help.
    full = refusal(429, "rate_limit_exceeded")
    gateway.replies(limited, RETRIEVAL_REPLY, hour, full)
    results = typescript.calls({"baseUrl": gateway.url}, CREATE, GET, CREATE, hurried=True)
    created, long, no_room = results["results"]
    assert (created["asked"], created["value"]["id"]) == (2, "c")
    assert 7000 in results["waits"]
    assert (long["asked"], long["error"]["retryAfter"]) == (1, 3600)
    assert (no_room["asked"], no_room["error"]["name"]) == (1, "RateLimitError")


def test_a_rate_limit_with_a_date_is_waited_for_until_then(typescript: Package, gateway: StandIn):
    date = formatdate(time.time() + 8, usegmt=True)
    gateway.replies(refusal(429, "rate_limit_exceeded", {"Retry-After": date}), RETRIEVAL_REPLY)
    (created,) = typescript.results({"baseUrl": gateway.url}, CREATE, hurried=True)
    assert (created["asked"], created["value"]["id"]) == (2, "c")


def test_a_deletion_with_a_lost_response_counts_as_done(typescript: Package, gateway: StandIn):
    missing = refusal(404, "collection_not_found")
    limited = refusal(429, "rate_limit_exceeded", {"Retry-After": "0"})
    gateway.replies(DROPPED, missing, limited, missing, missing)
    lost, refused, never = typescript.results({"baseUrl": gateway.url}, DELETE, DELETE, DELETE, hurried=True)
    assert (lost["asked"], "error" in lost) == (2, False)
    assert refused["error"]["name"] == never["error"]["name"] == "NotFoundError"


def test_time_outs_and_signals_end_a_call(typescript: Package, gateway: StandIn):
    slow = Reply(json={}, delay=30)
    gateway.replies(slow, Reply(json={"id": "c" * 50}, drip=0.2), RETRIEVAL_REPLY)
    hasty = {**GET, "args": [HOME, {"timeout": 700, **NEVER}]}
    steps = hasty, hasty, {**GET, "aborted": True}
    late, dripping, aborted = typescript.results({"baseUrl": gateway.url}, *steps)
    assert late["error"]["name"] == dripping["error"]["name"] == "APITimeoutError"
    assert late["error"]["message"] == "No answer within 700 ms. Try again, or raise timeout."
    assert (aborted["error"]["name"], aborted["error"]["message"]) == ("Error", "enough")
    # On a machine that is busy for so long, the time is over before the request.
    assert len(gateway.requests) <= 2


def test_the_key_is_not_sent_to_redirects(typescript: Package, gateway: StandIn):
    statuses = (302, 307, 308)
    with StandIn() as elsewhere:
        elsewhere.replies(RETRIEVAL_REPLY)
        gateway.replies(*(Reply(status=each, headers={"Location": elsewhere.url}) for each in statuses))
        results = typescript.results({"baseUrl": gateway.url}, GET, CREATE, RETRIEVE)
        assert elsewhere.requests == []
    message = "The server redirects, which is not followed. Check baseUrl."
    for result, status in zip(results, statuses, strict=True):
        assert result["error"]["message"] == f"{message} (status {status})"
    assert len(gateway.requests) == 3


def test_the_key_is_sent_and_never_shown(typescript: Package, gateway: StandIn):
    gateway.replies(refusal(401, "invalid_api_key"), DROPPED, Reply(body=b"no JSON"))
    results = typescript.calls({"baseUrl": gateway.url, **NEVER}, GET, GET, GET)
    assert {request.headers["authorization"] for request in gateway.requests} == {f"Bearer {KEY}"}
    output = [results["shown"], *(result["error"]["shown"] for result in results["results"])]
    assert all("Error" in text for text in output[1:])
    assert "CollectionsResource" in output[0]
    assert not any(KEY in text for text in output)


def test_an_invalid_key_is_not_quoted(typescript: Package):
    keys, address = [f"{KEY}\n", f"{KEY} ", f"{KEY}é", "", 17], "http://127.0.0.1:9"
    # As they are given, and as a function gives them.
    steps = [*({"client": {"apiKey": key, "baseUrl": address}} for key in keys), *([GET] * len(keys))]
    for result in typescript.results({"tokens": keys, "baseUrl": address}, *steps):
        assert (result["error"]["name"], result["error"]["ours"]) == ("MnemosyneError", True)
        assert KEY not in result["error"]["shown"]
        assert result["asked"] == 0


def test_invalid_settings_and_ids_that_change_the_path_are_refused(typescript: Package, gateway: StandIn):
    addresses = ["ftp://x/v1", "file:///etc", "//x", "http://ann:secret@x/v1", "http://x/v1?a=b"]
    clients = [{"client": {"apiKey": KEY, "baseUrl": address}} for address in addresses]
    ids = [{"call": "documents.get", "args": [id]} for id in ("", ".", "..", None)]
    results = typescript.results({"baseUrl": gateway.url}, *clients, *ids)
    assert [result["error"]["name"] for result in results] == ["MnemosyneError"] * 9
    assert not any("secret" in result["error"]["shown"] for result in results)
    gateway.replies(RETRIEVAL_REPLY)
    read = {"call": "documents.get", "args": ["../a/ü?x"]}
    typescript.results({"baseUrl": f"{gateway.url}/api/v1//"}, read)
    assert [request.path for request in gateway.requests] == ["/api/v1/documents/..%2Fa%2F%C3%BC%3Fx"]


def test_a_token_function_is_called_before_each_attempt(typescript: Package, gateway: StandIn):
    gateway.replies(BUSY, RETRIEVAL_REPLY)
    typescript.results({"baseUrl": gateway.url, "tokens": ["first", "second"]}, GET, hurried=True)
    tokens = [request.headers["authorization"] for request in gateway.requests]
    assert tokens == ["Bearer first", "Bearer second"]


def test_field_names_are_camel_case_and_user_data_is_unchanged(typescript: Package, gateway: StandIn):
    own = {"page_number": 1, "camelCase": {"inner_name": [{"a_b": 1}]}, "__proto__": 1}
    row = {"id": "c", "created_at": "t", "metadata": own, "config": {"chunk_size": 64}}
    gateway.replies(Reply(json={**row, "brand_new": {"a_b": 1}}))
    made = {"name": "n", "orgId": HOME, "metadata": own, "config": {"chunkSize": 64}}
    narrowed = {**own, "dueDate": {"$gte": "2026-01-01", "$exists": True}}
    request = {"query": "q", "topK": 3, "enableGraph": None, "metadataFilter": narrowed}
    steps = {**CREATE, "args": [made]}, {**RETRIEVE, "args": [request]}
    result, _ = typescript.results({"baseUrl": gateway.url}, *steps)
    assert gateway.requests[1].json == {
        "query": "q", "top_k": 3, "enable_graph": None, "metadata_filter": narrowed,
    }  # fmt: skip
    assert gateway.requests[0].json == {
        "name": "n", "org_id": HOME, "metadata": own, "config": {"chunk_size": 64},
    }  # fmt: skip
    assert result["value"] == {
        "id": "c", "createdAt": "t", "metadata": own, "config": {"chunkSize": 64}, "brandNew": {"aB": 1},
    }  # fmt: skip


def test_graph_results_have_their_evidence(typescript: Package, gateway: StandIn):
    entity = {"id": "1", "name": "Ann", "type": "person", "aliases": ["A"], "seed": True, "weight": 1.0}
    edge = {"type": "owns", "source": "1", "target": "2", "confidence": 0.9, "evidence": ["k"]}
    row = {"chunk_id": "k", "metadata": {"graph_sourced": True}, "chunk_metadata": {"page_number": 5}}
    body = {
        "query": "q", "mode": "graph", "graph_context": "Ann owns it.", "results": [row],
        "graph": {"entities": [entity], "edges": [edge], "evidence": ["k"]},
        "retrieval_metadata": {"retrieval_time_ms": 7},
    }  # fmt: skip
    gateway.replies(Reply(json=body))
    step = {"call": "retrievals.graphQuery", "args": [{"query": "q", "topK": 3}]}
    (result,) = typescript.results({"baseUrl": gateway.url}, step)
    assert gateway.requests[0].json == {"query": "q", "top_k": 3, "mode": "graph"}
    assert result["value"] == {
        "query": "q", "context": "Ann owns it.", "entities": [entity], "edges": [edge], "evidence": ["k"],
        "chunks": [{"chunkId": "k", "metadata": {"graphSourced": True}, "chunkMetadata": {"page_number": 5}}],
        "retrievalMetadata": {"retrievalTimeMs": 7},
    }  # fmt: skip


def test_files_of_every_kind_are_sent(typescript: Package, gateway: StandIn):
    path = typescript.folder / "kiln.txt"
    path.write_text("hot")
    kinds: list[Row] = [
        {"kind": "stream", "path": str(path)}, {"kind": "file", "name": "kiln.txt", "text": "hot"},
        {"kind": "named", "name": "kiln.txt", "text": "hot"}, {"kind": "web", "text": "hot"},
        {"kind": "blob", "text": "hot"}, {"kind": "bytes", "text": "hot"},
    ]  # fmt: skip
    gateway.replies(RETRIEVAL_REPLY)
    about = {"collectionId": HOME, "metadata": {"a_b": "ü"}, "externalId": "e", "private": True}
    steps: list[Row] = [{"call": "documents.create", "args": [about], "file": kind} for kind in kinds]
    named = {**steps[-1], "args": [{**about, "filename": 'a "b".md', "contentType": "text/markdown"}]}
    gone = {**steps[0], "file": {"kind": "stream", "path": "/nowhere"}}
    steps += [named, gone, {**gone, "file": {"kind": "none"}}]
    results = typescript.results({"baseUrl": gateway.url}, *steps)
    assert ["error" in result for result in results] == [False] * 7 + [True] * 2
    assert "ENOENT" in results[-2]["error"]["message"]
    names = []
    field = re.compile(r'name="(\w+)"[^\r]*\r\n(?:Content-Type[^\r]*\r\n)?\r\n(.*?)\r\n--', re.S)
    for request in gateway.requests:
        assert request.headers["content-type"].startswith("multipart/form-data; boundary=")
        assert dict(field.findall(request.body.decode())) == {
            "collection_id": HOME, "metadata": '{"a_b":"ü"}', "external_id": "e", "private": "true",
            "file": "hot",
        }  # fmt: skip
        names += re.findall(r'filename="([^\r]*)"\r', request.body.decode())
    assert names == ["kiln.txt"] * 3 + ["unnamed"] * 3 + ["a %22b%22.md"]
    assert b"Content-Type: text/markdown\r\n" in gateway.requests[-1].body


def test_an_endless_file_does_not_fill_the_memory(typescript: Package, gateway: StandIn):
    step = {**UPLOAD, "file": {"kind": "stream", "path": "/dev/zero"}}
    (result,) = typescript.results({"baseUrl": gateway.url}, step)
    assert (result["error"]["name"], gateway.requests) == ("PayloadTooLargeError", [])


def test_many_documents_are_listed_page_by_page(typescript: Package, gateway: StandIn):
    def page(offset: int, size: int = 100) -> Reply:
        more = {"total": 1000, "limit": 100, "offset": offset, "has_more": offset < 900}
        data = [{"title": f"t{number}"} for number in range(offset, offset + size)]
        return Reply(json={"data": data, "pagination": more})

    pages = [page(offset) for offset in range(0, 1000, 100)]
    # The last says that there is more, and there is nothing: it ends all the same.
    endless = page(0, 0)
    gateway.replies(*pages[:3], *pages, endless)
    listing: Row = {"call": "documents.list", "args": [{"collectionId": HOME, "limit": 100}]}
    ways = [{**listing, "all": most} for most in (250, -1, -1)]
    some, every, none = typescript.results({"baseUrl": gateway.url}, *ways)
    # No page is asked for before the one before it was read.
    assert (len(some["value"]["items"]), some["asked"]) == (250, 3)
    assert every["value"] == {"items": [f"t{number}" for number in range(1000)], "plain": True}
    assert (every["asked"], none["value"]["items"], none["asked"]) == (10, [], 1)
    paths = [request.path for request in gateway.requests[3:13]]
    assert paths == [
        f"/documents?collection_id={HOME}&limit=100" + (f"&offset={offset}" if offset else "")
        for offset in range(0, 1000, 100)
    ]


def test_waiting_until_a_document_is_ready(typescript: Package, gateway: StandIn):
    def document(status: str, error: Row | None = None) -> Reply:
        return Reply(json={"id": "d", "status": status, "error": error})

    unread = {"code": "processing_failed", "message": "No text."}
    limited = refusal(429, "rate_limit_exceeded", {"Retry-After": "9"})
    gateway.replies(document("processing"), BUSY, DROPPED, limited, document("completed"))
    gateway.replies(document("failed", unread), refusal(404, "document_not_found"), document("processing"))
    step: Row = {"call": "documents.waitUntilReady", "args": ["d"]}
    results = typescript.calls({"baseUrl": gateway.url}, step, step, step, hurried=True)
    ready, failed, missing = results["results"]
    assert (ready["asked"], ready["value"]["status"]) == (5, "completed")
    assert (failed["error"]["name"], failed["error"]["code"]) == ("DocumentFailedError", "processing_failed")
    assert failed["error"]["message"] == "Document d failed: No text. (code processing_failed)"
    assert missing["error"]["name"] == "NotFoundError"
    # A busy machine may need more than the shortest time for the first request.
    for timeout in (1200, 6000, 30_000):
        (late,) = typescript.results({"baseUrl": gateway.url}, {**step, "args": ["d", {"timeout": timeout}]})
        if late["error"].get("lastStatus"):
            break
    assert (late["error"]["name"], late["error"]["lastStatus"]) == ("APITimeoutError", "processing")
    assert "it is still processing" in late["error"]["message"]
    first, second, third, messages = [wait for wait in results["waits"] if wait < 10_000][:4]
    assert (500 <= first <= 625, 750 <= second <= 938, 1125 <= third <= 1407) == (True, True, True)
    assert messages == 9000
