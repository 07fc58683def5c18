"""Attacks through places and contents: ids of other owners' rows, in every argument."""

from typing import Any
from uuid import uuid4

import pytest

from tests.actors import Actor, World
from tests.isolation.victim_documents import SECRETS, Library, store


def everything(library: Library, world: World) -> dict[str, list[str]]:
    """All documents and chunks of the library, as an attacker who knows their ids."""
    documents = [library.acme_document, library.bolt_document, library.ann_document]
    rows = world.sql("select id::text from rag.chunks where document_id = any (%s::uuid[])", documents)
    chunks = [chunk for (chunk,) in rows]
    kinds = ["document"] * len(documents) + ["chunk"] * len(chunks)
    return {"kinds": kinds, "ids": documents + chunks}


def visible_contents(actor: Actor, request: dict[str, Any], token: str | None = None) -> set[str]:
    answer = actor.rpc("rag_get_contents", {"chunks": True, **request}, token=token)
    assert answer.status_code == 200, answer.text
    return {whose for whose, secret in SECRETS.items() if secret in answer.text}


def test_hidden_and_missing_ids_are_indistinguishable(library: Library, world: World):
    people = library.people
    hidden = {"kinds": ["document"] * 2, "ids": [library.bolt_document, library.ann_document]}
    nowhere = {"kinds": ["document"] * 2, "ids": [str(uuid4()), str(uuid4())]}
    answers = [
        people.alf.rpc("rag_get_contents", {**request, "org_id": people.acme.id})
        for request in (hidden, nowhere)
    ]
    assert {answer.text for answer in answers} == {'{"chunks": [], "documents": []}'}


def test_collections_of_others_cannot_be_used_as_a_filter(library: Library, world: World):
    people = library.people
    store(library.services, people.bob, SECRETS["bolt"], collection="theirs")
    named = "select id::text from rag.collections where name = 'theirs' and org_id = %s"
    ((theirs,),) = world.sql(named, people.bolt.id)
    request = {**everything(library, world), "collection_id": theirs}
    for org in (people.acme, people.bolt):
        assert visible_contents(people.alf, {**request, "org_id": org.id}) == set()


def test_a_bound_key_reads_only_its_collection(library: Library, world: World):
    """It returns visible rows, whatever place it names."""
    people = library.people
    inside = store(library.services, people.ann, "the vault", collection="narrow")
    ((home,),) = world.sql("select collection_id::text from rag.documents where id = %s", inside)
    token = people.ann.key_token(scopes=["documents:read"], collection=home)
    request = everything(library, world)
    for place in (None, home, str(uuid4())):
        where = {**request, "org_id": people.acme.id, "collection_id": place}
        assert visible_contents(people.ann, where, token) == set()
    own = {"kinds": ["document"], "ids": [inside], "org_id": people.acme.id}
    assert inside in people.ann.rpc("rag_get_contents", own, token=token).text


@pytest.mark.parametrize(
    "asked",
    [
        {"kinds": None, "ids": None}, {"kinds": ["chunk"], "ids": []}, {"kinds": [], "ids": None},
        {"kinds": ["chunk"] * 101, "ids": [str(uuid4())] * 101},
    ],
)  # fmt: skip
def test_an_oversized_request_is_refused(shared_library: Library, asked: dict[str, Any]):
    people = shared_library.people
    answer = people.alf.rpc("rag_get_contents", {**asked, "org_id": people.acme.id})
    assert (answer.status_code, answer.json()["details"]) == (400, "invalid_ids")


@pytest.mark.parametrize("kind", [None, "collection", "org", "document' or true --", "*"])
def test_an_unknown_kind_finds_nothing(shared_library: Library, kind: str | None):
    people = shared_library.people
    request = {"kinds": [kind], "ids": [shared_library.acme_document], "org_id": people.acme.id}
    assert visible_contents(people.ann, request) == set()
