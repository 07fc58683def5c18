"""Attacks changing other users' rows: deleting, overwriting, planting."""

import re

from shared.services import Services
from tests.actors import Actor, World, put_arguments, vector
from tests.conftest import People
from tests.isolation.victim_documents import MATCH, QUESTION, SECRETS, Library, store


def test_a_chunk_cannot_be_put_into_another_user_s_document(library: Library, world: World):
    """A chunk goes where its document goes, whatever it says of itself."""
    people = library.people
    names = ("org_id", "document_id", "owner_id", "collection_id", "id", "chunk_id")
    theirs = dict.fromkeys(names, library.acme_document)
    theirs |= {"org_id": people.acme.id, "owner_id": people.ann.id}
    for name, value in theirs.items():
        arguments = put_arguments(people.bolt, [vector(1)])
        arguments["chunks"][0][name] = value
        assert people.bob.rpc("rag_put_document", arguments).status_code in (200, 400)
    assert world.sql("select count(*) from rag.chunks where org_id = %s", people.acme.id) == [(2,)]
    owned = "select count(*) from rag.chunks where org_id = %s and owner_id is not null"
    assert world.sql(owned, people.bolt.id) == [(0,)]
    assert library.secrets(MATCH, people.ann) == {"acme", "ann"}
    assert library.secrets(MATCH, people.alf) == {"acme"}


def test_another_org_s_external_id_replaces_nothing(services: Services, people: People):
    """The same name in another org, or in private, is another document."""
    store(services, people.ann, SECRETS["acme"], external_id="vault")
    store(services, people.ann, SECRETS["ann"], external_id="vault", private=True)
    store(services, people.bob, SECRETS["bolt"], external_id="vault")
    store(services, people.alf, "ALF-1", external_id="vault", private=True)
    for actor, codes in (
        (people.ann, {SECRETS["acme"], SECRETS["ann"]}), (people.alf, {SECRETS["acme"], "ALF-1"}),
        (people.bob, {SECRETS["bolt"]}),
    ):  # fmt: skip
        assert codes_found(actor) == codes


def codes_found(actor: Actor) -> set[str]:
    answer = actor.search(QUESTION, top_k=50)
    assert answer.status_code == 200, answer.text
    return {re.findall(r"[A-Z]+-\d+", result["snippet"])[0] for result in answer.json()["results"]}
