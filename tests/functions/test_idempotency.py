"""Idempotency-Key on the platform's POSTs that make something: done once, and answered the same."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpx
import psycopg
import pytest

from tests.actors import Actor, World, client
from tests.conftest import People
from tests.functions.app_server import platform_error as error
from tests.functions.test_documents import collection
from tests.process_faults import long_lock_waits, wait_for_waiters
from tests.upload_client import Uploads, page

KEY = "import-7 of ann"
HEADER = {"Idempotency-Key": KEY}
Row = dict[str, Any]
# The worker finds no other test's jobs.
pytestmark = pytest.mark.usefixtures("no_jobs")


def create(actor: Actor, _: str, name: str = "plans", prefix: str = "/api/v1", **headers: str) -> Any:
    body = {"name": name, "metadata": {"b": 1, "a": 2}}
    return actor.request("POST", f"{prefix}/collections", body, **headers)


def upload(actor: Actor, home: str, name: str = "kiln", prefix: str = "/api/v1", **headers: str) -> Any:
    """A form, each time with a boundary of its own."""
    return client().post(
        f"{actor.stack.url}{prefix}/documents",
        data={"collection_id": home, "metadata": '{"author": "Ann"}'},
        files={"file": ("kiln.txt", f"The {name} is hot.".encode(), "text/plain")},
        headers={**actor.headers(), **headers},
    )


def write(actor: Actor, home: str, name: str = "kiln", prefix: str = "/api/v1", **headers: str) -> Any:
    body = {"collection_id": home, "content": f"The {name} is hot."}
    return actor.request("POST", f"{prefix}/documents/text", body, **headers)


def fetch(actor: Actor, home: str, name: str = "kiln", prefix: str = "/api/v1", **headers: str) -> Any:
    body = {"collection_id": home, "url": f"https://docs.example/{name}"}
    return actor.request("POST", f"{prefix}/documents/url", body, **headers)


def converse(actor: Actor, home: str, name: str = "kiln", prefix: str = "/api/v1", **headers: str) -> Any:
    body = {"messages": [{"role": "user", "content": f"Is the {name} hot?"}], "collection_id": home}
    return actor.request("POST", f"{prefix}/chat/sessions", body, **headers)


Make = Callable[..., Any]


@pytest.fixture
def home(people: People) -> str:
    return collection(people.ann, "docs")


def first(response: Any) -> Row:
    assert response.status_code in (201, 202), response.text
    assert "Idempotency-Replayed" not in response.headers
    body: Row = response.json()
    return body


def assert_replayed(response: httpx.Response, original: httpx.Response) -> None:
    assert (response.status_code, response.content) == (original.status_code, original.content)
    assert response.headers["Idempotency-Replayed"] == "true"
    assert response.headers["X-Request-Id"] != original.headers["X-Request-Id"]


@pytest.mark.parametrize("make", [create, upload, write, fetch, converse])
def test_a_repeated_request_with_the_same_key_runs_once(people: People, world: World, home: str, make: Make):
    """Under either prefix, and with either spelling of ann's collection."""
    once = make(people.ann, home, **HEADER)
    first(once)
    for prefix, place in (("/api/v1", home), ("/v1", home), ("/v1", f"col_{home}")):
        assert_replayed(make(people.ann, place, prefix=prefix, **HEADER), once)
    special: dict[Make, tuple[int, int, int]] = {create: (2, 0, 0), converse: (1, 0, 1)}
    counts = special.get(make, (1, 1, 0))
    for table, count in zip(("collections", "documents", "sessions"), counts, strict=True):
        rows = world.sql(f"select count(*) from rag.{table} where org_id = %s", people.acme.id)
        assert rows == [(count,)], table


def test_a_different_request_with_the_same_key_is_refused(people: People, home: str):
    first(write(people.ann, home, **HEADER))
    refused = error(write(people.ann, home, "oven", **HEADER), 409)
    assert (refused["code"], refused["details"]) == ("idempotency_mismatch", {"field": "Idempotency-Key"})
    first(write(people.ann, home, "oven", **{"Idempotency-Key": "another"}))
    first(write(people.ann, home, "stove"))


def test_a_malformed_key_is_refused_and_an_empty_one_is_ignored(people: People, home: str):
    refused = error(write(people.ann, home, **{"Idempotency-Key": "a" * 256}), 400)
    assert (refused["code"], refused["details"]) == ("invalid_idempotency_key", {"field": "Idempotency-Key"})
    first(write(people.ann, home, **{"Idempotency-Key": ""}))
    first(write(people.ann, home, "oven", **{"Idempotency-Key": ""}))


def test_a_repeat_of_a_running_request_is_told_to_wait(people: People, world: World):
    stack = people.ann.stack
    with (
        long_lock_waits(stack),
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(stack.database_url()) as connection,
    ):
        connection.execute("lock table rag.collections in share mode")
        request = pool.submit(create, people.ann, "", **HEADER)
        wait_for_waiters(stack, 1)
        second = create(people.ann, "", **HEADER)
        connection.rollback()
        once = request.result()
    assert error(second, 409)["code"] == "request_in_progress"
    assert int(second.headers["Retry-After"]) >= 1
    first(once)
    assert_replayed(create(people.ann, "", **HEADER), once)


def test_an_error_response_is_not_stored(people: People, home: str):
    for _ in range(2):
        assert error(create(people.ann, home, "docs", **HEADER), 409)["code"] == "duplicate_collection"
    people.ann.request("PATCH", f"/api/v1/collections/{home}", {"name": "old"})
    assert first(create(people.ann, home, "docs", **HEADER))["name"] == "docs"


def test_a_large_file_is_stored_once_and_only_after_storage_confirms(
    uploading: Uploads, people: People, home: str, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is kept of a fault. What ann was told first she is told when the ticket's time is over, too."""
    ticket = uploading.put(people.ann, home, page("The kiln is hot."))
    other = uploading.put(people.ann, home, page("The oven is hot."))

    def finish(ticket: str) -> Any:
        headers = {**people.ann.headers(), **HEADER}
        return uploading.app.post("/v1/documents/uploaded", json={"upload": ticket}, headers=headers)

    uploading.server.fault = 500
    assert finish(ticket).status_code >= 500
    uploading.server.fault = None
    once = finish(ticket)
    first(once)
    later = time.time() + 7201
    monkeypatch.setattr("shared.documents.direct_uploads.time", SimpleNamespace(time=lambda: later))
    assert_replayed(finish(ticket), once)
    assert error(finish(other), 409)["code"] == "idempotency_mismatch"


def test_the_replay_survives_a_deletion(people: People, home: str):
    once = write(people.ann, home, **HEADER)
    people.ann.request("DELETE", f"/api/v1/documents/{first(once)['id']}")
    assert_replayed(write(people.ann, home, **HEADER), once)
    assert people.ann.request("GET", f"/api/v1/documents?collection_id={home}").json()["data"] == []
    people.ann.request("DELETE", f"/api/v1/collections/{home}")
    assert error(write(people.ann, home, **HEADER), 404)["code"] == "collection_not_found"


def test_a_key_belongs_to_the_collection_s_org(people: People, world: World):
    homes = []
    for org in (people.acme, people.bolt):
        body = {"name": "docs", "org_id": org.id}
        answer = people.kim.request("POST", "/v1/collections", body, **HEADER)
        homes.append(first(answer)["id"])
        assert_replayed(people.kim.request("POST", "/v1/collections", body, **HEADER), answer)
    keyed = {"Idempotency-Key": "of a text"}
    for home in homes:
        once = write(people.kim, home, **keyed)
        first(once)
        assert_replayed(write(people.kim, home, **keyed), once)
    rows = world.sql("select org_id::text, count(*) from rag.stored_responses group by 1")
    assert {people.acme.id: 2, people.bolt.id: 2}.items() <= dict(rows).items()
    for headers in (HEADER, {}):
        assert error(create(people.kim, "", **headers), 400)["code"] == "org_required"


@pytest.mark.parametrize(("scope", "make"), [("collections:manage", create), ("documents:write", write)])
def test_an_api_key_needs_no_additional_scope(people: People, home: str, scope: str, make: Make):
    token = people.ann.post("/api/keys", {"name": "ci", "scopes": [scope]}).json()["key"]
    bearer = {"Authorization": f"Bearer {token}", **HEADER}
    once = make(people.ann, home, **bearer)
    first(once)
    assert_replayed(make(people.ann, home, **bearer), once)
