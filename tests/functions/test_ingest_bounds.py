"""Bounds of ingestion that a client waits for: it ends with its client, and has so much text a minute."""

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from threading import Event
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from functions import indexes, knowledge
from shared.access.concurrent_ingestion_limit import IngestionLimit
from shared.api import ingestion_guard
from shared.config import Settings
from shared.models.chunk_sizes import OPENAI
from shared.models.embeddings import EMBEDDED_AT_ONCE
from shared.services import Services
from tests.actors import Actor, World
from tests.conftest import People
from tests.deploy.conftest import event
from tests.functions.app_server import client_of, invoke, live, services_with, wait_for
from tests.isolation.test_api_keys import make
from tests.stand_in_server import Reply, StandIn

KNOWLEDGE = "/api/v1/knowledge/texts/documents"
TWO_BATCHES = EMBEDDED_AT_ONCE + 1


def vectors(count: int, after: Event | None = None) -> Reply:
    """What an endpoint answers for so many texts."""
    data = [{"object": "embedding", "index": number, "embedding": [1.0, 0.5]} for number in range(count)]
    return Reply(json={"object": "list", "model": "m", "data": data}, after=after)


@contextmanager
def embedding(settings: Settings, *replies: Reply) -> Iterator[tuple[Services, StandIn]]:
    """A deployment whose embedder is an endpoint, and that endpoint."""
    with StandIn() as server:
        window = {"id": "m", "max_model_len": OPENAI.window}
        server.replies(Reply(json={"data": [window]}), *replies)
        hosted: dict[str, Any] = {"openai_api_key": "sk-x", "rag_embedding_url": f"{server.url}/v1"}
        with services_with(settings, **hosted) as services:
            # The first use of the window sends a request of its own.
            assert services.embedder.window == OPENAI.window
            server.requests.clear()
            yield services, server


@contextmanager
def requests_ended() -> Iterator[list[logging.LogRecord]]:
    """The log lines of requests that end in here."""
    records: list[logging.LogRecord] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.extend([record] if record.msg == "request" else [])

    log, handler = logging.getLogger("rag"), Handler()
    log.addHandler(handler)
    try:
        yield records
    finally:
        log.removeHandler(handler)


def stored(world: World, actor: Actor, words: str = "New") -> int:
    assert actor.org
    ((count,),) = world.sql(
        "select count(*) from rag.documents where org_id = %s and starts_with(content, %s)",
        actor.org.id, words,
    )  # fmt: skip
    return int(count)


def texts(words: str) -> list[dict[str, Any]]:
    return [{"text": f"{words} text {number}."} for number in range(TWO_BATCHES)]


def test_a_disconnected_client_ends_the_ingestion_and_stores_nothing(
    subtests: pytest.Subtests, people: People, world: World, settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    monkeypatch.setattr(ingestion_guard, "POLL_CLIENT_SECONDS", 0)
    old = {"index_name": "changed", "documents": texts("Old")}
    replies = vectors(EMBEDDED_AT_ONCE), vectors(1)
    with embedding(settings, *replies) as (services, _), client_of(indexes.app, services) as client:
        rows = client.post("/index", json=old, headers=people.ann.headers()).json()
    changes = [{**text, "doc_id": row["doc_id"]} for text, row in zip(texts("New"), rows, strict=True)]
    requests: list[tuple[FastAPI, str, dict[str, Any]]] = [
        (indexes.app, "/index", {"index_name": "new", "documents": texts("New")}),
        (indexes.app, "/indexes/changed/documents", {"documents": changes}),
        (knowledge.app, KNOWLEDGE, {"documents": texts("New")}),
    ]
    for app, path, body in requests:
        release = Event()
        with (
            subtests.test(path),
            embedding(settings, vectors(EMBEDDED_AT_ONCE, release), vectors(1)) as (services, server),
            requests_ended() as records,
            live(app, services) as url,
        ):
            headers = {**people.ann.headers(), "Content-Type": "application/json"}
            with closing(HTTPConnection(url.removeprefix("http://"))) as client:
                client.request("POST", path, json.dumps(body), headers)
                server.wait_for_requests(1)
            # The server sees the end of that connection before it sees another request.
            assert httpx.get(f"{url}/nowhere").status_code == 404
            release.set()
            wait_for(lambda: len(records) == 2)  # called at once
            assert [record.__dict__["status"] for record in records] == [404, 499]
            assert records[1].__dict__["error"] == "client_left"
            assert len(server.requests) == 1
            assert stored(world, people.ann) == 0
    assert stored(world, people.ann, "Old") == TWO_BATCHES


def test_a_user_with_too_many_concurrent_ingestions_must_wait(
    people: People, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ingestion_guard, "INGESTION_WAIT_SECONDS", 0.2)
    body = {"index_name": "busy", "documents": [{"text": SHORT}]}
    release = Event()
    replies = [vectors(1, release), *[vectors(1)] * 5]
    with embedding(settings, *replies) as (services, server), live(indexes.app, services) as url:
        vars(services)["ingestions"] = IngestionLimit(1)

        def put(actor: Actor) -> httpx.Response:
            return httpx.post(f"{url}/index", json=body, headers=actor.headers())

        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(put, people.ann)
            server.wait_for_requests(1)
            refused, other = put(people.ann), put(people.bob)
            release.set()
        assert (first.result().status_code, other.status_code) == (200, 200)
    assert refused.status_code == 503
    assert refused.json() == {
        "detail": "Your other ingestions are still running. Please try again in a few seconds."
    }
    assert refused.headers["Retry-After"] == "3"


def test_a_connected_client_and_one_behind_lambda_get_their_texts_stored(
    people: People, world: World, settings: Settings
):
    body = {"index_name": "new", "documents": texts("New")}
    replies = vectors(EMBEDDED_AT_ONCE), vectors(1), vectors(EMBEDDED_AT_ONCE), vectors(1)
    with embedding(settings, *replies) as (services, _):
        with live(indexes.app, services) as url:
            response = httpx.post(f"{url}/index", json=body, headers=people.ann.headers())
            assert response.status_code == 200, response.text
        with client_of(indexes.app, services):
            headers = {"content-type": "application/json", "authorization": f"Bearer {people.bob.token()}"}
            request = event("http_api", "POST", "/index", headers=headers, body=json.dumps(body))
            assert invoke(indexes.handler, request)["statusCode"] == 200
    assert stored(world, people.ann) == stored(world, people.bob) == TWO_BATCHES


LONG, SHORT = f"Long {' ' * 3000}", "Short."


def test_a_user_s_ingested_bytes_per_minute_are_limited(people: People, world: World, settings: Settings):
    key = make(people.ann)["key"]
    with (
        services_with(settings, rag_ingest_bytes_per_minute=5000) as services,
        client_of(indexes.app, services) as index,
        client_of(knowledge.app, services) as namespace,
    ):

        def put(text: str, token: str | None = None, actor: Actor = people.ann) -> Any:
            body = {"index_name": "texts", "documents": [{"text": text}]}
            return index.post("/index", json=body, headers=actor.headers(token))

        headers = people.ann.headers()
        first = put(LONG)
        assert first.status_code == 200, first.text
        change = {"documents": [{"doc_id": first.json()[0]["doc_id"], "text": f"{LONG}1"}]}
        # A key of the user's, and another API, count with the user.
        for refused in (
            put(f"{LONG}2"),
            put(f"{LONG}3", key),
            index.post("/indexes/texts/documents", json=change, headers=headers),
            namespace.post(KNOWLEDGE, json={"documents": [{"text": f"{LONG}4"}]}, headers=headers),
        ):
            assert refused.status_code == 429, refused.text
            words = "You sent more than 4 KB of text in a minute. Please wait, or send less at once."
            assert refused.json() == {"detail": words}
            assert 1 <= int(refused.headers["Retry-After"]) <= 61
        # A text that is there is not stored again; a small one has room; other users have their own.
        assert put(LONG).status_code == put(SHORT).status_code == 200
        assert put(f"{LONG}6", actor=people.alf).status_code == 200
        # More than the limit takes the whole of a minute.
        assert put(LONG * 3, actor=people.bob).status_code == 200
        assert put(SHORT, actor=people.bob).status_code == 429
        world.sql("update rag.rate_limits set started_at = started_at - interval '1 minute'")
        assert put(f"{LONG}5").status_code == 200
    assert stored(world, people.ann, "Long") == 3
