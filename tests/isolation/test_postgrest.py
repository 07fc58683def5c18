"""Attacks straight through PostgREST, past the functions."""

from uuid import uuid4

import pytest

from tests.isolation.victim_documents import MATCH, SECRETS, Library, assert_tells_nothing


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
    body = {
        "query_vector": shared_library.needle,
        "top_k": 100,
        "filters": {"model": shared_library.services.embedder.model},
    }
    for parameters in theirs:
        answer = shared_library.client.post(MATCH, params=parameters, json=body, headers=people.ann.headers())
        assert (answer.status_code, answer.json()) == (200, []), parameters
    for parameters in everything:
        answer = shared_library.client.post(MATCH, params=parameters, json=body, headers=people.ann.headers())
        assert answer.status_code in (200, 400), answer.text
        assert SECRETS["bolt"] not in answer.text
        if answer.status_code == 200:
            assert {row["org_id"] for row in answer.json()} == {people.acme.id}


def test_unexposed_functions_are_unreachable(subtests: pytest.Subtests, shared_library: Library):
    for function, arguments in [
        ("set_config", {"setting_name": "request.jwt.claims", "new_value": "{}", "is_local": False}),
        ("current_setting", {"setting_name": "app.settings.jwt_secret"}),
        ("pg_read_file", {"filename": "/etc/passwd"}),
        ("current_org_ids", {}),
        ("memberships", {}),
        ("ensure_collection", {"org_id": None, "name": "x"}),
        ("vector_dims", {"": "[1]"}),
        ("uid", {}),
        ("fold_term_counts", {"org_id": None, "collection_id": None, "owner_id": None, "terms": ["x"]}),
        ("scope_of", {"filters": {}}),
        ("question", {"query_text": "x", "scope": None}),
        ("index_words", {"org_id": None, "document_ids": []}),
    ]:
        with subtests.test(function=function, arguments=arguments):
            headers = shared_library.people.ann.headers()
            answer = shared_library.client.post(f"/rest/v1/rpc/{function}", json=arguments, headers=headers)
            assert answer.status_code == 404, answer.text
            assert_tells_nothing(answer, shared_library)
