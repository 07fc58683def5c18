"""Attacks changing other users' rows: deleting, overwriting, planting."""

import re

import pytest

from shared.services import Services
from tests.actors import Actor, World, put_arguments, vector
from tests.conftest import People
from tests.isolation.victim_documents import QUESTION, SECRETS, Library, store


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
