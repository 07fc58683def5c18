"""When the database fails: PostgREST down or restarting, Postgres restarted, too slow, without a connection.

The tests have a stack of their own, because they stop its processes.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from local.stack import Stack
from shared import pipeline
from shared.clients.postgrest import DatabaseStatus
from shared.config import Settings
from shared.errors import DatabaseTimedOut
from shared.services import Services
from shared.types import Query
from tests.actors import Actor, World
from tests.functions.app_server import wait_for
from tests.process_faults import (
    long_lock_waits,
    start_postgres,
    start_postgrest,
    wait_for_postgrest,
    wait_for_waiters,
)

pytestmark = pytest.mark.postgres
POOL = 3


@pytest.fixture(scope="module")
def own_stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose PostgREST has three connections and waits a second for a free one."""
    folder: Path = tmp_path_factory.mktemp("fragile")
    stack = Stack(folder, postgres_version=request.config.getoption("postgres"), keys="hs256")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PGRST_DB_POOL", str(POOL))
        environment.setenv("PGRST_DB_POOL_ACQUISITION_TIMEOUT", "1")
        environment.setenv("RAG_RATE_LIMIT_RAG", "100000/minute")
        try:
            stack.up(0, durable=False)
            allow_statements(stack, "60s")
            yield stack
        finally:
            stack.remove()


@pytest.fixture
def fragile(own_stack: Stack) -> Iterator[Stack]:
    """The stack. Its PostgREST is new after each test, because a test breaks connections to Postgres."""
    yield own_stack
    own_stack.state.children["postgrest"].stop()
    start_postgrest(own_stack)
    # The verdict of the outage is cached for seconds.
    wait_for(lambda: httpx.get(f"{own_stack.url}/health").status_code == 200)


@pytest.fixture
def ann(fragile: Stack) -> Iterator[Actor]:
    world = World(fragile)
    yield world.user(world.org())
    world.close()


@pytest.fixture
def services(fragile: Stack) -> Iterator[Services]:
    environment = fragile.function_environment()
    values = {name.lower(): value for name, value in environment.items()}
    services = Services(Settings(**values))  # type: ignore[arg-type]
    yield services
    services.close()


def assert_told_nothing(response: httpx.Response, status: int, code: str) -> None:
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    assert set(response.json()) == {"status", "error"}
    assert not any(
        word in response.text.lower() for word in ("postgres", "sql", "pgrst", "connection", "rag.")
    )


@contextmanager
def chunks_locked(stack: Stack) -> Iterator[None]:
    """No caller reads a chunk meanwhile."""
    with psycopg.connect(stack.database_url()) as connection:
        connection.execute("lock table rag.chunks in access exclusive mode")
        yield
        connection.rollback()


def test_a_postgrest_outage_is_an_error_and_the_next_request_recovers(fragile: Stack, ann: Actor):
    fragile.state.children["postgrest"].stop()
    try:
        assert_told_nothing(ann.search("x"), 500, "database_error")
        wait_for(lambda: httpx.get(f"{fragile.url}/health").status_code == 503)
    finally:
        start_postgrest(fragile)
    assert ann.search("x").status_code == 200


def test_a_request_waits_for_a_restarting_postgrest(
    fragile: Stack, ann: Actor, services: Services, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shared.clients.postgrest.PAUSES", (0.1,) * 500)
    fragile.state.children["postgrest"].stop()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pipeline.search, services, ann.principal, Query("x"))
        start_postgrest(fragile)
        assert waiting.result().matches == ()


def test_a_postgres_outage_behind_postgrest_is_reported(fragile: Stack, services: Services):
    assert (services.database_status(), services.database.status()) == (
        DatabaseStatus.SERVES,
        DatabaseStatus.SERVES,
    )
    fragile.postgres.stop()
    try:
        wait_for(lambda: httpx.get(f"{fragile.url}/health").status_code == 503)
        assert services.database_status() is DatabaseStatus.NO_DATABASE
        assert services.database.status() is DatabaseStatus.NO_DATABASE, "without a key to sign with"
    finally:
        start_postgres(fragile, durable=False)


def test_requests_recover_after_a_postgres_restart(fragile: Stack, ann: Actor):
    """Those under way may fail, in the contract's words; none hangs; what follows works."""
    assert ann.search("x").status_code == 200
    stopping = threading.Event()
    answers: list[httpx.Response] = []

    def keep_asking() -> None:
        while not stopping.is_set():
            answers.append(ann.search("x", top_k=1))

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(keep_asking) for _ in range(4)]
        try:
            while not answers and not any(task.done() for task in asking):
                time.sleep(0.01)
            fragile.postgres.stop()
            start_postgres(fragile, durable=False)
        finally:
            stopping.set()
        for task in asking:
            task.result()
    wait_for_postgrest(fragile)
    first = ann.search("x")
    assert first.status_code == 200, first.text
    assert {response.status_code for response in answers} <= {200, 500}
    for response in answers:
        if response.status_code == 500:
            # The second where all connections of PostgREST waited for a second.
            code = response.json()["error"]["code"]
            assert_told_nothing(
                response, 500, code if code in ("database_error", "database_timeout") else "database_error"
            )


def test_a_statement_time_out_is_an_error_of_its_own(fragile: Stack, ann: Actor, services: Services):
    allow_statements(fragile, "300ms")
    try:
        with chunks_locked(fragile):
            assert_told_nothing(ann.search("x"), 500, "database_timeout")
            with pytest.raises(DatabaseTimedOut) as refused:
                pipeline.search(services, ann.principal, Query("x"))
        assert refused.value.log_reason == "SQL 57014"
    finally:
        allow_statements(fragile, "60s")


def allow_statements(stack: Stack, time_out: str) -> None:
    """Give signed-in users' statements so long. PostgREST reads the roles' settings when it starts."""
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        connection.execute(f"alter role authenticated set statement_timeout = '{time_out}'".encode())
    stack.state.children["postgrest"].stop()
    start_postgrest(stack)


def test_an_exhausted_connection_pool_is_an_error_within_the_time_out(
    fragile: Stack, ann: Actor, services: Services
):
    """All of PostgREST's connections wait for a lock, and PostgREST itself refuses the next call."""
    with psycopg.connect(fragile.database_url()) as connection:
        connection.execute("update rag.settings set reads_per_user = 100, reads_per_org = 100")
    # The first search of a process imports modules for seconds. Meanwhile the searches below would time out.
    assert ann.search("x").status_code == 200
    with ThreadPoolExecutor(POOL) as pool, long_lock_waits(fragile), chunks_locked(fragile):
        holding = [pool.submit(pipeline.search, services, ann.principal, Query("x")) for _ in range(POOL)]
        wait_for_waiters(fragile, POOL)
        with pytest.raises(DatabaseTimedOut) as refused:
            pipeline.search(services, ann.principal, Query("x"))
        assert refused.value.log_reason == "SQL PGRST003"
        assert_told_nothing(ann.search("x"), 500, "database_timeout")
        assert not any(task.done() for task in holding)
    assert ann.search("x").status_code == 200
