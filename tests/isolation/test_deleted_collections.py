"""Attacks that delete a collection to learn whether others have private documents in it.

alf is a member and has two collections, "held" and "free". They differ only in a private document of ann's in
the first. Each request of alf's has the same response for both.
"""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from shared.ingestion.maintenance import remove_old_rows
from shared.services import Services
from tests.actors import Actor, World, vector, webhook_arguments
from tests.conftest import People
from tests.functions import knowledge_client
from tests.snapshot_client import put

PATH = "/api/v1/collections"
Homes = dict[str, str]
TWINS = ("held", "free")


def make(actor: Actor, name: str = "plans", **more: Any) -> str:
    answer = actor.request("POST", PATH, {"name": name, "description": "the merger", **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.fixture
def homes(people: People) -> Homes:
    """The ids of the two collections, by name."""
    ids = {name: make(people.alf, name) for name in TWINS}
    for name in TWINS:
        put(people.alf, name, range(1), external_id="shared")
        put(people.alf, name, range(1, 2), external_id="own", private=True)
    put(people.ann, "held", range(2, 3), external_id="secret", title="ann alone", private=True)
    return ids


def normal(answer: httpx.Response, homes: Homes) -> tuple[int, str]:
    """The answer without names, ids and times."""
    text = answer.text
    for name, home in homes.items():
        text = text.replace(home, "ID").replace(name, "NAME")
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r'"requestId":"[0-9a-f]{32}"', '"requestId":"HEX"', text)
    return answer.status_code, re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)?", "TIME", text)


def visible_responses(actor: Actor, name: str, home: str) -> list[httpx.Response]:
    """The responses to every read of a collection, by id and by name, and to every use of its name."""
    search = {"query_text": "0", "query_vector": vector(2), "filters": {"collection_id": home}}
    workspace = {"query": "0", "workspaceId": home}
    return [
        actor.request("GET", f"{PATH}/{home}"),
        actor.request("PATCH", f"{PATH}/{home}", {"description": "x"}),
        actor.request("DELETE", f"{PATH}/{home}"),
        actor.request("POST", f"{PATH}/{home}/graph", {}),
        actor.request("GET", f"{PATH}/{home}/documents"),
        actor.rpc("rag_list_documents", {"collection_id": home}),
        actor.rpc("rag_add_document", {"collection_id": home, "document": {"title": "x", "private": True}}),
        actor.rpc("rag_begin_upload", {"collection_id": home, "name": "a.pdf", "size_bytes": 1}),
        actor.rpc("rag_search", search),
        actor.post("/v1/search", workspace),
        actor.rpc("rag_find_collection", {"collection": name}),
        actor.rpc("rag_list_named", {"collection": name, "limit": 10}),
        actor.rpc("rag_find_documents", {"collection": name, "names": ["secret"]}),
        actor.rpc("rag_delete_named", {"collection": name, "names": ["secret"]}),
        actor.rpc("rag_check_load", {"name": name}),
        actor.rpc("rag_create_key", {"name": "k", "prefix": "mn_live_abcd", "hash": "0" * 64,
                                     "scopes": ["documents:read"], "collection": name}),
        actor.request("DELETE", f"/indexes/{name}"),
        actor.request("GET", knowledge_client.at(name, "documents")),
        actor.rpc("rag_create_collection", {"name": name}),
    ]  # fmt: skip


def assert_alike(answers: dict[str, list[httpx.Response]], homes: Homes) -> None:
    first, second = ([normal(answer, homes) for answer in answers[name]] for name in TWINS)
    assert first == second
    assert "ann alone" not in str(first)


WAYS: dict[str, Callable[[Actor, str, str], httpx.Response]] = {
    "platform": lambda actor, _, home: actor.request("DELETE", f"{PATH}/{home}?cascade=true"),
    "index": lambda actor, name, _: actor.request("DELETE", f"/indexes/{name}"),
    "SQL": lambda actor, _, home: actor.rpc(
        "rag_delete_collection", {"collection_id": home, "cascade": True}
    ),
    "a key of collections alone": lambda actor, _, home: actor.request(
        "DELETE", f"{PATH}/{home}?cascade=true", token=actor.key_token(scopes=["collections:manage"])
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_deletion_responses_do_not_reveal_private_documents(
    people: People, homes: Homes, services: Services, way: str
):
    alf = people.alf
    assert_alike({name: [WAYS[way](alf, name, home)] for name, home in homes.items()}, homes)
    assert alf.request("GET", PATH).json()["data"] == []
    assert alf.request("GET", "/indexes").json() == []
    assert alf.match(vector(1)) == []
    if way == "SQL":
        remove_old_rows(services.database, services.require_signer())
    assert_alike({name: visible_responses(alf, name, home) for name, home in homes.items()}, homes)


def test_a_deletion_that_keeps_documents_reveals_no_private_documents(people: People, homes: Homes):
    """Documents of alf's count. A collection with only ann's private document is empty to alf."""
    refused = {name: [people.alf.request("DELETE", f"{PATH}/{home}")] for name, home in homes.items()}
    assert_alike(refused, homes)
    assert refused["held"][0].json()["error"]["code"] == "collection_not_empty"
    for name in TWINS:
        deletion = people.alf.rpc("rag_delete_named", {"collection": name, "names": ["shared", "own"]})
        assert len(deletion.json()) == 2
    emptied = {name: [people.alf.request("DELETE", f"{PATH}/{home}")] for name, home in homes.items()}
    assert_alike(emptied, homes)
    assert emptied["held"][0].status_code == 204


def test_sql_statements_reveal_no_private_documents(people: People, homes: Homes, world: World):
    for home in homes.values():
        world.as_user(people.alf, "delete from rag.collections where id = %s", home)
        for table in ("collections", "documents", "chunks"):
            column = "id" if table == "collections" else "collection_id"
            output = f"select count(*) from rag.{table} where {column} = %s"
            assert world.as_user(people.alf, output, home) == [(0,)]
        changed = "update rag.collections set deleted_at = null where id = %s returning 1"
        assert world.as_user(people.alf, changed, home) == []
    assert len(people.ann.match(vector(2), 1)) == 1


def test_references_to_the_collection_reveal_no_private_documents(people: People, homes: Homes):
    """In both cases keys end, and sessions lose their collection."""
    answers = {}
    for name, home in homes.items():
        key = {"name": "k", "scopes": ["documents:read"], "collection": name}
        response = people.alf.post("/api/keys", key)
        turn = {"session_id": None, "org_id": None, "collection_id": home, "title": "x",
                "messages": [{"role": "user", "content": "x"}]}  # fmt: skip
        session = people.alf.rpc("rag_save_turn", turn).json()["session_id"]
        assert people.alf.request("DELETE", f"{PATH}/{home}?cascade=true").status_code == 204
        answers[name] = [
            people.alf.request("GET", PATH, token=response.json()["key"]),
            people.alf.request("GET", "/api/keys"),
            people.alf.rpc("rag_open_session", {"session_id": session}),
            people.alf.rpc("rag_save_turn", turn),
        ]
    assert_alike(answers, homes)
    assert answers["held"][0].status_code == 401
    assert answers["held"][1].json()["keys"] == []


def test_webhooks_reveal_no_private_documents(
    people: People, homes: Homes, world: World, services: Services, no_jobs: None
):
    """One event for each, and no other when ann's document is deleted: a member may run the receiver."""
    events = ["collection.created", "collection.updated", "collection.deleted", "document.deleted"]
    assert people.ada.rpc("rag_create_webhook", webhook_arguments(events=events)).status_code == 200
    delivered = "select event, object ->> 'name' from rag.deliveries where org_id = %s order by created_at"
    for home in homes.values():
        assert people.alf.request("DELETE", f"{PATH}/{home}?cascade=true").status_code == 204
    people.ann.rpc("rag_update_collection", {"collection_id": homes["held"], "description": "x"})
    people.ann.rpc("rag_delete_collection", {"collection_id": homes["held"], "cascade": True})
    remove_old_rows(services.database, services.require_signer())
    assert world.sql("select from rag.collections where org_id = %s", people.acme.id) == []
    expected = [("collection.deleted", "held"), ("collection.deleted", "free")]
    assert world.sql(delivered, people.acme.id) == expected


def test_an_overwriting_load_reveals_no_private_documents(people: People, homes: Homes):
    answers = {}
    for name in TWINS:
        load = {"name": name, "overwrite": True, "documents": 0, "collection": {}}
        begun = people.alf.rpc("rag_begin_load", load)
        finished = {"collection_id": begun.json(), "overwrite": True}
        answers[name] = [begun, people.alf.rpc("rag_finish_load", finished)]
    assert_alike(answers, homes)
    assert answers["held"][1].status_code == 204
    assert people.ann.match(vector(2), 1)[0]["similarity"] == pytest.approx(1, abs=1e-3)


def names_of(actor: Actor) -> list[str]:
    return [row["name"] for row in actor.request("GET", f"{PATH}?sort_by=name&order=asc").json()["data"]]


def documents_of(actor: Actor, name: str) -> list[str]:
    body: dict[str, Any] = actor.rpc("rag_list_named", {"collection": name, "limit": 10}).json()
    return [row["name"] for row in body["documents"]]


def test_a_private_document_s_owner_keeps_access_to_the_collection(
    people: People, homes: Homes, world: World, services: Services
):
    ann, alf, home = people.ann, people.alf, homes["held"]
    for each in homes.values():
        assert alf.request("DELETE", f"{PATH}/{each}?cascade=true").status_code == 204
    remove_old_rows(services.database, services.require_signer())
    assert names_of(ann) == names_of(people.ada) == ["held"]
    assert ann.request("GET", f"{PATH}/{home}").json()["document_count"] == 1
    assert documents_of(ann, "held") == knowledge_client.ids(ann, "held") == ["secret"]
    assert [row["title"] for row in ann.match(vector(2), collection_id=home)] == ["ann alone"]
    # It takes no more documents, and its name is free.
    for private in (True, False):
        document = {"title": "x", "private": private, "bytes": "eA==", "content_hash": "0" * 64}
        more = ann.rpc("rag_add_document", {"collection_id": home, "document": document})
        assert (more.status_code, more.json()["details"]) == (409, "collection_deleted")
    new = make(alf, "held")
    put(ann, "held", range(3, 4), external_id="new")
    assert documents_of(ann, "held") == documents_of(alf, "held") == ["new"]
    assert alf.request("GET", f"{PATH}/{new}").json()["document_count"] == 1
    assert names_of(alf) == ["held"]
    # With its last document the collection is deleted.
    (old,) = ann.match(vector(2), collection_id=home)
    assert ann.request("DELETE", f"/api/v1/documents/{old['document_id']}").status_code == 204
    assert ann.request("GET", f"{PATH}/{home}").status_code == 404
    remove_old_rows(services.database, services.require_signer())
    assert world.sql("select id::text from rag.collections where org_id = %s", people.acme.id) == [(new,)]


def test_a_deleted_collection_does_not_count_towards_the_tier(people: People, homes: Homes, world: World):
    world.tier(people.acme, collections=2)
    for home in homes.values():
        assert people.alf.request("DELETE", f"{PATH}/{home}?cascade=true").status_code == 204
    for actor, name in ((people.ann, "a"), (people.alf, "b")):
        make(actor, name)
    for actor in (people.ann, people.alf, people.ada):
        full = actor.request("POST", PATH, {"name": "c"})
        assert full.json()["error"]["code"] == "rate_limit_exceeded", full.text


def test_a_key_without_a_documents_scope_deletes_no_documents_silently(people: People, world: World):
    collection = make(people.ann)
    people.ann.put([vector(1)], collection="plans")
    token = people.ann.key_token(scopes=["collections:manage"])
    refused = people.ann.request("DELETE", f"{PATH}/{collection}", token=token)
    assert refused.status_code == 409, refused.text
    assert refused.json()["error"]["code"] == "collection_not_empty"
    assert len(people.ann.match(vector(1), 1)) == 1
    assert people.ann.request("DELETE", f"{PATH}/{collection}?cascade=true", token=token).status_code == 204
    assert world.sql("select count(*) from rag.documents where collection_id = %s", collection) == [(0,)]
