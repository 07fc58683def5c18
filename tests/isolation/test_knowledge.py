"""Attacks on namespaces and on their audit events: by name, by id, by filter, by key."""

from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.knowledge_client import PREFIX, at, delete, ids, ingest, retrieve
from tests.isolation.victim_documents import INTERNALS

SECRET = "The vault door opens with ACME-4417."
QUESTION = "What opens the vault door?"
ROUTES: list[tuple[str, str, Any]] = [
    ("POST", "documents", {"documents": [{"text": "stolen"}]}),
    ("GET", "documents", None),
    ("DELETE", "documents/plan", None),
    ("POST", "retrieve", {"query": QUESTION, "include_citations": True}),
    ("POST", "query", {"question": QUESTION}),
]
READING = ROUTES[1:]


def ingest_plan(actor: Actor, namespace: str = "vault", **more: Any) -> None:
    ingest(actor, {"text": SECRET, "document_id": "plan", **more}, namespace=namespace)


def call(
    actor: Actor, namespace: str, route: tuple[str, str, Any], *, token: str | None = None, **headers: str
) -> httpx.Response:
    method, rest, body = route
    return actor.request(method, at(namespace, rest), body, token=token, **headers)


def assert_tells_nothing(answer: httpx.Response) -> None:
    assert "ACME" not in answer.text
    assert "plan" not in answer.text
    assert not INTERNALS.search(answer.text), answer.text


def assert_empty(actor: Actor, namespace: str, *, token: str | None = None) -> None:
    """As a namespace that does not exist."""
    nobodys = f"nobodys-{uuid4()}"
    for route in READING:
        answer = call(actor, namespace, route, token=token)
        assert_tells_nothing(answer)
        same = call(actor, nobodys, route, token=token)
        assert (answer.status_code, answer.json()) == (same.status_code, same.json())
        assert answer.status_code == (404 if route[0] == "DELETE" else 200)


def events(actor: Actor, token: str | None = None, **more: Any) -> list[dict[str, Any]]:
    answer = actor.rpc("rag_list_events", more, token=token)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["events"]
    return rows


def key(actor: Actor, *scopes: str, **more: Any) -> str:
    answer = actor.request("POST", "/api/keys", {"name": "k", "scopes": list(scopes), **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["key"])


def record_event(actor: Actor, token: str | None = None, **more: Any) -> httpx.Response:
    arguments = {"event": "knowledge.retrieve", "namespace": "vault", **more}
    return actor.rpc("rag_record_event", arguments, token=token)


# Names that say, or seem to say, that they are a user's.
NAMES_OF_OTHERS = [
    "notes:u:{id}", "notes:u:{upper}", "notes:u:al", "notes:u:", "notes:u:{prefix}", "notes:u:{id} ",
    "notes:u:x{id}", "notes:u:{id}x", ":u:{id}", "a/b:u:{id}",
]  # fmt: skip


def test_a_namespace_with_another_user_s_name_is_out_of_reach(people: People, subtests: pytest.Subtests):
    """403 whether or not it exists: the name alone says whose it is."""
    parts = {"id": people.ann.id, "upper": people.ann.id.upper(), "prefix": people.ann.id[:8]}
    own = f"notes:u:{people.ann.id}"
    refused = {"detail": "This name belongs to another user. Choose another name."}
    requests = [(actor, own, route) for actor in (people.alf, people.bob) for route in ROUTES]
    names = [name.format(**parts) for name in NAMES_OF_OTHERS]
    requests += [(people.alf, name, route) for name in names for route in ROUTES[:2]]

    def attack(*, exists: bool) -> None:
        for actor, name, route in requests:
            with subtests.test(name=name, route=route[:2], actor=actor.email, exists=exists):
                answer = call(actor, name, route)
                assert (answer.status_code, answer.json()) == (403, refused)

    attack(exists=False)
    for actor in (people.ann, people.bob):
        assert actor.request("GET", f"{PREFIX}/namespaces").json() == {"namespaces": []}
    ingest_plan(people.ann, own)
    attack(exists=True)
    for actor in (people.alf, people.bob):
        assert actor.request("GET", f"{PREFIX}/namespaces").json() == {"namespaces": []}
    assert ids(people.ann, own) == ["plan"]


def test_a_lookalike_of_another_user_s_name_grants_no_access(people: People):
    """None of these is that namespace: there is nothing in them."""
    ingest_plan(people.ann, f"notes:u:{people.ann.id}")
    for spelling in ("notes:U:{id}", "NOTES:u:{id}:", "notes:u:{id}:x", "notes", "notes:u"):
        assert_empty(people.alf, spelling.format(id=people.ann.id))


def test_private_documents_in_a_shared_namespace_are_hidden(people: People):
    ingest(people.ann, {"text": "Shared.", "document_id": "shared"}, namespace="vault")
    people.ann.put([], collection="vault", private=True, external_id="plan", content=SECRET)
    assert ids(people.ann, "vault") == ["shared", "plan"]
    assert ids(people.alf, "vault") == ["shared"]
    assert delete(people.alf, "plan", "vault").status_code == 404
    # Under that name alf writes the shared one, and never the private one.
    ingest(people.alf, {"text": "Another.", "document_id": "plan"}, namespace="vault")
    assert delete(people.alf, "plan", "vault").status_code == 204
    assert ids(people.ann, "vault") == ["shared", "plan"]


def test_another_org_s_document_id_finds_nothing(people: People):
    ingest(people.ann, {"text": SECRET}, namespace="vault")
    (name,) = ids(people.ann, "vault")
    ingest(people.bob, {"text": "Mine."}, namespace="vault")
    uuid = people.ann.rpc("rag_list_named", {"collection": "vault", "limit": 1}).json()["documents"][0]
    for stolen in (name, uuid["document_id"]):
        assert delete(people.bob, stolen, "vault").json() == {"detail": "Document not found"}
        # Brought under that id it is a document of one's own.
        ingest(people.bob, {"text": "Mine too.", "document_id": stolen}, namespace="vault")
    assert [chunk["text"] for chunk in retrieve(people.ann, QUESTION, "vault")] == [SECRET]
    assert {chunk["text"] for chunk in retrieve(people.bob, QUESTION, "vault")} == {"Mine.", "Mine too."}


def test_filters_reveal_nothing_hidden(people: People):
    """They are equalities of metadata, and nothing else."""
    ingest_plan(people.ann)
    ingest(people.bob, {"text": "Mine."}, namespace="vault")
    uuid = people.ann.rpc("rag_find_collection", {"collection": "vault"}).json()[0]["id"]
    for field in ("org_id", "collection_id", "collection_ids", "owner_id", "document_id"):
        for value in (people.acme.id, uuid, [uuid], people.ann.id, "plan"):
            assert retrieve(people.bob, QUESTION, "vault", filters={field: value}) == [], (field, value)
        assert retrieve(people.ann, QUESTION, "vault", filters={field: people.acme.id}) == [], field


# -- the trail of events --------------------------------------------------------------------------------


def test_an_event_cannot_be_recorded_in_another_user_s_name(people: People, world: World):
    """For any arguments: an event is the caller's own, in the caller's org, now."""
    for forged in ("user_id", "org_id", "owner_id", "created_at", "id", "collection_id"):
        assert record_event(people.bob, **{forged: people.ann.id}).status_code == 404
    assert record_event(people.bob).status_code == 204
    assert record_event(people.alf, namespace=f"notes:u:{people.ann.id}").status_code == 403
    assert events(people.ada) == []
    world.sql("update rag.members set role = 'admin' where user_id = %s", people.bob.id)
    assert [row["user_id"] for row in events(people.bob)] == [people.bob.id]
    assert record_event(people.sam).status_code == 403


def test_a_bound_key_cannot_read_or_record_events_outside_its_collection(people: People):
    ingest_plan(people.ann)
    ingest(people.ann, {"text": "Bound."}, namespace="binder")
    home = people.ann.rpc("rag_find_collection", {"collection": "binder"}).json()[0]["id"]
    token = people.ada.key_token(collection=home)
    assert record_event(people.ada, token, namespace="vault").status_code == 204
    assert record_event(people.ada, token, namespace="binder").status_code == 204
    assert {row["namespace"] for row in events(people.ada, token)} == {"binder"}
    # What it asked for elsewhere names no collection of the org's.
    assert next(row["collection_id"] for row in events(people.ada, namespace="vault")) is None


def test_recorded_events_cannot_be_changed(people: People, world: World):
    ingest_plan(people.ann)
    for actor in (people.ann, people.ada):
        for statement in ("update rag.audit_events set chunk_count = 0", "delete from rag.audit_events"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                world.as_user(actor, statement)
    assert len(events(people.ada)) == 1
