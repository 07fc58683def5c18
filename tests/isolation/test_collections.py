"""Attacks on collections: by another org's ids, at a private one, with a key that is too small for it."""

from typing import Any
from uuid import uuid4

import pytest

from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.isolation.bad_tokens import BAD_TOKENS
from tests.isolation.victim_documents import INTERNALS

PATH = "/api/v1/collections"
RPC = {
    "rag_create_collection": {"name": "x"},
    "rag_list_collections": {},
    "rag_get_collection": {"collection_id": str(uuid4())},
    "rag_update_collection": {"collection_id": str(uuid4()), "name": "x"},
    "rag_delete_collection": {"collection_id": str(uuid4())},
}
ONE = [("GET", None), ("PATCH", {"name": "stolen"}), ("DELETE", None)]


def make(actor: Actor, name: str = "plans", **more: Any) -> str:
    answer = actor.request("POST", PATH, {"name": name, "description": "the merger", **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def names(actor: Actor, token: str | None = None) -> set[str]:
    answer = actor.request("GET", f"{PATH}?limit=100", token=token)
    assert answer.status_code == 200, answer.text
    assert answer.json()["pagination"]["total"] == len(answer.json()["data"])
    return {row["name"] for row in answer.json()["data"]}


def assert_not_found(answer: Any) -> None:
    assert answer.status_code == 404, answer.text
    assert answer.json()["error"]["code"] == "collection_not_found"
    assert "plans" not in answer.text
    assert "merger" not in answer.text
    assert not INTERNALS.search(answer.text)


@pytest.mark.parametrize(("method", "body"), ONE)
@pytest.mark.parametrize("who", ["bob", "sam"])
def test_another_org_s_collection_is_out_of_reach_by_id(people: People, who: str, method: str, body: Any):
    stolen = make(people.ann)
    thief: Actor = getattr(people, who)
    for query in ("", "?cascade=true") if method == "DELETE" else ("",):
        assert_not_found(thief.request(method, f"{PATH}/{stolen}{query}", body))
    assert names(thief) == set()
    assert names(people.ann) == {"plans"}


@pytest.mark.parametrize(("method", "body"), ONE)
def test_another_member_s_private_collection_is_out_of_reach(people: People, method: str, body: Any):
    private = make(people.ann, private=True)
    assert_not_found(people.alf.request(method, f"{PATH}/{private}", body))
    assert names(people.alf) == set()
    assert names(people.ann) == names(people.ada) == {"plans"}


def test_a_forged_org_id_reaches_no_collection(people: People):
    answer = people.bob.request("POST", PATH, {"name": "x", "org_id": people.acme.id})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "org_not_found"
    assert names(people.ann) == set()


def test_a_forged_claim_reaches_no_collection(people: People):
    """A claim only ever narrows: one of another org leaves nothing."""
    make(people.ann)
    forged = people.bob.token(rag={"org": people.acme.id, "scopes": ["admin"]})
    assert names(people.bob, forged) == set()


def test_a_taken_private_name_is_not_revealed(people: People):
    """Trying a name does not reveal whether another user has a collection of it."""
    make(people.ann, "plans", private=True)
    make(people.alf, "plans", private=True)
    make(people.alf, "plans")


@pytest.mark.parametrize(
    "scopes", [["documents:read"], ["documents:write"], ["retrievals:read"], ["chat:read"]]
)
@pytest.mark.parametrize(("method", "body"), [("POST", {"name": "x"}), *ONE[1:]])
def test_a_key_without_the_scope_is_refused(people: People, scopes: list[str], method: str, body: Any):
    collection = make(people.ann)
    token = people.ann.key_token(scopes=scopes)
    path = PATH if method == "POST" else f"{PATH}/{collection}"
    answer = people.ann.request(method, path, body, token=token)
    assert answer.status_code == 403, answer.text
    assert answer.json()["error"]["type"] == "permission_error"
    assert names(people.ann) == {"plans"}


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


@pytest.mark.parametrize("scope", ["documents:write", "retrievals:read"])
def test_a_key_without_the_scope_is_refused_through_postgrest(people: People, scope: str):
    collection = make(people.ann)
    token = people.ann.key_token(scopes=[scope])
    renamed = people.ann.rpc("rag_update_collection", {"collection_id": collection, "name": "y"}, token=token)
    deleted = people.ann.rpc("rag_delete_collection", {"collection_id": collection}, token=token)
    assert (renamed.status_code, deleted.status_code) == (403, 403)
    assert names(people.ann) == {"plans"}


def test_a_key_bound_to_another_collection_is_refused(people: People):
    entries, bound = make(people.ann), make(people.ann, "bound")
    token = people.ann.key_token(collection=bound)
    assert names(people.ann, token) == {"bound"}
    for method, body in ONE:
        assert_not_found(people.ann.request(method, f"{PATH}/{entries}", body, token=token))
    response = people.ann.request("POST", PATH, {"name": "escape"}, token=token)
    assert response.status_code == 403, response.text
    assert names(people.ann) == {"plans", "bound"}


def test_an_invalid_token_is_refused(people: People):
    make(people.ann)
    for method, path, body in (("GET", PATH, None), ("POST", PATH, {"name": "x"})):
        answer = people.ann.request(method, path, body, token=BAD_TOKENS["another secret"](people.ann))
        assert answer.status_code == 401, answer.text
        assert answer.json()["error"]["type"] == "authentication_error"
        assert not INTERNALS.search(answer.text)


@pytest.mark.parametrize("function", RPC)
def test_anon_is_refused_through_postgrest(people: People, function: str):
    answer = people.ann.rpc(function, RPC[function], token=people.ann.stack.anon_key)
    assert answer.status_code == 401, answer.text


def test_a_deleted_collection_s_documents_are_unreadable(people: People, world: World):
    """No row of it stays behind, in any table."""
    collection = make(people.ann)
    people.ann.put([vector(1), vector(2)], collection="plans", labels=["a"])
    assert people.ann.request("DELETE", f"{PATH}/{collection}?cascade=true").status_code == 204
    for table in ("documents", "chunks", "facets", "postings"):
        assert world.sql(f"select count(*) from rag.{table} where collection_id = %s", collection) == [(0,)]
