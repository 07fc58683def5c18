"""Calls without the functions' secret: refused by every exposed function but those for browsers."""

import hashlib
from collections.abc import Iterator

import pytest

from shared.postgrest import SECRET_HEADER
from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.sql.test_00_schemas import CALLERS

READERS = {
    "rag_match": {"query_vector": vector(1)},
    "rag_search": {"query_text": "kettle", "query_vector": vector(1)},
    "rag_graph_search": {"query_text": "kettle", "query_vector": vector(1)},
    "rag_graph_of": {"org_id": None, "document_ids": []},
    "rag_similar": {"document_id": "5a0e4f1c-9d0b-4b5e-8a53-0c7d1e6f2b94"},
    "rag_widen": {"chunk_ids": [], "neighbours": 1},
    "is_org_member": {"org_id": None},
    "rag_health": {},
}
GUARDED = sorted(name.partition("(")[0] for name, caller in CALLERS.items() if caller == "guarded")


@pytest.fixture
def settings_row(world: World) -> Iterator[World]:
    """The database's settings, restored afterwards."""
    columns = "functions_secret_hashes, open_to_direct_callers"
    ((hashes, is_open),) = world.sql(f"select {columns} from rag.settings")
    yield world
    world.sql(f"update rag.settings set ({columns}) = (%s, %s)", hashes, is_open)


def required_arguments(world: World, function: str) -> dict[str, None]:
    """Null for each parameter without a default."""
    ((names, count),) = world.sql(
        "select coalesce(proargnames[:pronargs], '{}'), pronargs - pronargdefaults from pg_proc "
        "where pronamespace = 'public'::regnamespace and proname = %s",
        function,
    )
    return dict.fromkeys(names[:count])


def refusal(actor: Actor, world: World, function: str, **headers: str) -> tuple[int, str]:
    """Status and machine code of a call with nothing but nulls."""
    path = f"/rest/v1/rpc/{function}"
    answer = actor.request("POST", path, required_arguments(world, function), **headers)
    return answer.status_code, str(answer.json().get("details")) if answer.is_error else ""


def test_a_browser_calls_no_guarded_function(people: People, world: World, subtests: pytest.Subtests):
    assert len(GUARDED) > 60
    for function in GUARDED:
        with subtests.test(function=function):
            assert refusal(people.ada.direct(), world, function) == (403, "functions_secret_required")


def test_a_browser_calls_the_readers(people: People, subtests: pytest.Subtests):
    listed = {name.partition("(")[0] for name, caller in CALLERS.items() if caller in ("direct", "unguarded")}
    assert set(READERS) == listed
    for function, arguments in READERS.items():
        with subtests.test(function=function):
            org = {"org_id": people.acme.id} if "org_id" in arguments else {}
            answer = people.ann.direct().rpc(function, arguments | org)
            assert "functions_secret" not in answer.text.replace('"functions_secret":"wrong"', "")
            assert answer.status_code in (200, 404), answer.text


def test_a_wrong_secret_is_refused_and_two_are_valid_during_a_rotation(people: People, settings_row: World):
    ann, world = people.ann.direct(), settings_row
    old, new = "the former secret of this deployment", "the new secret of this deployment"

    def answers(secret: str) -> bool:
        status, code = refusal(ann, world, "rag_list_names", **{SECRET_HEADER: secret})
        assert (status, code) in [(200, ""), (403, "functions_secret_required")]
        return status == 200

    def write(*secrets: str) -> None:
        hashes = [hashlib.sha256(secret.encode()).hexdigest() for secret in secrets]
        world.sql("update rag.settings set functions_secret_hashes = %s", hashes)

    write(old)
    assert [answers(secret) for secret in (old, new, "", "x")] == [True, False, False, False]
    write(old, new)
    assert [answers(secret) for secret in (old, new)] == [True, True]
    write(new)
    assert [answers(secret) for secret in (old, new)] == [False, True]


def test_the_secret_opens_nothing_that_the_token_does_not(people: People, world: World):
    document = people.bob.put([vector(1)])
    assert people.ann.rpc("rag_delete_document", {"document_id": document}).json() is False
    secret = people.ann.headers()[SECRET_HEADER]
    anon = people.ann.direct().request(
        "POST", "/rest/v1/rpc/rag_list_names", {}, token=people.ann.stack.anon_key, **{SECRET_HEADER: secret}
    )
    assert (anon.status_code, anon.json()["code"]) == (401, "42501")
    assert world.sql("select count(*) from rag.documents where id = %s", document) == [(1,)]


def test_a_secret_that_is_not_set_is_reported(people: People, settings_row: World):
    settings_row.sql("update rag.settings set functions_secret_hashes = '{}'")
    assert refusal(people.ann, settings_row, "rag_list_names") == (403, "functions_secret_unset")
    assert people.ann.rpc("rag_health").json()[0]["functions_secret"] == "unset"
    answer = people.ann.request("GET", "/api/v1/collections")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "functions_secret_unset")
    health = people.ann.request("GET", "/api/v1/health")
    assert health.json()["services"]["database"] == "unhealthy"


def test_health_reports_a_secret_that_is_right_or_wrong(people: People):
    assert people.ann.rpc("rag_health").json()[0]["functions_secret"] == "ok"
    assert people.ann.direct().rpc("rag_health").json()[0]["functions_secret"] == "wrong"


def test_a_deployer_may_open_the_guarded_functions(people: People, settings_row: World):
    settings_row.sql("update rag.settings set open_to_direct_callers = true")
    assert people.ann.direct().rpc("rag_list_names").status_code == 200
    assert people.ann.direct().rpc("rag_health").json()[0]["functions_secret"] == "ok"


def test_a_session_of_the_database_is_not_checked(people: People, world: World):
    assert world.as_user(people.ann, "select public.rag_list_names()") == [([],)]
