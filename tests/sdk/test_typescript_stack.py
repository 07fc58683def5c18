"""The TypeScript SDK on the real local stack: each resource, and a token that expires."""

import time
from typing import Any

import pytest

from functions import chat
from shared.access import jwt_verifier
from shared.config import Settings
from tests.actors import Actor
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.app_server import live, services_with
from tests.functions.platform_chat_client import streams
from tests.functions.search_workspace import MENU
from tests.functions.test_documents import work
from tests.isolation.test_api_keys import make
from tests.sdk.typescript_package import SCRIPTS, Package, Row
from tests.stand_in_server import Reply, StandIn

GUIDE = "To deploy the application, build the Docker image and push it to the registry."
# The worker finds no other test's jobs.
pytestmark = pytest.mark.usefixtures("no_jobs")


def client_of(actor: Actor) -> Row:
    return {"baseUrl": f"{actor.stack.url}/api/v1", "apiKey": make(actor)["key"]}


def step(call: str, *arguments: Any, **more: Any) -> Row:
    return {"call": call, "args": arguments, **more}


def one(typescript: Package, client: Row, call: str, *arguments: Any, **more: Any) -> Any:
    (result,) = typescript.results(client, step(call, *arguments, **more))
    assert "value" in result, result
    return result["value"]


def test_a_member_manages_collections(typescript: Package, people: People):
    client = client_of(people.ann)
    docs: Row = {"name": "docs", "metadata": {"a_b": {"cD": 1}}, "config": {"chunkSize": 64}}
    creations = [step("collections.create", each) for each in (docs, {"name": "notes", "private": True})]
    made, other = typescript.results(client, *creations)
    home: str = made["value"]["id"]
    assert (made["value"]["metadata"], made["value"]["config"]["chunkSize"]) == ({"a_b": {"cD": 1}}, 64)
    assert (other["value"]["userId"], other["value"]["ownerId"]) == (people.ann.id, people.ann.id)
    got, listed, changed, second, gone, missing = typescript.results(
        client,
        step("collections.get", home),
        step("collections.list", {"limit": 1, "sortBy": "name", "order": "asc"}),
        step("collections.update", home, {"description": "Of all."}),
        step("collections.create", {"name": "docs"}),
        step("collections.delete", other["value"]["id"], {"cascade": True}),
        step("collections.get", other["value"]["id"]),
    )
    assert got["value"] == made["value"]
    assert [row["name"] for row in listed["value"]["items"]] == ["docs"]
    assert listed["value"]["pagination"] == {"total": 2, "limit": 1, "offset": 0, "hasMore": True}
    assert (changed["value"]["description"], changed["value"]["name"]) == ("Of all.", "docs")
    queued = one(typescript, client, "collections.buildGraph", home, {"again": True})
    assert queued == {"collectionId": home, "queued": 0}
    assert (second["error"]["name"], second["error"]["code"]) == ("ConflictError", "duplicate_collection")
    assert "error" not in gone
    assert (missing["error"]["name"], missing["error"]["code"]) == ("NotFoundError", "collection_not_found")


def test_a_member_adds_documents_and_queries_them(typescript: Package, people: People):
    client = client_of(people.ann)
    home = one(typescript, client, "collections.create", {"name": "docs"})["id"]
    text = {
        "collectionId": home, "content": GUIDE, "title": "Guide", "externalId": "g", "metadata": {"a_b": 1},
    }  # fmt: skip
    write, file = step("documents.createFromText", text), {"kind": "named", "name": "r.txt", "text": MENU}
    first, second, upload, address = typescript.results(
        client, write, write,
        step("documents.create", {"collectionId": home}, file=file),
        step("documents.createFromUrl", {"collectionId": home, "url": "http://127.0.0.1/x"}),
    )  # fmt: skip
    # Said twice under one name it is there once: what makes it safe to repeat.
    guide = first["value"]["id"]
    assert (second["value"]["id"], upload["value"]["filename"]) == (guide, "r.txt")
    assert (address["error"]["name"], address["error"]["details"]) == ("BadRequestError", {"field": "url"})
    work(people.ann)
    messages = [{"role": "user", "content": "How to deploy the application?"}]
    question = {"collectionId": home, "messages": messages}
    retrieval = {"collectionId": home, "query": "deploy", "topK": 1, "metadataFilter": {"a_b": 1}}
    ready, listed, changed, results, graph, whole, streamed = typescript.results(
        client,
        step("documents.waitUntilReady", guide),
        step("documents.list", {"collectionId": home, "status": "completed", "sortBy": "title"}),
        step("documents.update", guide, {"metadata": {"a_b": 2}}),
        step("retrievals.retrieve", retrieval),
        step("retrievals.graphQuery", {"collectionId": home, "query": "Who is Ann?"}),
        step("chat.completions.create", {**question, "retrieval": {"topK": 2}}),
        step("chat.completions.create", {**question, "stream": True}, read=True),
    )
    assert ready["value"]["status"] == "completed"
    assert ready["value"]["processingInfo"]["embedding_model"] == "all-MiniLM-L6-v2"
    assert [row["title"] for row in listed["value"]["items"]] == ["r.txt", "Guide"]
    assert changed["value"]["metadata"] == {"a_b": 2}
    assert results["value"]["mode"] == "semantic"
    assert results["value"]["totalResults"] == len(results["value"]["items"])
    assert graph["value"]["entities"] == []
    answer = whole["value"]
    assert "build the Docker image" in answer["choices"][0]["message"]["content"]
    assert (answer["sources"][0]["documentId"], answer["confidenceDetail"]["level"]) == (guide, "high")
    assert (answer["metadata"]["extractive"], answer["model"]) == (True, answer["metadata"]["model"])
    assert streamed["value"]["chunks"][-1]["sessionId"] not in (None, answer["sessionId"])
    sessions, stored, gone, none, deleted = typescript.results(
        client,
        step("chat.sessions.list", {"limit": 5}),
        step("chat.sessions.messages", answer["sessionId"]),
        step("chat.sessions.delete", answer["sessionId"]),
        step("chat.sessions.messages", answer["sessionId"]),
        step("documents.delete", guide),
    )
    assert [row["messageCount"] for row in sessions["value"]["items"]] == [2, 2]
    message = stored["value"]["items"]
    assert [row["role"] for row in message] == ["user", "assistant"]
    assert message[1]["sources"][0]["documentId"] == guide
    assert "error" not in {**gone, **deleted}
    assert none["error"]["name"] == "NotFoundError"


def test_health_is_public_stats_are_for_admins_and_orgs_are_the_caller_s(typescript: Package, people: People):
    health, refused = typescript.results(client_of(people.ann), step("health"), step("stats"))
    assert health["value"]["status"] == health["value"]["services"]["embeddingService"] == "healthy"
    assert refused["error"]["name"] == "PermissionDeniedError"
    admin = {**client_of(people.ada), "apiKey": people.ada.token()}
    stats = one(typescript, admin, "stats")
    assert (stats["totalCollections"], stats["isComplete"]) == (0, True)
    orgs = one(typescript, admin, "orgs")
    assert orgs["items"] == [{"id": people.acme.id, "name": "Acme", "role": "admin"}]
    event = {"event": "knowledge.retrieve", "namespace": "faq", "chunks": 2}
    assert people.ann.rpc("rag_record_event", event).status_code == 204
    events = one(typescript, admin, "events", {"namespace": "faq", "limit": 1})
    assert [(event["userId"], event["chunkCount"]) for event in events["items"]] == [(people.ann.id, 2)]


def test_a_token_that_expires_during_a_stream_is_an_error(
    typescript: Package, people: People, settings: Settings, gateway: StandIn, monkeypatch: pytest.MonkeyPatch
):
    plan = {"choices": [{"message": {"role": "assistant", "content": "nothing"}}]}
    model = {"rag_llm_api_key": "sk-model", "rag_llm_url": gateway.url}
    # PostgREST takes a token for half a minute after its end.
    monkeypatch.setattr(jwt_verifier, "LEEWAY_SECONDS", 60)
    with services_with(settings, **model) as services, live(chat.app, services) as url:
        messages = [{"role": "user", "content": "What?"}]
        request = {"messages": messages, "stream": True, "reasoningMode": "deep"}
        # A busy machine may need more than three seconds for the first half.
        for seconds in (3, 9, 27):
            gateway._replies.clear()
            gateway.replies(Reply(json=plan, delay=seconds + 1), streams("x"))
            token = people.ann.token(exp=int(time.time()) - 30 + seconds)
            client = {"baseUrl": f"{url}/api/v1", "apiKey": token}
            (result,) = typescript.results(client, step("chat.completions.create", request, read=True))
            if "value" in result and result["value"]["chunks"]:
                break
    assert [chunk["type"] for chunk in result["value"]["chunks"]][:1] == ["reasoning_step"]
    error = result["value"]["error"]
    assert (error["name"], error["status"], error["code"]) == ("AuthenticationError", 401, "invalid_api_key")


def test_a_page_of_another_origin_uses_it_in_chromium(typescript: Package, people: People, browser: str):
    arguments = {"browser": browser, "dist": str(typescript.sdk / "dist"), "client": client_of(people.ann)}
    result = run_node(SCRIPTS / "browser.mjs", arguments)
    assert (result["filename"], result["title"], result["left"]) == ("kiln.txt", "Kiln", 0)
    assert (result["chunks"][0], result["chunks"][-2:]) == ("sources", ["usage", "done"])
    assert result["error"] == {"name": "AuthenticationError", "code": "invalid_api_key", "hasRequestId": True}
