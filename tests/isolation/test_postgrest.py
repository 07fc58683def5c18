"""Attacks straight through PostgREST, past the functions."""

from uuid import uuid4

from tests.isolation.victim_documents import MATCH, SECRETS, Library


def test_postgrest_filters_on_match_reveal_nothing(shared_library: Library):
    """They act on what match returned, after row security."""
    people = shared_library.people
    theirs: list[dict[str, str]] = [
        {"org_id": f"eq.{people.bolt.id}"},
        {"org_id": f"in.({people.bolt.id},{uuid4()})"},
        {"document_id": f"eq.{shared_library.bolt_document}"},
        {"content": "like.*BOLT*"},
        {"content": "ilike.*9052*", "select": "content,org_id"},
        {"or": f"(org_id.eq.{people.bolt.id},content.like.*9052*)"},
    ]
    everything: list[dict[str, str]] = [
        {"or": f"(org_id.eq.{people.bolt.id},org_id.not.is.null)"},
        {"order": "similarity.asc", "limit": "1000", "offset": "0"},
        {"select": "*,documents(*)"},
        {"select": "*,orgs(*)"},
        {"select": "embedding"},
        {"select": "org_id,owner_id"},
        {"owner_id": "not.is.null"},
    ]
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
            assert {row["org_id"] for row in answer.json()} == {people.acme.id}
