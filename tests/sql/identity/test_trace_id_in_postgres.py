"""The trace id of a request in Postgres' application_name, and nothing else that a client sends."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest

from tests.actors import Actor, World, vector
from tests.conftest import People

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
WAITING = (
    "select application_name from pg_stat_activity "
    "where datname = current_database() and wait_event_type = 'Lock' and query ~ 'rag_(match|judged_search)'"
)


def name_during(world: World, request: Callable[[], httpx.Response]) -> str:
    """application_name of a search while it waits for a lock."""
    with ThreadPoolExecutor(1) as pool, psycopg.connect(world.stack.database_url()) as holder:
        holder.execute("lock table rag.chunks in access exclusive mode")
        answer = pool.submit(request)
        end = time.monotonic() + 20
        while not (names := world.sql(WAITING)):
            assert time.monotonic() < end
            time.sleep(0.02)
        holder.rollback()
        assert answer.result().status_code == 200
    ((name,),) = names
    return str(name)


def match_through_postgrest(actor: Actor, traceparent: str) -> Callable[[], httpx.Response]:
    arguments = {"query_vector": vector(1)}
    return lambda: actor.request("POST", "/rest/v1/rpc/rag_match", arguments, traceparent=traceparent)


def test_a_request_s_database_call_has_its_trace_id_for_its_transaction(people: People, world: World):
    body = {"query_text": "What does 1 say?"}
    name = name_during(
        world, lambda: people.ann.request("POST", "/api/rag/search", body, traceparent=TRACEPARENT)
    )
    assert name == f"rag {TRACE_ID}"
    later = "select count(*) from pg_stat_activity where strpos(application_name, %s) > 0"
    assert world.sql(later, TRACE_ID) == [(0,)]


@pytest.mark.parametrize("traceparent", ["my question", f"{TRACEPARENT}; drop", TRACEPARENT.upper()])
def test_another_text_is_ignored(people: People, world: World, traceparent: str):
    name = name_during(world, match_through_postgrest(people.ann, traceparent))
    assert not name.startswith("rag ")


def test_a_direct_caller_sets_no_name(people: People, world: World):
    name = name_during(world, match_through_postgrest(people.ann.direct(), TRACEPARENT))
    assert TRACE_ID not in name
