"""Attacks on the reading of documents for names: another's lease, another's name, another's collection."""

from typing import Any
from uuid import uuid4

import pytest

from local import access_tokens
from tests.actors import LEASED, READING, World, vector
from tests.conftest import People
from tests.isolation.victim_documents import SECRETS, Library, assert_tells_nothing
from tests.sql.passages import put
from tests.sql.reading import graph_rows, mentions, named, state

Row = dict[str, Any]
TEXT = "Ann Lee wrote ACME-4417."
CLAIM = {"kind": "extraction", "max_items": 10}


@pytest.fixture(autouse=True)
def _nothing_to_read(no_jobs: None) -> None:
    """That another test has left."""


def worker_token(people: People) -> str:
    stack = people.ann.stack
    return access_tokens.user_token(stack.signing_key, stack.url, people.ann.id, role="rag_worker")


def claim_rows(people: People) -> list[Row]:
    answer = people.ann.rpc("rag_claim_jobs", CLAIM, token=worker_token(people))
    assert answer.status_code == 200, answer.text
    rows: list[Row] = answer.json()
    return rows


def home_of(world: World, document: str) -> str:
    ((home,),) = world.sql("select collection_id::text from rag.documents where id = %s", document)
    return str(home)


def test_only_the_worker_claims_extractions(people: People, world: World):
    put(world, people.ann, TEXT)
    for token in (None, people.ada.token(), people.ann.key_token(), people.ann.stack.anon_key):
        answer = people.ann.rpc("rag_claim_jobs", CLAIM, token=token)
        assert answer.status_code in (401, 403), answer.text
    assert len(claim_rows(people)) == 1


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("rag_match", {"query_vector": vector(1)}),
        ("rag_build_graph", {"collection_id": str(uuid4())}),
        ("rag_graph_search", {"query_text": "Ann Lee"}),
        *READING.items(),
    ],
)
def test_the_worker_s_role_can_only_claim(people: People, function: str, arguments: Any):
    answer = people.ann.rpc(function, arguments, token=worker_token(people))
    assert answer.status_code in (401, 403, 404), answer.text


@pytest.mark.parametrize("function", READING)
def test_an_extraction_cannot_be_finished_without_its_lease(people: People, world: World, function: str):
    document = put(world, people.ann, TEXT)
    (row,) = claim_rows(people)
    forged = {"org": people.acme.id, "lease": str(uuid4())}
    attempts = [
        (people.ann, people.ann.token()),
        (people.ada, people.ada.token()),
        (people.ann, people.ann.token(rag=forged)),
        # The true lease in another org's hands, and in the hands of one who belongs to both, for the other.
        (people.bob, people.bob.token(rag={"lease": row["lease"]})),
        (people.sam, people.sam.token(rag={"lease": row["lease"]})),
        (people.kim, people.kim.token(rag={"lease": row["lease"], "org": people.bolt.id})),
    ]
    for actor, token in attempts:
        answer = actor.rpc(function, READING[function], token=token)
        assert answer.status_code == 409, answer.text
        assert "ACME" not in answer.text
    assert mentions(world, document) == []
    assert state(world, document) == (0, 0, 1, True, False, None)


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
    """Whatever chunks it claims to have read."""
    mine, other = put(world, people.ann, TEXT), put(world, people.bob, TEXT)
    leases = {row["document_id"]: row["lease"] for row in claim_rows(people)}
    token = people.ann.token(
        rag={"org": people.acme.id, "lease": leases[mine], "scopes": ["documents:write"]}
    )
    eve = {"names": [{"name": "Eve Root"}], "document_id": other, "org_id": people.bolt.id}
    for first, chunks in ((0, [eve, eve]), (-1, [eve, eve]), (5, [eve]), (None, [eve])):
        answer = people.ann.rpc("rag_store_extraction", {"first": first, "chunks": chunks}, token=token)
        assert answer.status_code in (400, 409), answer.text
    people.ann.rpc("rag_store_extraction", {"first": 0, "chunks": [eve]}, token=token)
    assert mentions(world, mine) == [(0, "eve root")]
    assert mentions(world, other) == []


@pytest.mark.parametrize("who", ["another org's admin", "a stranger", "a key of another collection", "anon"])
def test_another_user_s_collection_cannot_be_extracted_or_removed_from_the_graph(
    library: Library, world: World, who: str
):
    people = library.people
    document = put(world, people.ann, TEXT, chunks=named({TEXT: ["Ann Lee"]}))
    before = (graph_rows(world, document), state(world, document))
    world.sql("update rag.members set role = 'admin' where user_id = %s", people.bob.id)
    token = {
        "another org's admin": people.bob.token(),
        "a stranger": people.sam.token(),
        "a key of another collection": people.ann.key_token(collection=str(uuid4())),
        "anon": people.ann.stack.anon_key,
    }[who]
    home = home_of(world, document)
    for function, arguments in (
        ("rag_build_graph", {"collection_id": home, "again": True}),
        ("rag_update_collection", {"collection_id": home, "config": {"enable_knowledge_graph": False}}),
    ):
        answer = people.ann.rpc(function, arguments, token=token)
        assert answer.status_code in (401, 403, 404), answer.text
        assert_tells_nothing(answer, library)
    assert (graph_rows(world, document), state(world, document)) == before


def test_a_member_cannot_extract_or_remove_private_documents_of_others(people: People, world: World):
    """Nor do they learn how many there are."""
    shared = put(world, people.ann, TEXT, chunks=named({TEXT: ["Ann Lee"]}))
    own = put(world, people.ann, TEXT, private=True, chunks=named({TEXT: ["Ann Lee"]}))
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


def test_a_key_without_documents_write_cannot_request_an_extraction(people: People, world: World):
    document = put(world, people.ann, TEXT, chunks=named({TEXT: ["Ann Lee"]}))
    for scopes in (["documents:read"], ["retrievals:read", "chat:read"], ["collections:manage"], []):
        arguments = {"collection_id": home_of(world, document), "again": True}
        answer = people.ann.rpc("rag_build_graph", arguments, token=people.ann.key_token(scopes=scopes))
        assert answer.status_code in (403, 404), answer.text
    assert state(world, document) == (1, 0, 0, False, False, None)


def test_names_in_a_document_stay_in_its_org(library: Library, world: World):
    """Straight at the table: through PostgREST it is not there, in SQL each sees their own."""
    people = library.people
    count = "select count(*) from rag.mentions where name like %s"
    for actor, sees in ((people.ann, {"acme", "ann"}), (people.alf, {"acme"}), (people.bob, {"bolt"})):
        results = {
            whose for whose, secret in SECRETS.items() if world.as_user(actor, count, f"%{secret}%") != [(0,)]
        }
        assert results <= sees
