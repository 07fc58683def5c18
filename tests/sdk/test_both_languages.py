"""Behaviour of both SDKs: names in place of ids, the parameters and the results of a retrieval."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from mnemosyne import (
    APIConnectionError,
    APITimeoutError,
    ConflictError,
    DocumentFailedError,
    Mnemosyne,
    MnemosyneError,
    NotFoundError,
    UnexpectedResponseError,
)
from mnemosyne.models.chat import ChatMessageParam
from mnemosyne.resources.retrievals import RetrievalsResource
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.search_workspace import put, workspace
from tests.functions.test_records import record_requests
from tests.sdk.python_client import DOCUMENT, address_of, client_of, key_of
from tests.sdk.typescript_package import HOME, KEY, Package, Row
from tests.stand_in_server import Reply, StandIn

pytestmark = pytest.mark.usefixtures("no_jobs")
TEXT = "The kiln is hot."
VALUES: Row = {
    "collection_id": HOME, "query": "q", "mode": "hybrid", "top_k": 3, "document_type": "legal",
    "rerank": True, "enable_graph": False, "metadata_filter": {"a_b": 1},
}  # fmt: skip


def camel(value: Any) -> Any:
    """The names as TypeScript has them; free-form values unchanged."""
    if isinstance(value, list):
        return list(map(camel, value))
    if not isinstance(value, dict):
        return value
    free = {"document_metadata", "chunk_metadata"}
    return {
        re.sub(r"_(\w)", lambda match: match[1].upper(), name): inner if name in free else camel(inner)
        for name, inner in value.items()
    }


def test_a_collection_is_used_by_its_name(typescript: Package, people: People):
    with client_of(people.ann) as ann:
        made = ann.collections.create("Handbook")
        assert ann.collections.get("Handbook") == made
        document = ann.documents.create_from_text("Handbook", TEXT)
        assert document.collection_id == made.id
        assert [each.id for each in ann.documents.list("Handbook")] == [document.id]
        assert list(ann.retrievals.retrieve("Handbook", "kiln", mode="keyword")) == []
        for call in (ann.collections.get, lambda name: ann.retrievals.retrieve(name, "kiln")):
            with pytest.raises(NotFoundError, match="No collection has the name 'handbook'") as unknown:
                call("handbook")
            assert unknown.value.code == "collection_not_found"
            assert "Handbook" not in str(unknown.value)
            assert unknown.value.details == {"names": ["Handbook"]}
        client = {"baseUrl": ann.base_url, "apiKey": key_of(people.ann)}
        home, file = {"collectionId": "Handbook"}, {"kind": "named", "name": "a.txt", "text": "b"}
        messages = [{"role": "user", "content": "kiln?"}]
        got, second, listed, chat, unseen, gone = typescript.results(
            client,
            {"call": "collections.get", "args": ["Handbook"]},
            {"call": "documents.create", "args": [home], "file": file},
            {"call": "documents.list", "args": [home]},
            {"call": "chat.completions.create", "args": [{**home, "messages": messages}]},
            {"call": "retrievals.retrieve", "args": [{"collectionId": "handbook", "query": "kiln"}]},
            {"call": "collections.delete", "args": ["Handbook", {"cascade": True}]},
        )
        assert (got["value"]["id"], second["value"]["collectionId"]) == (made.id, made.id)
        assert chat["value"]["metadata"]["collectionId"] == made.id
        assert len(listed["value"]["items"]) == 2
        assert unseen["error"]["message"].startswith(
            'No collection has the name "handbook". Check the name; details.names lists those that exist. ('
        )
        assert unseen["error"]["details"] == {"names": ["Handbook"]}
        assert (unseen["error"]["name"], unseen["error"]["status"]) == ("NotFoundError", 404)
        assert "error" not in gone
        assert ann.collections.list() == []


def test_messages_are_stored_without_a_search(typescript: Package, people: People):
    with client_of(people.ann) as ann:
        home = ann.collections.create("Handbook").id
        question, reply = {"role": "user", "content": "Hot?"}, {"role": "assistant", "content": "Yes."}
        first = ann.chat.sessions.create([{"role": "user", "content": "Hot?"}], collection_id="Handbook")
        ann.chat.sessions.add_messages(first.session_id, [{"role": "assistant", "content": "Yes."}])
        create = {"messages": [question], "collectionId": "Handbook"}
        client = {"baseUrl": ann.base_url, "apiKey": key_of(people.ann)}
        made, added = typescript.results(
            client,
            {"call": "chat.sessions.create", "args": [create]},
            {"call": "chat.sessions.addMessages", "args": [first.session_id, [reply]]},
        )
        assert "error" not in added
        homes = {session.id: session.collection_id for session in ann.chat.sessions.list()}
        assert homes == {first.session_id: home, made["value"]["sessionId"]: home}
        stored = [message.content for message in ann.chat.sessions.messages(first.session_id)]
        assert stored == ["Hot?", "Yes.", "Yes."]
        with pytest.raises(NotFoundError):
            ann.chat.sessions.add_messages(HOME, [{"role": "assistant", "content": "Yes."}])


def test_a_name_of_two_orgs_is_refused_and_an_org_is_used_by_its_name(typescript: Package, people: People):
    token, address = people.kim.token(), address_of(people.kim.stack)
    with Mnemosyne(token, address) as kim:
        first = kim.collections.create("Handbook", org_id="Acme")
        assert first.org_id == people.acme.id
        create = {"call": "collections.create", "args": [{"name": "Handbook", "orgId": "Bolt"}]}
        unknown = {"call": "collections.create", "args": [{"name": "Handbook", "orgId": "Cog"}]}
        get = {"call": "collections.get", "args": ["Handbook"]}
        second, unseen, two = typescript.results({"baseUrl": address, "apiKey": token}, create, unknown, get)
        assert second["value"]["orgId"] == people.bolt.id
        assert unseen["error"]["details"] == {"names": ["Acme", "Bolt"]}
        with pytest.raises(ConflictError, match="2 collections have the name 'Handbook'") as ambiguous:
            kim.collections.delete("Handbook")
        for error in (str(ambiguous.value), two["error"]["message"]):
            assert first.id in error
            assert second["value"]["id"] in error


def test_a_name_is_looked_for_on_all_pages(typescript: Package, gateway: StandIn):
    def page(offset: int, has_more: bool, *rows: Row) -> Reply:
        data = [*rows, *({"id": f"i{number}", "name": f"n{number:03}"} for number in range(100 - len(rows)))]
        pagination = {"total": 200, "limit": 100, "offset": offset, "has_more": has_more}
        return Reply(json={"data": data, "pagination": pagination})

    pages = (page(0, True), page(100, False, {"id": HOME, "name": "Handbook"}))
    gateway.replies(*pages, Reply(status=404, json={}), *pages, Reply(status=404, json={}))
    with Mnemosyne(KEY, gateway.url) as client, pytest.raises(NotFoundError):
        client.collections.get("Handbook")
    typescript.results({"baseUrl": gateway.url}, {"call": "collections.get", "args": ["Handbook"]})
    ends = ["?limit=100&offset=0", "?limit=100&offset=100", f"/{HOME}"]
    assert [request.path for request in gateway.requests] == [f"/collections{end}" for end in ends * 2]


CHECK = "Check the API key and base"
REMEDIES = [
    (307, "UnexpectedResponseError", "check base"), (400, "BadRequestError", CHECK),
    (401, "AuthenticationError", CHECK), (403, "PermissionDeniedError", CHECK), (404, "NotFoundError", CHECK),
    (409, "ConflictError", CHECK), (413, "PayloadTooLargeError", "Send less."),
    (422, "ValidationError", CHECK), (429, "RateLimitError", "Try again later."),
    (502, "InternalServerError", "Try again later."),
]  # fmt: skip


def test_an_error_has_its_status_and_a_remedy_with_and_without_a_reason_of_the_server(
    subtests: pytest.Subtests, typescript: Package
):
    """A proxy gives no reason. The API's own reason contains a remedy."""
    why = {"error": {"code": "some_code", "message": "The name is too long. Shorten it."}}
    for status, name, remedy in REMEDIES:
        with subtests.test(status=status), StandIn() as gateway:
            replies = [Reply(status=status, body=b"<p>proxy</p>"), Reply(status=status, json=why)]
            gateway.replies(*replies, *replies)
            messages = []
            with Mnemosyne(KEY, gateway.url, max_retries=0) as client:
                for _ in replies:
                    with pytest.raises(MnemosyneError) as raised:
                        client.collections.list()
                    assert type(raised.value).__name__ == name
                    messages.append(str(raised.value))
            step = {"call": "collections.list"}
            results = typescript.results({"baseUrl": gateway.url, "maxRetries": 0}, step, step)
            assert {result["error"]["name"] for result in results} == {name}
            messages += [result["error"]["message"] for result in results]
            assert all(f"(status {status}" in message for message in messages)
            proxy, own, proxy_too, own_too = messages
            assert remedy.lower() in proxy.lower()
            assert remedy.lower() in proxy_too.lower()
            if status != 307:
                expected = f"The name is too long. Shorten it. (status {status}, code some_code)"
                assert (own, own_too) == (expected, expected)


def test_an_error_without_a_response_has_a_remedy(typescript: Package, gateway: StandIn):
    drop = Reply(drop=True)
    end = Reply(body=b"data: {}\n\n", headers={"Content-Type": "text/event-stream"})
    processing = {**DOCUMENT, "id": "d"}
    failed = {**processing, "status": "failed", "error": {"code": "no_text", "message": "No text. Run OCR."}}
    replies = drop, end, Reply(json=processing), Reply(json=failed)
    question: list[ChatMessageParam] = [{"role": "user", "content": "q"}]
    gateway.replies(*replies, *replies)
    list_: Row = {"call": "collections.list"}
    with StandIn() as slow, Mnemosyne(KEY, slow.url, timeout=0.5, max_retries=0) as client:
        slow.replies(Reply(json={}, delay=60))
        with pytest.raises(APITimeoutError, match="Try again, or raise timeout"):
            client.collections.list()
        (late,) = typescript.results({"baseUrl": slow.url, "timeout": 500, "maxRetries": 0}, list_)
        assert "Try again, or raise timeout." in late["error"]["message"]
    with Mnemosyne(KEY, gateway.url, max_retries=0) as client:
        calls: list[tuple[type[MnemosyneError], str, Callable[[], Any]]] = [
            (APIConnectionError, "Check the address, or try again", client.collections.list),
            (
                UnexpectedResponseError, "Check base_url",
                lambda: list(client.chat.completions.create(None, question, stream=True)),
            ),
            (APITimeoutError, "raise timeout", lambda: client.documents.wait_until_ready("d", 0)),
            (DocumentFailedError, r"OCR. \(code no_text\)", lambda: client.documents.wait_until_ready("d")),
        ]  # fmt: skip
        for kind, remedy, call in calls:
            with pytest.raises(kind, match=remedy):
                call()
    create = {
        "call": "chat.completions.create",
        "args": [{"messages": question, "stream": True}],
        "read": True,
    }
    wait = [{"call": "documents.waitUntilReady", "args": ["d", *more]} for more in ([{"timeout": 0}], [])]
    results = typescript.results({"baseUrl": gateway.url, "maxRetries": 0}, list_, create, *wait)
    remedies = "Check baseUrl and the network.|Send the request again.|raise timeout.|Run OCR. (code no_text)"
    for result, remedy in zip(results, remedies.split("|"), strict=True):
        assert remedy in (result.get("error") or result["value"]["error"])["message"]


def test_a_retrieval_has_the_same_parameters(typescript: Package, gateway: StandIn):
    assert set(inspect.signature(RetrievalsResource.retrieve).parameters) == {"self", *VALUES}
    reply = {"query": "q", "mode": "hybrid", "total_results": 0, "results": []}
    gateway.replies(*[Reply(json=reply)] * 4)
    with Mnemosyne(KEY, gateway.url) as client:
        client.retrievals.retrieve(**VALUES)
        client.retrievals.retrieve(None, "q")
    free = {"metadataFilter": VALUES["metadata_filter"]}
    arguments = [{**camel(VALUES), **free}, {"query": "q"}]
    steps = [{"call": "retrievals.retrieve", "args": [each]} for each in arguments]
    typescript.results({"baseUrl": gateway.url}, *steps)
    assert [request.json for request in gateway.requests] == [VALUES, {"query": "q"}] * 2


def test_a_retrieval_has_the_same_result(typescript: Package, people: People, services: Services):
    workspace(services, people.ann)
    question = "Why was there a billing outage?"
    with client_of(people.ann) as ann:
        result = ann.retrievals.retrieve(None, question, mode="hybrid", enable_graph=True)
        arguments = {"query": question, "mode": "hybrid", "enableGraph": True}
        (output,) = typescript.results(
            {"baseUrl": ann.base_url, "apiKey": key_of(people.ann)},
            {"call": "retrievals.retrieve", "args": [arguments]},
        )
    other = output["value"]
    assert [chunk["chunkId"] for chunk in other["items"]] == [chunk.chunk_id for chunk in result]
    details = {}
    for name in vars(result).keys() - {"response"}:
        value = getattr(result, name)
        details[name] = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
    for each in (other["retrievalMetadata"], details["retrieval_metadata"]):
        each.pop("retrieval_time_ms", None)
        each.pop("retrievalTimeMs", None)
    assert {"items": camel([chunk.model_dump(mode="json") for chunk in result]), **camel(details)} == other


def test_an_answer_is_rated(typescript: Package, people: People, services: Services, world: World):
    record_requests(people.ada)
    put(services, people.ann, "kilns", "Kiln", TEXT)
    rated = "select rating, reason from rag.request_records where org_id = %s"
    with client_of(people.ann) as ann:
        question: list[ChatMessageParam] = [{"role": "user", "content": "Is the kiln hot?"}]
        metadata = ann.chat.completions.create("kilns", question).metadata
        assert metadata
        assert metadata.recorded
        assert metadata.request_id
        ann.records.rate(metadata.request_id, "down", reason="It is cold.")
        assert world.sql(rated, people.acme.id) == [("down", "It is cold.")]
        with pytest.raises(NotFoundError) as unknown:
            ann.records.rate("unknown", "up")
        assert unknown.value.code == "record_not_found"
        client = {"baseUrl": ann.base_url, "apiKey": key_of(people.ann)}
        call = {"call": "records.rate", "args": [metadata.request_id, {"rating": "up"}]}
        typescript.results(client, call)
    assert world.sql(rated, people.acme.id) == [("up", None)]


def test_a_client_sends_its_last_write_with_its_next_requests(typescript: Package, gateway: StandIn):
    """So that it reads its own writes on a read replica."""
    page: Row = {"data": [], "pagination": {"total": 0, "limit": 20, "offset": 0, "has_more": False}}
    replies = [Reply(json=page, headers={"X-Rag-Read-After": text}) for text in ("7", "6", "none", "9")]
    gateway.replies(*replies, Reply(json=page), *replies, Reply(json=page))
    with Mnemosyne(KEY, gateway.url) as client:
        for _ in range(5):
            client.collections.list()
    typescript.results({"baseUrl": gateway.url}, *({"call": "collections.list"} for _ in range(5)))
    sent = [request.headers.get("x-rag-read-after") for request in gateway.requests]
    assert sent == [None, "7", "7", "7", "9"] * 2
