"""Database calls against a server that fails in each way: which are retried, and for how long."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from shared.clients.postgrest import (
    NOT_EXECUTED,
    PAUSES,
    PLANNED,
    POSSIBLY_EXECUTED,
    Database,
    DatabaseStatus,
)
from shared.errors import DatabaseFailed, DatabaseTimedOut, RagError, Unauthorized
from shared.types import Principal
from tests.stand_in_server import Reply, StandIn

CALLER = Principal("a user", "a token")
ALL_TRIES = 1 + len(PAUSES)


@contextmanager
def database_at(service: StandIn, timeout_seconds: float = 3) -> Iterator[Database]:
    with closing(Database(service.url, "the anon key", timeout_seconds)) as database:
        yield database


@pytest.fixture
def database(service: StandIn) -> Iterator[Database]:
    with database_at(service) as database:
        yield database


def refusal(code: str | None, status: int = 503) -> Reply:
    return Reply(status=status, json={"code": code, "message": "a detail", "details": None, "hint": None})


def call(database: Database, **how: Any) -> Any:
    return database.call(CALLER, "a_function", {"x": 1}, **how)


def test_a_call_has_the_caller_s_own_token(service: StandIn, database: Database):
    service.replies(Reply(json=[{"a": 1}]))
    assert call(database) == [{"a": 1}]
    (request,) = service.requests
    assert (request.method, request.path) == ("POST", "/rest/v1/rpc/a_function")
    assert request.headers["authorization"] == "Bearer a token"
    assert request.headers["apikey"] == "the anon key"


def test_a_publishable_key_is_never_a_bearer(service: StandIn):
    """Hosted, another gateway than today's may refuse it there: it is no JWT."""
    with closing(Database(service.url, "sb_publishable_x", 3)) as database:
        service.replies(
            refusal(PLANNED, 400), Reply(json={}, status=401), refusal("42501", 401), Reply(json=[])
        )
        assert database.status() is DatabaseStatus.SERVES
        call(database)
    *probes, called = service.requests
    assert {request.headers["apikey"] for request in service.requests} == {"sb_publishable_x"}
    assert [request.headers.get("authorization") for request in probes] == [None] * 3
    assert called.headers["authorization"] == "Bearer a token"


def test_an_unsent_call_is_retried(subtests: pytest.Subtests):
    for code in sorted(NOT_EXECUTED):
        with subtests.test(code=code), StandIn() as service, database_at(service) as database:
            service.replies(refusal(code), Reply(json=7))
            assert call(database) == 7
            assert len(service.requests) == 2


@pytest.mark.usefixtures("short_pauses")
def test_retries_are_limited(service: StandIn, database: Database):
    service.replies(refusal("PGRST000"))
    with pytest.raises(DatabaseFailed):
        call(database)
    assert len(service.requests) == ALL_TRIES


@pytest.mark.usefixtures("short_pauses")
def test_a_possibly_executed_call_is_retried_only_if_idempotent(subtests: pytest.Subtests):
    cases: list[Reply] = [
        Reply(drop=True),
        Reply(status=502, body=b"<html>"),
        refusal(None),
        *map(refusal, sorted(POSSIBLY_EXECUTED)),
    ]
    for reply in cases:
        with subtests.test(reply=reply), StandIn() as service, database_at(service) as database:
            service.replies(reply)
            with pytest.raises(DatabaseFailed):
                call(database)
            assert len(service.requests) == 1
            with pytest.raises(DatabaseFailed):
                call(database, idempotent=True)
            assert len(service.requests) == 1 + ALL_TRIES


def test_a_permanent_error_is_not_retried(subtests: pytest.Subtests):
    cases: list[tuple[str, type[RagError]]] = [
        ("57014", DatabaseTimedOut), ("PGRST003", DatabaseTimedOut), ("PGRST301", Unauthorized),
        ("XX000", DatabaseFailed),
    ]  # fmt: skip
    for code, noun in cases:
        with subtests.test(code=code), StandIn() as service, database_at(service) as database:
            service.replies(refusal(code, 500))
            with pytest.raises(noun):
                call(database, idempotent=True)
            assert len(service.requests) == 1


@pytest.mark.parametrize("reply", [Reply(delay=30), Reply(json="x" * 500, drip=0.2)])
def test_the_time_out_covers_the_whole_call(service: StandIn, reply: Reply):
    service.replies(reply)
    with database_at(service, 0.5) as database, pytest.raises(DatabaseTimedOut):
        call(database, idempotent=True)
    # On a machine that is busy for half a second, the time is over before the request.
    assert len(service.requests) <= 1


@pytest.mark.parametrize(("attempt", "pause"), [(0.2, 0.0), (0.0, 0.2)])
def test_retries_and_pauses_count_towards_the_time_out(
    service: StandIn, monkeypatch: pytest.MonkeyPatch, attempt: float, pause: float
):
    """The first attempt or its pause takes so much of the time-out that the second pause would outlast it."""
    monkeypatch.setattr("shared.clients.http_client.JITTER", 0)
    monkeypatch.setattr("shared.clients.postgrest.PAUSES", (pause, 29.9))
    service.replies(replace(refusal("PGRST000"), delay=attempt), refusal("PGRST000"))
    with database_at(service, 30) as database, pytest.raises(DatabaseFailed):
        call(database)
    assert len(service.requests) == 2


def test_the_probe_reports_how_far_the_project_s_key_is_accepted(subtests: pytest.Subtests):
    cases: list[tuple[Reply, DatabaseStatus]] = [
        # Of a PostgREST before version 12, which makes the call.
        (refusal("42501", 401), DatabaseStatus.SERVES),
        # As of PostgREST 12 and 13 in turn.
        (refusal("PGRST301", 401), DatabaseStatus.KEY_REFUSED),
        (refusal("PGRST202", 404), DatabaseStatus.NO_SCHEMA),
        (refusal("PGRST106", 406), DatabaseStatus.NOT_EXPOSED),
        (refusal("PGRST002"), DatabaseStatus.NO_DATABASE),
        (Reply(json={"message": "Invalid API key"}, status=401), DatabaseStatus.GATEWAY_REFUSED),
        (Reply(json={"message": "name resolution failed"}, status=503), DatabaseStatus.NO_RESPONSE),
        (Reply(json={"code": "NOT_FOUND"}, status=404), DatabaseStatus.NO_RESPONSE),
        (Reply(body=b"<html>"), DatabaseStatus.NO_RESPONSE),
        (Reply(drop=True), DatabaseStatus.NO_RESPONSE),
    ]
    for reply, reach in cases:
        with subtests.test(reply=reply, reach=reach), StandIn() as service, database_at(service) as database:
            service.replies(reply)
            assert database.status() is reach
            assert database.status(CALLER) is reach
            assert len(service.requests) == 2


def test_the_probe_reports_how_far_postgrest_knows_the_schema(subtests: pytest.Subtests):
    """The first probe is answered without Postgres, which the next ones reach."""
    health, description = "/rest/v1/rpc/rag_health", "/rest/v1/"
    member = "/rest/v1/rpc/is_org_member"
    cases: list[tuple[bool, list[Reply], DatabaseStatus, list[str]]] = [
        (True, [Reply(json=[{}])], DatabaseStatus.SERVES, [health]),
        (True, [Reply(json=[{"writes": "standby"}])], DatabaseStatus.NO_WRITES, [health]),
        (True, [refusal("PGRST001")], DatabaseStatus.NO_DATABASE, [health]),
        (True, [refusal("57P03", 500)], DatabaseStatus.NO_DATABASE, [health]),
        (True, [Reply(drop=True)], DatabaseStatus.NO_RESPONSE, [health]),
        # The project does not trust the key that signs here, or its schema is older than rag_health.
        (True, [refusal("PGRST301", 401), Reply(json={})], DatabaseStatus.SERVES, [health, description]),
        (True, [refusal("PGRST202", 404), Reply(json={})], DatabaseStatus.SERVES, [health, description]),
        (False, [Reply(json={})], DatabaseStatus.SERVES, [description]),
        (False, [Reply(json={}, status=503)], DatabaseStatus.NO_DATABASE, [description]),
        # The project describes itself to secret keys alone.
        (False, [Reply(json={}, status=401), refusal("42501", 401)], DatabaseStatus.SERVES,
         [description, member]),
        (False, [Reply(json={}, status=401), refusal("PGRST001")], DatabaseStatus.NO_DATABASE,
         [description, member]),
    ]  # fmt: skip
    for is_signed, replies, reach, paths in cases:
        with subtests.test(replies=replies), StandIn() as service, database_at(service) as database:
            service.replies(refusal(PLANNED, 400), *replies)
            assert database.status(CALLER if is_signed else None) is reach
            first, *others = service.requests
            assert "handling=strict" in first.headers["prefer"]
            assert [request.path for request in others] == paths
            for request in service.requests:
                token = "a token" if request.path == health else "the anon key"
                assert request.headers["authorization"] == f"Bearer {token}"
