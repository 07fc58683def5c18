"""Searches on a read replica: a real primary with a streaming standby, each behind its own PostgREST."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import le
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient

from functions import administration, indexes, rag_answer, rag_search
from local.child_processes import Child, free_port, is_responding, start, wait_until_ready
from local.npm_tools import postgrest_binary
from local.postgres import SUPERUSER, Postgres
from local.stack import Stack
from shared import config
from shared.clients import read_replica
from shared.clients.http_client import deadline
from shared.clients.postgrest import PLANNED
from shared.clients.read_replica import READ_AFTER, DatabaseWithReplica, Transactions
from shared.errors import DatabaseBusy, DatabaseFailed, DatabaseTimedOut, RagError, RateLimited, Unauthorized
from shared.services import Services
from shared.types import Principal
from tests.actors import Actor, World
from tests.functions.app_server import client_of, proxy_to
from tests.stand_in_server import Reply, StandIn

KILN = "The kiln may become 1,280 degrees hot. After that it cools for a whole day."
OVEN = "The oven becomes 300 degrees hot, and cools within an hour."
QUESTION = "How hot does the kiln become?"


@dataclass
class Standby:
    """A copy of the primary that follows it, with a PostgREST."""

    postgres: Postgres
    postgrest: Child
    postgrest_port: int

    def sql(self, statement: str) -> Any:
        with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchone() if cursor.description else None

    def stop(self) -> None:
        self.postgrest.stop()
        self.postgres.stop()


@dataclass(frozen=True)
class Replicated:
    primary: Stack
    world: World
    standby: Standby
    services: Services

    @contextmanager
    def client(self, app: Any) -> Iterator[TestClient]:
        with client_of(app, self.services) as client:
            yield client

    def add(self, actor: Actor, text: str) -> str:
        """Add a document. Returns the token to read after it."""
        with self.client(indexes.app) as client:
            body = {"index_name": "default", "documents": [{"text": text}]}
            response = client.post("/index", json=body, headers=actor.headers())
            assert response.status_code == 200, response.text
            return response.headers[READ_AFTER]

    def search(self, actor: Actor, read_after: str | None = None) -> list[str]:
        with self.client(rag_search.app) as client:
            return self.results(client, actor, read_after)

    @staticmethod
    def results(client: TestClient, actor: Actor, read_after: str | None = None) -> list[str]:
        headers = actor.headers() | ({READ_AFTER: read_after} if read_after else {})
        response = client.post("/api/rag/search", json={"query_text": QUESTION}, headers=headers)
        assert response.status_code == 200, response.text
        assert READ_AFTER not in response.headers
        return [result["snippet"] for result in response.json()["results"]]

    def wait_for_replay(self) -> None:
        """Until the standby has replayed all that was written. A search does not tell: the primary serves a
        member whom the standby does not know."""
        ((written,),) = self.world.sql("select pg_current_wal_insert_lsn()::text")
        replayed = f"select pg_last_wal_replay_lsn() >= '{written}'"
        eventually(lambda: self.standby.sql(replayed) == (True,))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While the standby replays nothing, after it has replayed everything before."""
        self.wait_for_replay()
        self.standby.sql("select pg_wal_replay_pause()")
        try:
            # Until then it replays what arrives.
            eventually(lambda: self.standby.sql("select pg_get_wal_replay_pause_state()") == ("paused",))
            yield
        finally:
            self.standby.sql("select pg_wal_replay_resume()")


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    folder = tmp_path_factory.mktemp("replicated")
    primary = Stack(folder / "primary", keys="hs256")
    try:
        primary.up(0, durable=False, seed=False)
        world = World(primary)
        with _standby(primary, folder / "standby") as standby, _services(primary, standby) as services:
            yield Replicated(primary, world, standby, services)
        world.close()
    finally:
        primary.remove()


@contextmanager
def _standby(primary: Stack, folder: Path) -> Iterator[Standby]:
    """By an online copy of the primary's data."""
    source = primary.postgres
    postgres = Postgres.at(folder, source.version, free_port(), source.password)
    with psycopg.connect(source.url(), autocommit=True) as connection:
        connection.execute("alter system set wal_keep_size = '1GB'")
        connection.execute("select pg_reload_conf()")
        connection.execute("select pg_backup_start('standby', true)")
        shutil.copytree(source.data, postgres.data, ignore=shutil.ignore_patterns("postmaster.*"))
        row = connection.execute("select labelfile from pg_backup_stop()").fetchone()
    (postgres.data / "backup_label").write_text(row[0] if row else "")
    (postgres.data / "standby.signal").touch()
    with (postgres.data / "postgresql.auto.conf").open("a") as settings:
        settings.write(
            f"primary_conninfo = 'host=127.0.0.1 port={source.port} user={SUPERUSER} "
            f"password={source.password} sslmode=disable'\n"
        )
    postgres.data.chmod(0o700)
    if postgres.user:
        subprocess.run(["chown", "-R", postgres.user, postgres.data], check=True)
    postgres.start(durable=False)
    port = free_port()
    environment = primary._postgrest_environment() | {
        "PGRST_DB_URI": postgres.url(user="authenticator"),
        "PGRST_DB_CHANNEL_ENABLED": "false",
        "PGRST_SERVER_PORT": str(port),
    }
    folder.mkdir(exist_ok=True)
    log = folder / "postgrest.log"
    postgrest = start([postgrest_binary()], environment, log)
    standby = Standby(postgres, postgrest, port)
    try:
        wait_until_ready(lambda: is_responding(f"http://127.0.0.1:{port}/"), postgrest, log)
        yield standby
    finally:
        standby.stop()


@contextmanager
def _services(primary: Stack, standby: Standby) -> Iterator[Services]:
    environment = {name.lower(): value for name, value in primary.function_environment().items()}
    read_url = f"http://127.0.0.1:{standby.postgrest_port}"
    services = Services(config.read_settings(**environment, supabase_read_url=read_url))
    assert isinstance(services.database, DatabaseWithReplica)
    # Without a gateway in front of it.
    services.database._replica.address = read_url
    try:
        yield services
    finally:
        services.close()


@pytest.fixture
def actor(replicated: Replicated) -> Actor:
    return replicated.world.user(replicated.world.org())


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch, replicated: Replicated) -> None:
    monkeypatch.setattr(read_replica, "PAUSE_SECONDS", 0.0)
    database = replicated.services.database
    assert isinstance(database, DatabaseWithReplica)
    database._paused_until = 0.0


def eventually(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_search_reads_the_replica(replicated: Replicated, actor: Actor, no_pause: None):
    replicated.add(actor, KILN)
    eventually(lambda: replicated.search(actor) == [KILN])
    with replicated.paused():
        replicated.add(actor, OVEN)
        assert replicated.search(actor) == [KILN]
    eventually(lambda: set(replicated.search(actor)) == {KILN, OVEN})


def test_the_search_of_an_answer_reads_the_replica(replicated: Replicated, actor: Actor, no_pause: None):
    replicated.add(actor, KILN)
    eventually(lambda: replicated.search(actor) == [KILN])
    with replicated.paused(), replicated.client(rag_answer.app) as client:
        replicated.add(actor, OVEN)
        response = client.post("/api/rag/answer", json={"query_text": QUESTION}, headers=actor.headers())
        assert response.json()["context_used"]["chunks_retrieved"] == 1


def test_a_client_reads_its_own_writes(replicated: Replicated, actor: Actor, no_pause: None):
    first = replicated.add(actor, KILN)
    eventually(lambda: replicated.search(actor) == [KILN])
    with replicated.paused():
        second = replicated.add(actor, OVEN)
        assert int(second) > int(first)
        assert set(replicated.search(actor, second)) == {KILN, OVEN}
        # The standby has replayed the first write, and so serves these.
        for older in (first, "", "no number", "9" * 40, "-1"):
            assert replicated.search(actor, older) == [KILN]


def test_a_replica_never_returns_another_org_s_rows(replicated: Replicated, actor: Actor, no_pause: None):
    token = replicated.add(actor, KILN)
    stranger = replicated.world.user(replicated.world.org())
    eventually(lambda: replicated.search(actor) == [KILN])
    assert replicated.search(stranger) == []
    assert replicated.search(stranger, token) == []


def test_health_reports_a_primary_that_is_a_standby(replicated: Replicated, actor: Actor):
    """As after a failover that did not end: users' calls fail, because each counts for a rate limit."""
    replicated.wait_for_replay()
    environment = {name.lower(): value for name, value in replicated.primary.function_environment().items()}
    with proxy_to(f"http://127.0.0.1:{replicated.standby.postgrest_port}", "/rest/v1") as (address, _):
        environment |= {"supabase_url": address, "supabase_jwt_issuer": replicated.services.settings.issuer}
        with closing(Services(config.read_settings(**environment))) as services:
            with client_of(rag_search.app, services) as client:
                body = {"query_text": QUESTION}
                assert client.post("/api/rag/search", json=body, headers=actor.headers()).status_code == 500
            with client_of(administration.app, services) as client:
                response = client.get("/v1/health")
    assert response.status_code == 503
    states = response.json()["services"]
    assert (states["database"], states["migrations"]) == ("unhealthy", "unknown")
    assert "standby" in response.json()["problem"]


def test_no_search_fails_while_the_replica_stops(replicated: Replicated, no_pause: None):
    """Four users search without a break. It is the last test: the replica does not return."""
    org = replicated.world.org()
    actors = [replicated.world.user(org) for _ in range(4)]
    replicated.add(actors[0], KILN)
    replicated.wait_for_replay()
    answers_by_actor: list[list[list[str]]] = [[] for _ in actors]
    is_over = Event()
    with replicated.client(rag_search.app) as client, ThreadPoolExecutor(len(actors)) as threads:

        def search(actor: Actor, answers: list[list[str]]) -> None:
            while not is_over.is_set():
                answers.append(replicated.results(client, actor))

        running = [threads.submit(search, *pair) for pair in zip(actors, answers_by_actor, strict=True)]
        try:
            _wait_for_more(answers_by_actor)
            replicated.standby.postgres.stop()
            _wait_for_more(answers_by_actor)
            replicated.standby.postgrest.stop()
            _wait_for_more(answers_by_actor)
        finally:
            is_over.set()
        for thread in running:
            thread.result()
    assert all(answer == [KILN] for answers in answers_by_actor for answer in answers)


def _wait_for_more(answers_by_actor: list[list[list[str]]]) -> None:
    """Until each user has three more results."""
    goals = [len(answers) + 3 for answers in answers_by_actor]
    eventually(lambda: all(map(le, goals, map(len, answers_by_actor))))


CALLER = Principal("a user", "a token")
PROBED = "/rest/v1/rpc/is_org_member"


@dataclass
class Scripted:
    """A database and a replica that are servers of this test, each with the names of the functions called."""

    database: DatabaseWithReplica
    primary: StandIn
    replica: StandIn

    def search(self) -> Any:
        return self.database.call(CALLER, "rag_search", {}, idempotent=True)

    @staticmethod
    def searches(server: StandIn) -> int:
        return sum(request.path != PROBED for request in server.requests)


@contextmanager
def scripted(replica: Reply, read_url: str = "", seconds: float = 60) -> Iterator[Scripted]:
    with StandIn() as primary, StandIn() as server:
        primary.replies(Reply(json="of the primary"))
        server.replies(replica)
        database = DatabaseWithReplica(primary.url, read_url or server.url, "key", seconds, None)
        with closing(database):
            yield Scripted(database, primary, server)


def refusal(code: str | None, status: int = 500, detail: str | None = None) -> Reply:
    return Reply(status=status, json={"code": code, "message": "", "details": detail, "hint": None})


def page(status: int) -> Reply:
    return Reply(status=status, body=b"<html>")


# The replica has no connection.
OUTAGES = {
    "connection lost": Reply(drop=True),
    "connection lost in the body": Reply(chunks=[b"[", 0.01], drop=True),
    "gateway without a server": page(502),
    "PostgREST without a database": refusal("PGRST000", 503),
    "PostgREST with an older schema": refusal("PGRST202", 404),
    "Postgres stops": refusal("57P01"),
    "Postgres lost the connection": refusal("08006"),
}
# The primary serves the one search.
OF_ONE_SEARCH = {
    "replica behind": refusal("PT425", 425, "replica_behind"),
    "a member who is new": refusal("PT403", 403, "no_org"),
    "conflict with the replay": refusal("40001"),
    "refused by a firewall": page(403),
    "rate limit of a gateway": refusal(None, 429),
}
# The caller gets the error.
ANSWERS: dict[str, tuple[Reply, type[RagError]]] = {
    "statement time-out": (refusal("57014"), DatabaseTimedOut),
    "no free connection in the pool": (refusal("PGRST003", 504), DatabaseTimedOut),
    "lock time-out": (refusal("55P03"), DatabaseBusy),
    "write on a replica": (refusal("25006", 405), DatabaseFailed),
    "token refused": (refusal("PGRST301", 401), Unauthorized),
    "rate limit": (refusal("PT429", 429, "rate_limited"), RateLimited),
}


def test_a_replica_without_a_connection_is_paused(subtests: pytest.Subtests):
    for failure, reply in OUTAGES.items():
        with subtests.test(failure), scripted(reply) as test:
            assert [test.search() for _ in range(3)] == ["of the primary"] * 3
            assert (test.searches(test.replica), test.searches(test.primary)) == (1, 3)


def test_a_replica_that_cannot_be_reached_is_paused(
    subtests: pytest.Subtests, silent: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read_replica._Replica, "connect_seconds", 0.2)
    with StandIn() as plain:
        addresses = {
            "refused": f"http://127.0.0.1:{free_port()}",
            "no address": "http://replica.invalid",
            "no TLS": plain.url.replace("http", "https"),
            "no connection in time": silent,
        }
        for failure, address in addresses.items():
            with subtests.test(failure), scripted(Reply(), address) as test:
                assert test.search() == "of the primary"
                assert test.database._paused_until > time.monotonic()


def test_the_primary_serves_a_search_that_the_replica_alone_cannot(subtests: pytest.Subtests):
    for failure, reply in OF_ONE_SEARCH.items():
        with subtests.test(failure), scripted(reply) as test:
            test.replica.replies(Reply(json="of the replica"))
            assert [test.search(), test.search()] == ["of the primary", "of the replica"]


def test_the_caller_gets_an_error_of_the_replica_s_database(subtests: pytest.Subtests):
    for failure, (reply, error) in ANSWERS.items():
        with subtests.test(failure), scripted(reply) as test:
            test.replica.replies(Reply(json="of the replica"))
            with pytest.raises(error):
                test.search()
            assert test.search() == "of the replica"
            assert test.primary.requests == []


def test_a_slow_search_pauses_nothing(subtests: pytest.Subtests):
    for failure, reply in {"no response": Reply(delay=1), "gateway": page(504)}.items():
        with subtests.test(failure), scripted(reply, seconds=0.5) as test:
            test.replica.replies(refusal(PLANNED, 400), Reply(json="of the replica"))
            with pytest.raises(DatabaseTimedOut):
                test.search()
            assert test.search() == "of the replica"
            assert test.primary.requests == []


def test_a_slow_search_keeps_its_error_beyond_the_deadline_of_its_request():
    """The probe has its own deadline."""
    with scripted(Reply(delay=1)) as test:
        test.replica.replies(refusal(PLANNED, 400), Reply(json="of the replica"))
        with pytest.raises(DatabaseTimedOut), deadline(0.3):
            test.search()
        assert test.search() == "of the replica"


def test_a_replica_that_answers_nothing_is_paused_until_a_probe_succeeds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(read_replica, "PROBE_SECONDS", 0.2)
    frozen = Reply(delay=0.6)
    with scripted(frozen, seconds=0.3) as test:
        test.replica.replies(frozen, frozen, refusal(PLANNED, 400), Reply(json="of the replica"))
        with pytest.raises(DatabaseTimedOut):
            test.search()
        assert test.search() == "of the primary"
        assert len(test.replica.requests) == 2
        for expected in ("of the primary", "of the replica"):
            test.database._paused_until = time.monotonic() - 1
            assert test.search() == expected


def test_a_search_on_both_takes_no_longer_than_its_time_limit():
    with scripted(Reply(delay=0.6, drop=True), seconds=1) as test:
        test.primary.replies(Reply(delay=2))
        test.primary._replies.popleft()
        began = time.monotonic()
        with pytest.raises(DatabaseTimedOut):
            test.search()
        assert time.monotonic() - began < 1.5


def test_the_header_is_a_number():
    assert Transactions.of("12") == Transactions(12)
    for text in (None, "", "1 2", "١٢", "9" * 20, "0x1"):
        assert Transactions.of(text) == Transactions()
