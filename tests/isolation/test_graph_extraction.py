"""Attacks on the reading of documents for names: another's lease, another's name, another's collection."""

from typing import Any

import pytest

from local import access_tokens
from tests.actors import LEASED, READING, World
from tests.conftest import People
from tests.sql import naming
from tests.sql.naming import NamedChunk
from tests.sql.passages import put
from tests.sql.reading import graph_rows, mentions, state

Row = dict[str, Any]
TEXT = "Ann Lee wrote ACME-4417."
CLAIM = {"kind": "extraction", "max_items": 10}


@pytest.fixture(autouse=True)
def _no_pending_extractions(no_jobs: None) -> None:
    """Each test begins with an empty queue."""


def worker_token(people: People) -> str:
    stack = people.ann.stack
    return access_tokens.user_token(stack.signing_key, stack.url, people.ann.id, role="rag_worker")


def claim_rows(people: People) -> list[Row]:
    answer = people.ann.rpc("rag_claim_jobs", CLAIM, token=worker_token(people))
    assert answer.status_code == 200, answer.text
    return list(answer.json())


def home_of(world: World, document: str) -> str:
    ((home,),) = world.sql("select collection_id::text from rag.documents where id = %s", document)
    return str(home)


def test_a_lease_grants_access_to_one_extraction_and_no_job(people: People, world: World):
    put(world, people.ann, "Ann Lee wrote BOLT-9052.")
    second = put(world, people.ann, TEXT)
    leases = {row["document_id"]: row["lease"] for row in claim_rows(people)}
    rag = {"org": people.acme.id, "lease": leases[second], "scopes": ["documents:write"]}
    token = people.ann.token(rag=rag)
    (opened,) = people.ann.rpc("rag_open_extraction", {}, token=token).json()
    assert opened["document_id"] == second
    assert opened["chunks"] == [TEXT]
    for function in LEASED.keys() - READING.keys():
        assert people.ann.rpc(function, LEASED[function], token=token).status_code == 409


def test_a_lease_without_the_write_scope_stores_nothing(people: People, world: World):
    document = put(world, people.ann, TEXT)
    (row,) = claim_rows(people)
    rag = {"org": people.acme.id, "lease": row["lease"], "scopes": ["documents:read", "chat:read"]}
    for function in ("rag_store_extraction", "rag_fail_job"):
        answer = people.ann.rpc(function, READING[function], token=people.ann.token(rag=rag))
        assert answer.status_code == 403, answer.text
    assert mentions(world, document) == []
    assert state(world, document) == (0, 0, 1, True, False, None)


def test_an_extraction_cannot_write_into_another_document(people: People, world: World):
    mine, other = put(world, people.ann, TEXT), put(world, people.bob, TEXT)
    leases = {row["document_id"]: row["lease"] for row in claim_rows(people)}
    rag = {"org": people.acme.id, "lease": leases[mine], "scopes": ["documents:write"]}
    token = people.ann.token(rag=rag)
    eve = {"names": [{"name": "Eve Root"}], "document_id": other, "org_id": people.bolt.id}
    for first, chunks in ((0, [eve, eve]), (-1, [eve, eve]), (5, [eve]), (None, [eve])):
        answer = people.ann.rpc("rag_store_extraction", {"first": first, "chunks": chunks}, token=token)
        assert answer.status_code in (400, 409), answer.text
    people.ann.rpc("rag_store_extraction", {"first": 0, "chunks": [eve]}, token=token)
    assert mentions(world, mine) == [(0, "eve root")]
    assert mentions(world, other) == []


def test_a_member_cannot_extract_or_remove_private_documents_of_others(people: People, world: World):
    """Nor do they learn how many there are."""
    shared = naming.put(world, people.ann, "A", NamedChunk(TEXT, ["Ann Lee"]))
    own = naming.put(world, people.ann, "A", NamedChunk(TEXT, ["Ann Lee"]), private=True)
    home = home_of(world, own)
    before = (graph_rows(world, own), state(world, own))
    assert people.alf.rpc("rag_build_graph", {"collection_id": home, "again": True}).json() == 1
    off = {"collection_id": home, "config": {"enable_knowledge_graph": False}}
    assert people.alf.rpc("rag_update_collection", off).status_code == 200
    assert (graph_rows(world, own), state(world, own)) == before
    assert graph_rows(world, shared) == 0
    # Its owner, or an admin, says so too.
    assert people.ada.rpc("rag_update_collection", off).status_code == 200
    assert graph_rows(world, own) == 0
