"""Attacks on collections: by another org's ids, at a private one, with a key that is too small for it."""

from typing import Any

from tests.actors import Actor, World, vector
from tests.conftest import People

PATH = "/api/v1/collections"


def make(actor: Actor, name: str = "plans", **more: Any) -> str:
    answer = actor.request("POST", PATH, {"name": name, "description": "the merger", **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_taken_private_name_is_not_revealed(people: People):
    """Trying a name does not reveal whether another user has a collection of it."""
    make(people.ann, "plans", private=True)
    make(people.alf, "plans", private=True)
    make(people.alf, "plans")


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


def test_a_deleted_collection_s_documents_are_unreadable(people: People, world: World):
    """No row of it stays behind, in any table."""
    collection = make(people.ann)
    people.ann.put([vector(1), vector(2)], collection="plans", labels=["a"])
    assert people.ann.request("DELETE", f"{PATH}/{collection}?cascade=true").status_code == 204
    for table in ("documents", "chunks", "facets", "postings"):
        assert world.sql(f"select count(*) from rag.{table} where collection_id = %s", collection) == [(0,)]
