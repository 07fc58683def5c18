"""Attacks changing other users' rows: deleting, overwriting, planting."""

import re
from uuid import uuid4

import pytest

from shared.documents import documents
from shared.errors import NotFound
from shared.ingestion.synchronous_ingestion import NewDocument, ingest
from shared.services import Services
from tests.actors import Actor, Org, World, put_arguments, vector
from tests.conftest import People
from tests.isolation.victim_documents import (
    INTERNALS,
    QUESTION,
    SECRETS,
    Library,
    assert_tells_nothing,
    store,
)


def test_another_org_s_document_cannot_be_deleted(library: Library):
    """As for an id that never was; through the functions of `shared` and straight through PostgREST."""
    people, database = library.people, library.services.database
    for document_id in (library.acme_document, library.ann_document):
        with pytest.raises(NotFound):
            documents.delete(database, people.bob.principal, document_id)
        assert people.bob.rpc("rag_delete_document", {"document_id": document_id}).json() is False
        assert people.sam.rpc("rag_delete_document", {"document_id": document_id}).json() is False
    assert people.bob.rpc("rag_delete_document", {"document_id": str(uuid4())}).json() is False
    assert library.is_unchanged()


def test_another_member_s_private_document_cannot_be_deleted(library: Library):
    people = library.people
    for actor in (people.alf, people.kim):
        assert actor.rpc("rag_delete_document", {"document_id": library.ann_document}).json() is False
    assert library.is_unchanged()


def test_a_document_cannot_be_put_into_another_org(library: Library, world: World):
    """Not found, whether there is such an org or not, from Python and straight through PostgREST."""
    people, services = library.people, library.services
    messages = set()
    for org in (people.acme.id, str(uuid4())):
        for actor in (people.bob, people.sam):
            answer = actor.rpc("rag_put_document", put_arguments(Org(org, ""), [vector(1)]))
            assert answer.status_code == 404
            assert_tells_nothing(answer, library)
            messages.add(answer.text)
            document = NewDocument(org_id=org, title="Planted", text="The code of the vault door is 0000.")
            with pytest.raises(NotFound) as refused:
                ingest(services.database, services.embedder, actor.principal, document)
            assert not INTERNALS.search(str(refused.value))
    assert len(messages) == 1
    assert world.sql("select count(*) from rag.documents where org_id = %s", people.acme.id) == [(2,)]
    assert library.is_unchanged()


@pytest.mark.parametrize("claim", ["own", "another's"])
def test_a_forged_claim_does_not_allow_a_put_into_another_org(library: Library, claim: str):
    people = library.people
    token = people.bob.token(rag={"org": (people.bolt if claim == "own" else people.acme).id})
    answer = people.bob.rpc("rag_put_document", put_arguments(people.acme, [vector(1)]), token=token)
    assert answer.status_code == 404
    assert library.is_unchanged()


@pytest.mark.parametrize("name", ["org_id", "document_id", "owner_id", "collection_id", "id", "chunk_id"])
def test_a_chunk_cannot_be_put_into_another_user_s_document(library: Library, world: World, name: str):
    """A chunk goes where its document goes, whatever it says of itself."""
    people = library.people
    arguments = put_arguments(people.bolt, [vector(1)])
    theirs = (
        people.acme.id if name == "org_id" else people.ann.id if name == "owner_id" else library.acme_document
    )
    arguments["chunks"][0][name] = theirs
    answer = people.bob.rpc("rag_put_document", arguments)
    assert answer.status_code in (200, 400)
    assert world.sql("select count(*) from rag.chunks where org_id = %s", people.acme.id) == [(2,)]
    assert world.sql(
        "select count(*) from rag.chunks where org_id = %s and owner_id is not null", people.bolt.id
    ) == [(0,)]
    assert library.is_unchanged()


def test_another_org_s_external_id_replaces_nothing(services: Services, people: People):
    """The same name in another org, or in private, is another document."""
    store(services, people.ann, SECRETS["acme"], external_id="vault")
    store(services, people.ann, SECRETS["ann"], external_id="vault", private=True)
    store(services, people.bob, SECRETS["bolt"], external_id="vault")
    store(services, people.alf, "ALF-1", external_id="vault", private=True)
    by_name = {
        title: people_finds(services, actor) for title, actor in (("ann", people.ann), ("alf", people.alf))
    }
    assert by_name == {"ann": {SECRETS["acme"], SECRETS["ann"]}, "alf": {SECRETS["acme"], "ALF-1"}}
    assert people_finds(services, people.bob) == {SECRETS["bolt"]}


def people_finds(services: Services, actor: Actor) -> set[str]:
    answer = actor.search(QUESTION, top_k=50)
    assert answer.status_code == 200, answer.text
    return {re.findall(r"[A-Z]+-\d+", result["snippet"])[0] for result in answer.json()["results"]}
