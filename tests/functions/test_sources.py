"""/sources over HTTP: created, shown, changed, run, deleted; refusals."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import json_of

PATH = "/api/v1/sources"
CREDENTIALS = {"access_key_id": "AKIAs3cret", "secret_access_key": "s3cret"}
BUCKET = {"kind": "bucket", "address": "s3://docs/a", "region": "eu-central-1"}
Row = dict[str, Any]
pytestmark = pytest.mark.usefixtures("no_jobs")


def body_of(actor: Actor, **more: Any) -> Row:
    collection = actor.request("POST", "/v1/collections", {"name": f"site {uuid4()}"}).json()["id"]
    return {"collection_id": collection, "kind": "website", "address": "https://docs.example/a/", **more}


def make(actor: Actor, **more: Any) -> Row:
    return json_of(actor.request("POST", PATH, body_of(actor, **more)), 201)


def test_a_source_is_created_changed_run_and_deleted(people: People, world: World):
    source = make(people.ada)
    where = f"{PATH}/sou_{source['id']}"
    assert (source["status"], source["last_run"], source["interval_seconds"]) == ("waiting", None, 86_400)
    assert people.ada.request("GET", where).json() == source
    assert people.ada.request("GET", PATH).json() == {"data": [source]}
    world.sql("update rag.sources set due_at = now() + interval '1 day'")
    assert people.ada.request("POST", f"{where}/run").status_code == 202
    assert world.sql("select due_at <= clock_timestamp() from rag.sources") == [(True,)]
    changes = {"enabled": False, "interval_seconds": 600, "include_noindex": True}
    changed = people.ada.request("PATCH", where, changes).json()
    assert (changed["next_run_at"], changed["interval_seconds"], changed["max_items"]) == (None, 600, 1000)
    assert (source["include_noindex"], changed["include_noindex"]) == (False, True)
    refused = people.ada.request("POST", f"{where}/run")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "source_disabled")
    assert people.ada.request("DELETE", where).status_code == 204
    assert people.ada.request("GET", where).json()["error"]["code"] == "source_not_found"


@pytest.mark.parametrize("with_documents", [False, True])
def test_documents_go_with_their_source_on_request(people: People, world: World, with_documents: bool):
    source = make(people.ada)
    body = {"collection_id": source["collection_id"], "content": "The kiln is hot."}
    document = people.ada.request("POST", "/v1/documents/text", body).json()["id"]
    world.sql(
        "insert into rag.source_items (org_id, source_id, item, document_id, run_number) "
        "values (%s, %s, 'a', %s, 1)",
        people.acme.id, source["id"], document,
    )  # fmt: skip
    path = f"{PATH}/{source['id']}?documents={str(with_documents).lower()}"
    assert people.ada.request("DELETE", path).status_code == 204
    assert people.ada.request("GET", f"/v1/documents/{document}").is_success is not with_documents


BAD_ADDRESSES = (
    "http://10.0.0.1/",
    "https://user:s3cret@docs.example/",
    "simplecache::https://docs.example/",
)
BAD: list[tuple[str, Row]] = [
    *(("url_not_allowed", {"address": address}) for address in BAD_ADDRESSES),
    ("invalid_field_value", {"kind": "folder"}),
    ("invalid_field_value", {"kind": "bucket", "address": "s3://docs::https://a.example"}),
    ("invalid_field_value", {"kind": "bucket", "address": "gs://docs/"}),
    ("endpoint_not_allowed", {**BUCKET, "endpoint": "https://thief.example"}),
    # Credentials of a website, and half of a bucket's.
    ("invalid_field_value", {"credentials": CREDENTIALS}),
    ("invalid_field_value", {**BUCKET, "include_noindex": True}),
    ("missing_required_field", {**BUCKET, "credentials": {"access_key_id": "s3cret"}}),
    ("invalid_field_value", {"interval_seconds": 1}),
    ("invalid_field_value", {"max_items": 0}),
]


def test_an_invalid_source_is_refused(subtests: pytest.Subtests, people: People):
    valid = body_of(people.ada)
    for code, changes in BAD:
        with subtests.test(changes=changes):
            response = people.ada.request("POST", PATH, {**valid, **changes})
            assert (response.status_code, response.json()["error"]["code"]) == (400, code), response.text
            assert "s3cret" not in response.text


NO_CREDENTIALS: list[Any] = [
    {"access_key_id": "a"}, {"access_key_id": "a", "secret_access_key": ""},
    {"access_key_id": "a", "secret_access_key": 1}, {**CREDENTIALS, "profile": "own"},
    {"access_key_id": "a", "secret_access_key": "b" * 4001}, [],
]  # fmt: skip


def test_sql_refuses_credentials_with_which_the_worker_might_use_its_own(
    subtests: pytest.Subtests, people: People, world: World
):
    home = people.ada.rpc("rag_create_collection", {"org_id": people.acme.id, "name": "home"}).json()[0]["id"]
    arguments = {"collection_id": home, "kind": "bucket", "address": "s3://docs"}
    (source,) = people.ada.rpc("rag_create_source", arguments).json()
    calls = (("rag_create_source", arguments), ("rag_update_source", {"source_id": source["id"]}))
    for credentials in NO_CREDENTIALS:
        for function, others in calls:
            with subtests.test(function=function, credentials=credentials):
                refused = people.ada.rpc(function, {**others, "credentials": credentials})
                assert (refused.status_code, refused.json()["details"]) == (400, "invalid_credentials")
    assert world.sql("select count(*) from rag.source_credentials") == [(0,)]


def test_credentials_are_never_readable(people: People, world: World):
    source = make(people.ada, **BUCKET, credentials=CREDENTIALS)
    assert source["has_credentials"]
    where = f"{PATH}/{source['id']}"
    other = {"access_key_id": "new s3cret", "secret_access_key": "new s3cret", "session_token": "s3cret"}
    changed = people.ada.request("PATCH", where, {"credentials": other})
    for response in (changed, people.ada.request("GET", where), people.ada.request("GET", PATH)):
        assert response.status_code == 200
        assert "s3cret" not in response.text
    for column in ("credentials", "*"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ada, f"select {column} from rag.source_credentials")
    returning = "update rag.source_credentials set credentials = '{}' returning credentials"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(people.ada, returning)
    assert world.as_role("rag_worker", "select credentials from rag.source_credentials") == [(other,)]
    # A user of another org changes none.
    bea = world.user(people.bolt, role="admin")
    replaced = """update rag.source_credentials
      set credentials = '{"access_key_id": "own", "secret_access_key": "own"}'"""
    world.as_user(bea, replaced)
    world.as_user(people.ann, replaced)
    assert world.sql("select credentials from rag.source_credentials") == [(other,)]
    refused = people.ada.rpc("rag_update_source", {"source_id": make(people.ada)["id"], "credentials": other})
    assert refused.json()["details"] == "invalid_credentials"


def test_an_org_has_at_most_fifty_sources(people: People, world: World):
    source = make(people.ada)
    world.sql(
        "insert into rag.sources (org_id, collection_id, user_id, kind, address, interval_seconds, "
        "max_items, due_at) "
        "select org_id, collection_id, user_id, kind, address, 300, 1, now() + interval '1 day' "
        "from rag.sources, generate_series(1, 49) where id = %s",
        source["id"],
    )
    answer = people.ada.request("POST", PATH, body_of(people.ada))
    assert answer.json()["error"]["code"] == "too_many_sources"


def test_only_admins_manage_sources(people: People, world: World):
    source = make(people.ada)
    bea = world.user(people.bolt, role="admin")
    for thief in (people.ann, people.bob, bea):
        assert thief.request("GET", PATH).json() == {"data": []}
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", "?documents=true"), ("POST", "/run")):
            body: Row | None = {} if method == "PATCH" else None
            response = thief.request(method, f"{PATH}/{source['id']}{path}", body)
            assert response.status_code == 404, response.text
    refused = people.ann.request("POST", PATH, body_of(people.ann))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "admin_required")
    bound = people.ada.key_token(collection=source["collection_id"])
    assert people.ada.request("GET", PATH, token=bound).json() == {"data": []}
