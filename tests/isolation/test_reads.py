"""Attacks reading other users' rows: through match, filters, claims, private rows."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from shared.documents import documents
from tests.actors import World
from tests.isolation.victim_documents import (
    ALIASES,
    ENTRY_POINTS,
    Library,
    assert_tells_nothing,
    every_route,
    store,
)
from tests.sql import passages


@pytest.mark.parametrize("route", [*ENTRY_POINTS, *ALIASES])
def test_match_returns_only_visible_rows(shared_library: Library, route: str):
    """All callers ask the same; each gets their own, and a stranger nothing."""
    people = shared_library.people
    assert shared_library.secrets(route, people.ann) == {"acme", "ann"}
    assert shared_library.secrets(route, people.alf) == {"acme"}
    assert shared_library.secrets(route, people.ada) == {"acme", "ann"}
    assert shared_library.secrets(route, people.bob) == {"bolt"}
    assert shared_library.secrets(route, people.kim) == {"acme", "bolt"}
    assert shared_library.secrets(route, people.sam) == set()


@every_route
def test_a_forged_org_filter_finds_nothing(shared_library: Library, route: str):
    """Another's org, and one that is not, are the same empty list."""
    people = shared_library.people
    assert shared_library.secrets(route, people.ann, org_id=people.bolt.id) == set()
    assert shared_library.secrets(route, people.sam, org_id=people.bolt.id) == set()
    assert shared_library.secrets(route, people.kim, org_id=people.bolt.id) == {"bolt"}
    another, invented = (
        shared_library.ask(route, people.ann.headers(), org_id=org) for org in (people.bolt.id, str(uuid4()))
    )
    assert without_times(another) == without_times(invented)


def test_hidden_and_missing_ids_have_the_same_contents(shared_library: Library):
    """A kind that does not exist has none either."""
    people, org = shared_library.people, shared_library.people.acme.id
    hidden = [shared_library.bolt_document, shared_library.ann_document]
    requests: list[Any] = [
        {"kinds": ["document"] * 2, "ids": hidden},
        {"kinds": ["document"] * 2, "ids": [str(uuid4()), str(uuid4())]},
        *(
            {"kinds": [kind], "ids": [shared_library.acme_document]}
            for kind in (None, "collection", "org", "document' or true --", "*")
        ),
    ]
    contents = {
        people.alf.rpc("rag_get_contents", {"chunks": True, "org_id": org, **request}).text
        for request in requests
    }
    assert contents == {'{"chunks": [], "documents": []}'}


def without_times(answer: httpx.Response) -> Any:
    """The body without what differs from one call to the next."""
    body = answer.json()
    if isinstance(body, list):
        return passages.untimed(body)
    if isinstance(body, dict):
        body.pop("processing_time_ms", None)
        body.get("answer", {}).pop("generated_at", None)
    return body


@every_route
def test_a_malformed_org_filter_is_refused(shared_library: Library, route: str):
    for value in ("*", "", "null", "' or true --", "any(array[])", ["a", "b"], {"eq": "x"}, 7, True):
        answer = shared_library.ask(route, shared_library.people.ann.headers(), org_id=value)
        assert answer.status_code == 400, (value, answer.text)
        assert_tells_nothing(answer, shared_library, shared_library.people.ann)


@every_route
def test_a_forged_org_claim_finds_nothing(shared_library: Library, route: str):
    """A token that claims another's org: the claim narrows, and nothing is left."""
    people = shared_library.people
    claims = {"rag": {"org": people.bolt.id}}
    assert shared_library.secrets(route, people.ann, people.ann.token(**claims)) == set()
    assert shared_library.secrets(route, people.ada, people.ada.token(**claims)) == set()
    assert shared_library.secrets(route, people.sam, people.sam.token(**claims)) == set()
    # Kim belongs there: the same claim leaves that org alone, whatever the filter says.
    assert shared_library.secrets(route, people.kim, people.kim.token(**claims)) == {"bolt"}
    assert (
        shared_library.secrets(route, people.kim, people.kim.token(**claims), org_id=people.acme.id) == set()
    )


@every_route
def test_an_unknown_claim_is_ignored(shared_library: Library, route: str):
    people = shared_library.people
    org = people.bolt.id
    forged: list[dict[str, Any]] = [
        {"org_id": org}, {"org": org}, {"app_metadata": {"org_id": org, "orgs": [org], "role": "admin"}},
        {"user_metadata": {"org_id": org, "is_admin": True}},
        {"rag": {"orgs": [org], "admin": True, "role": "admin"}}, {"user_role": "admin"},
    ]  # fmt: skip
    for claims in forged:
        assert shared_library.secrets(route, people.alf, people.alf.token(**claims)) == {"acme"}, claims


def test_private_rows_are_hidden_from_another_org_s_admin(library: Library, world: World):
    """Who is a plain member here."""
    people = library.people
    world.sql("insert into rag.members values (%s, %s, 'admin')", people.bolt.id, people.alf.id)
    for route in ENTRY_POINTS:
        assert library.secrets(route, people.alf) == {"acme", "bolt"}


@every_route
def test_private_rows_do_not_change_another_user_s_results(library: Library, route: str):
    """A private document more leaves another member's answer as it was: ranks, counts, confidence, all."""
    people = library.people
    before = library.ask(route, people.alf.headers())
    store(library.services, people.ann, "ANN-7731 again", private=True)
    store(library.services, people.bob, "BOLT-9052 again")
    assert without_times(library.ask(route, people.alf.headers())) == without_times(before)


@every_route
def test_deleted_documents_are_not_found(library: Library, route: str):
    people = library.people
    documents.delete(library.services.database, people.alf.principal, library.acme_document)
    assert library.secrets(route, people.ann) == {"ann"}
    assert library.secrets(route, people.alf) == set()


@every_route
def test_a_former_member_s_old_token_finds_nothing(library: Library, world: World, route: str):
    token = library.people.ann.token()
    world.sql("delete from rag.members where user_id = %s", library.people.ann.id)
    assert library.secrets(route, library.people.ann, token) == set()
