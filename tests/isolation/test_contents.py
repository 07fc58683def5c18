"""Attacks through places and contents: ids of other owners' rows, in every argument."""

from typing import Any
from uuid import uuid4

import pytest

from tests.actors import Actor, World
from tests.isolation.victim_documents import SECRETS, Library


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


@pytest.mark.parametrize("kind", [None, "collection", "org", "document' or true --", "*"])
def test_an_unknown_kind_finds_nothing(shared_library: Library, kind: str | None):
    people = shared_library.people
    request = {"kinds": [kind], "ids": [shared_library.acme_document], "org_id": people.acme.id}
    assert visible_contents(people.ann, request) == set()
