"""Attacks on documents that are brought, on their originals and on the jobs that work on them."""

from typing import Any
from uuid import uuid4

import pytest

from local import access_tokens
from tests.actors import Actor, World, client
from tests.conftest import People
from tests.isolation.victim_documents import INTERNALS

COLLECTIONS, PATH = "/api/v1/collections", "/api/v1/documents"
SECRET = "The code of the vault door is ACME-4417."
# The worker finds no other test's jobs.
pytestmark = pytest.mark.usefixtures("no_jobs")


def collection(actor: Actor, **more: Any) -> str:
    answer = actor.request("POST", COLLECTIONS, {"name": "plans", **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def add_text(actor: Actor, collection_id: str, text: str = SECRET, **more: Any) -> str:
    body = {"collection_id": collection_id, "content": text, "title": "The vault", **more}
    answer = actor.request("POST", f"{PATH}/text", body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def assert_not_found(answer: Any, code: str = "document_not_found") -> None:
    assert answer.status_code == 404, answer.text
    assert answer.json()["error"]["code"] == code
    assert "ACME" not in answer.text
    assert "vault" not in answer.text
    assert not INTERNALS.search(answer.text)


def test_another_user_s_external_id_is_not_revealed(people: People):
    home = collection(people.ann)
    mine = {"title": "x", "external_id": "plan", "private": True, "bytes": "eA=="}
    theirs = people.ann.rpc("rag_add_document", {"collection_id": home, "document": mine})
    other = people.alf.rpc("rag_add_document", {"collection_id": home, "document": mine})
    assert theirs.status_code == other.status_code == 200, other.text
    assert theirs.json()[0]["id"] != other.json()[0]["id"]


# -- jobs ---------------------------------------------------------------------------------------------


def claim_rows(people: People) -> list[dict[str, Any]]:
    """What the worker claims; its token is signed by the holder of the signing key."""
    stack = people.ann.stack
    token = access_tokens.user_token(stack.signing_key, stack.url, "", role="rag_worker")
    answer = people.ann.rpc("rag_claim_jobs", {"kind": "ingestion", "max_items": 10}, token=token)
    assert answer.status_code == 200, answer.text
    return list(answer.json())


def test_a_lease_grants_access_to_one_job_only(people: People):
    home = collection(people.ann)
    first, second = add_text(people.ann, home), add_text(people.ann, home, "The other plan.")
    jobs = {job["document_id"]: job for job in claim_rows(people)}
    assert set(jobs) == {first, second}
    rag = {"org": people.acme.id, "lease": jobs[second]["lease"], "scopes": ["documents:write"]}
    opened = people.ann.rpc("rag_open_job", {}, token=people.ann.token(rag=rag))
    assert [row["document_id"] for row in opened.json()] == [second]


def test_a_job_cannot_be_queued_in_another_user_s_name(people: People, world: World):
    home = collection(people.ann)
    document_id = add_text(people.ann, home)
    columns = "org_id, document_id, collection_id, user_id, document"
    statement = f"insert into rag.jobs ({columns}) values (%s, %s, %s, %s, '{{}}')"
    with pytest.raises(Exception, match="row-level security"):
        world.as_user(people.ann, statement, people.acme.id, document_id, home, people.ada.id)


# -- links to originals -------------------------------------------------------------------------------


def link_of(actor: Actor, document_id: str) -> str:
    answer = actor.request("GET", f"{PATH}/{document_id}/url")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["url"])


def test_a_link_s_token_works_nowhere_else(people: People):
    carried = link_of(people.ann, add_text(people.ann, collection(people.ann))).partition("token=")[2]
    for path in (f"{PATH}?collection_id={uuid4()}", "/api/v1/collections"):
        assert people.sam.request("GET", path, token=carried).status_code == 401
    assert people.sam.rpc("rag_get_document", {"document_id": str(uuid4())}, token=carried).status_code == 401


def test_a_link_ends_with_its_document_and_with_its_owner_s_membership_or_role(people: People, world: World):
    home = collection(people.ann, private=True)
    kept, deleted = add_text(people.ann, home), add_text(people.ann, home, "Another vault.")
    of_deleted, of_admin, of_member = (
        link_of(actor, document)
        for actor, document in ((people.ann, deleted), (people.ada, kept), (people.ann, kept))
    )
    people.ann.request("DELETE", f"{PATH}/{deleted}")
    assert client().get(of_deleted).status_code == 404
    world.sql("update rag.members set role = 'member' where user_id = %s", people.ada.id)
    assert client().get(of_admin).status_code == 404
    assert client().get(of_member).status_code == 200
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    assert client().get(of_member).status_code == 403
