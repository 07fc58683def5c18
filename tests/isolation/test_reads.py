"""Attacks reading other users' rows: through match, filters, claims, private rows."""

from itertools import product
from typing import Any
from uuid import uuid4

import httpx
import pytest

from shared.documents import documents
from tests.actors import World
from tests.isolation.victim_documents import (
    ALIASES,
    ENTRY_POINTS,
    MATCH,
    SECRETS,
    Library,
    every_route,
    store,
)
from tests.sql import passages


@pytest.mark.parametrize("route", [*ENTRY_POINTS, *ALIASES])
def test_match_returns_only_visible_rows(shared_library: Library, route: str):
    people = shared_library.people
    for actor, secrets in (
        (people.ann, {"acme", "ann"}), (people.alf, {"acme"}), (people.ada, {"acme", "ann"}),
        (people.bob, {"bolt"}), (people.kim, {"acme", "bolt"}), (people.sam, set()),
    ):  # fmt: skip
        assert shared_library.secrets(route, actor) == secrets


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


def test_postgrest_filters_on_match_reveal_nothing(shared_library: Library):
    """They act on what match returned, after row security."""
    people = shared_library.people
    theirs: list[dict[str, str]] = [
        {"org_id": f"eq.{people.bolt.id}"}, {"document_id": f"eq.{shared_library.bolt_document}"},
        {"content": "ilike.*9052*", "select": "content,org_id"},
        {"or": f"(org_id.eq.{people.bolt.id},content.like.*9052*)"},
    ]  # fmt: skip
    everything: list[dict[str, str]] = [
        {"or": f"(org_id.eq.{people.bolt.id},org_id.not.is.null)"}, {"order": "similarity.asc"},
        {"select": "*,documents(*)"}, {"select": "embedding"}, {"select": "org_id,owner_id"},
        {"owner_id": "not.is.null"},
    ]  # fmt: skip
    model = {"model": shared_library.services.embedder.model}
    body = {"query_vector": shared_library.needle, "top_k": 100, "filters": model}
    for parameters in theirs + everything:
        answer = shared_library.client.post(MATCH, params=parameters, json=body, headers=people.ann.headers())
        if parameters in theirs:
            assert (answer.status_code, answer.json()) == (200, []), parameters
            continue
        assert answer.status_code in (200, 400), answer.text
        assert SECRETS["bolt"] not in answer.text
        if answer.status_code == 200:
            assert {row["org_id"] for row in answer.json()} == {people.acme.id}, parameters


def test_hidden_and_missing_ids_have_the_same_contents(shared_library: Library):
    """A kind that does not exist has none either."""
    people = shared_library.people
    hidden = [shared_library.bolt_document, shared_library.ann_document]
    kinds = (None, "collection", "org", "document' or true --", "*")
    requests: list[tuple[str | None, list[str]]] = [("document", hidden), ("document", [str(uuid4())] * 2)]
    requests += [(kind, [shared_library.acme_document]) for kind in kinds]
    for kind, ids in requests:
        request = {"chunks": True, "org_id": people.acme.id, "kinds": [kind] * len(ids), "ids": ids}
        assert people.alf.rpc("rag_get_contents", request).text == '{"chunks": [], "documents": []}'


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


def test_private_rows_do_not_change_another_user_s_results(library: Library):
    people = library.people

    def answers() -> list[Any]:
        return [without_times(library.ask(route, people.alf.headers())) for route in ENTRY_POINTS]

    before = answers()
    store(library.services, people.ann, "ANN-7731 again", private=True)
    store(library.services, people.bob, "BOLT-9052 again")
    assert answers() == before


def test_a_deleted_document_or_a_former_member_finds_nothing(library: Library, world: World):
    """A former member has a token still, and the token of a key."""
    people = library.people
    documents.delete(library.services.database, people.alf.principal, library.acme_document)
    for route in ENTRY_POINTS:
        assert library.secrets(route, people.ann) == {"ann"}
        assert library.secrets(route, people.alf) == set()
    tokens = people.ann.token(), people.ann.key_token(scopes=["retrievals:read", "chat:read"])
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    for route, token in product(ENTRY_POINTS, tokens):
        assert library.secrets(route, people.ann, token) == set()
