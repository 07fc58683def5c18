"""Limits of requests: no variable of slowapi changes them, and the database decides what slowapi admits."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from limits import parse
from starlette.requests import Request

from local import ROOT
from shared.access.rate_limit import RateLimitCheck, RefusalCache, check_rate_limit
from shared.clients.postgrest import Database
from shared.errors import RateLimited
from shared.types import Principal
from tests.actors import Actor, World
from tests.conftest import People
from tests.shared.examples import closed_after_test
from tests.stand_in_server import Reply, StandIn

SHOW = "from shared.access.rate_limit import _limiter; print(_limiter.enabled, _limiter._swallow_errors)"


def test_no_variable_disables_the_limits(tmp_path: Path):
    (tmp_path / ".env").write_text("RATELIMIT_ENABLED=false\nRATELIMIT_SWALLOW_ERRORS=true\n")
    environment = {"PYTHONPATH": str(ROOT), "RATELIMIT_ENABLED": "false", "RATELIMIT_SWALLOW_ERRORS": "true"}
    process = subprocess.run(
        [sys.executable, "-c", SHOW],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert process.stdout.strip() == "True False"


def attempt(
    database: Database,
    caller: Principal,
    rate: str,
    bucket: str = "rag",
    refusals: RefusalCache | None = None,
) -> RateLimitCheck | None:
    """One request against the limit; None when it is refused."""
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": [], "state": {}})
    spending = RateLimitCheck(database, caller, "rag-search", bucket, parse(rate))
    try:
        check_rate_limit(request, spending, refusals or RefusalCache())
    except RateLimited:
        return None
    return spending


def counted(world: World, actor: Actor) -> dict[str, int]:
    return dict(world.sql("select bucket, hits from rag.rate_limits where caller_id = %s", actor.id))


def test_the_daily_limit_is_exact_for_sixteen_threads(people: People, world: World):
    """The tier's day is less than the limit of the hour, and the hour is charged for no more."""
    world.tier(people.acme, day=30)
    database = database_of(people.ann)
    with ThreadPoolExecutor(16) as pool:
        admitted = list(
            pool.map(lambda _: attempt(database, people.ann.principal, "50/hour") is not None, range(80))
        )
    assert sum(admitted) == 30
    assert counted(world, people.ann) == {"rag": 30, "day": 30}


def database_of(actor: Actor) -> Database:
    stack = actor.stack
    return closed_after_test(Database(stack.url, stack.anon_key, 10, stack.state.functions_secret))


def through(actor: Actor, times: int, rate: str, bucket: str = "rag") -> list[bool]:
    database = database_of(actor)
    return [attempt(database, actor.principal, rate, bucket) is not None for _ in range(times)]


# A limit of the deployment's by day has the same length as the tier's day. Of two windows of one
# length only one is kept, and where both have nothing left it is the first, which let the request through:
# from there on nothing is refused, since the day's refusal gives the other its count back each time.
def test_a_deployment_s_daily_limit_does_not_replace_the_tier_s(people: People, world: World):
    world.tier(people.acme, day=5)
    assert through(people.ann, 1, "600/minute", "api") == [True]
    assert through(people.ann, 9, "5/day") == [True] * 4 + [False] * 5


def test_the_headers_report_the_window_with_the_least_remaining(people: People, world: World):
    world.tier(people.acme, day=3)
    database = database_of(people.ann)
    messages = []
    for _ in range(3):
        spending = attempt(database, people.ann.principal, "60/minute")
        assert spending
        messages.append((spending.tightest.allowed, spending.tightest.headers()["X-RateLimit-Remaining"]))
    assert messages == [(3, "2"), (3, "1"), (3, "0")]


WINDOW = {
    "allowed": 60, "seconds": 60, "hits": 1, "resets_at": "2999-01-01T00:00:00+00:00", "admitted": True,
    "exceeded_quotas": [], "has_org": True,
}  # fmt: skip
USER = Principal("a user", "a token")


def test_a_response_without_a_readable_window_admits_no_request():
    answers: list[Any] = [
        [], None, "", "not what was asked", {}, [{}], [[]], [None], 7, True,
        [{**WINDOW, "resets_at": None}], [{**WINDOW, "hits": None}],
        # Slowapi logs a ValueError that the limit raises, and goes on without the limit.
        [{**WINDOW, "resets_at": "soon"}], [{**WINDOW, "resets_at": "infinity"}],
        [{**WINDOW, "allowed": None}], [{**WINDOW, "allowed": "many"}], [{**WINDOW, "allowed": 0.5}],
        [{**WINDOW, "seconds": "minute"}], [{**WINDOW, "exceeded_quotas": None}],
    ]  # fmt: skip
    assert [answer for answer in answers if lets_through(answer)] == []
    assert lets_through([WINDOW]), "the cases above are refused for their faults alone"


def lets_through(answer: Any) -> bool:
    """Whether the request is admitted when the database says this."""
    with StandIn() as stand_in:
        stand_in.replies(Reply(json=answer))
        try:
            attempt(closed_after_test(Database(stand_in.url, "key", 60)), USER, "60/minute")
        except Exception:
            return False
    return True


NOW = 1_800_000_000.5


@pytest.fixture
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.access.rate_limit.time", lambda: NOW)


def refusal(seconds: float) -> Reply:
    """A refusal by the database, whose window resets so many seconds after the fixed time."""
    resets_at = datetime.fromtimestamp(NOW, UTC) + timedelta(seconds=seconds)
    return Reply(json=[{**WINDOW, "admitted": False, "resets_at": resets_at.isoformat()}])


@pytest.mark.usefixtures("fixed_time")
@pytest.mark.parametrize(("resets_after", "repeated_for"), [(60, 5), (2, 2)])
def test_a_refusal_is_repeated_without_the_database_for_five_seconds_or_until_the_reset(
    resets_after: int, repeated_for: int
):
    now = [1000.0]
    refusals = RefusalCache(clock=lambda: now[0])
    ann, bob = Principal("ann", "a token"), Principal("bob", "a token")
    with StandIn() as server:
        database = closed_after_test(Database(server.url, "key", 60))

        def calls(caller: Principal, bucket: str = "rag") -> int:
            """The number of database calls of one refused request."""
            server.replies(refusal(resets_after))
            before = len(server.requests)
            assert attempt(database, caller, "60/minute", bucket, refusals) is None
            return len(server.requests) - before

        assert [calls(ann), calls(ann)] == [1, 0]
        assert [calls(bob), calls(replace(ann, key_id="a key")), calls(ann, "api")] == [1, 1, 1]
        now[0] += repeated_for - 0.5
        assert calls(ann) == 0
        # (The reset is rounded up to the next second.)
        now[0] += 1.5
        assert calls(ann) == 1


@pytest.mark.usefixtures("fixed_time")
def test_a_repeated_refusal_has_the_headers_of_the_first():
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": [], "state": {}})
    refusals = RefusalCache()
    with StandIn() as server:
        server.replies(refusal(60))
        database = closed_after_test(Database(server.url, "key", 60))
        headers = []
        for _ in range(2):
            check = RateLimitCheck(database, USER, "rag-search", "rag", parse("60/minute"))
            with pytest.raises(RateLimited) as refused:
                check_rate_limit(request, check, refusals)
            # Rounded up to the next second.
            assert refused.value.headers["Retry-After"] == "61"
            headers.append(request.state.rate_limit.headers())
    assert headers[0] == headers[1]
