"""Requests counted in Postgres: every call once, each user's their own, and never backwards."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from local.postgres import SUPERUSER
from tests.actors import Actor, World, hit_arguments
from tests.conftest import People
from tests.sql.schema_changes import schema_change
from tests.sql.sql_as_user import become

PLENTY = 1_000_000


def hit(actor: Actor, bucket: Any = "rag", window_seconds: Any = 60, **more: Any) -> httpx.Response:
    """Under an unreachable limit, unless `requests` says so."""
    arguments = {"bucket": bucket, "window_seconds": window_seconds, "requests": PLENTY, **more}
    return actor.rpc("rag_check_rate_limit", hit_arguments(**arguments))


def spent(actor: Actor, bucket: str = "rag", window_seconds: int = 60, **more: Any) -> int:
    """What the count stands at after this hit."""
    answer = hit(actor, bucket, window_seconds, **more)
    assert answer.status_code == 200, answer.text
    (row,) = answer.json()
    return int(row["hits"])


def counts(world: World, caller: Actor | str) -> list[tuple[Any, ...]]:
    """Of a user, or of a key by its id."""
    caller_id = caller if isinstance(caller, str) else caller.id
    statement = "select bucket, window_seconds, hits from rag.rate_limits where caller_id = %s order by 1, 2"
    return world.sql(statement, caller_id)


def set_back(world: World, actor: Actor, seconds: float) -> None:
    """Let the user's windows have begun earlier."""
    change = "update rag.rate_limits set started_at = started_at - make_interval(secs => %s)"
    world.sql(f"{change} where caller_id = %s", seconds, actor.id)


def test_every_call_counts_its_amount_once(people: People, world: World):
    assert [spent(people.ann, amount=amount) for amount in (1, 1, 10, 1000, 1)] == [1, 2, 12, 1012, 1013]
    assert counts(world, people.ann) == [("rag", 60, 1013)]


def test_a_count_reads_the_memberships_few_times(people: People):
    count = "select admitted from public.rag_check_rate_limit('rag-search', 'rag', 60, 60)"
    calls = "select calls from pg_stat_xact_user_functions where funcname = 'memberships'"
    assert hit(people.ann).status_code == 200
    with psycopg.connect(people.ann.stack.database_url(SUPERUSER)) as connection:
        connection.execute("set track_functions = 'all'")
        become(connection, people.ann)
        assert connection.execute(count).fetchall() == [(True,)]
        assert connection.execute(calls).fetchall() == [(4,)]


def test_a_count_does_not_wait_for_the_disk(people: People, world: World):
    setting = "current_setting('synchronous_commit')"
    with schema_change(world, "set synchronous_commit = on", "reset synchronous_commit"):
        counted = "select admitted from public.rag_check_rate_limit('rag-search', 'rag', 60, 60)"
        assert world.as_user(people.ann, f"select ({counted}), {setting}") == [(True, "off")]
        assert world.sql(f"select {setting}") == [("on",)]


def test_a_window_starts_with_the_first_call_and_restarts_after_its_end(
    people: People, world: World, subtests: pytest.Subtests
):
    for window_seconds in [1, 60, 3600, 86400]:
        with subtests.test(window_seconds=window_seconds):
            ((before,),) = world.sql("select clock_timestamp()")
            (first,) = hit(people.ann, window_seconds=window_seconds).json()
            ((after,),) = world.sql("select clock_timestamp()")
            (second,) = hit(people.ann, window_seconds=window_seconds, amount=1000).json()
            started_at = datetime.fromisoformat(first["resets_at"]) - timedelta(seconds=window_seconds)
            assert before < started_at < after
            if window_seconds > 1:
                assert first["resets_at"] == second["resets_at"]
            set_back(world, people.ann, window_seconds)
            (row,) = hit(people.ann, window_seconds=window_seconds).json()
            assert row["hits"] == 1
            assert datetime.fromisoformat(row["resets_at"]) > after + timedelta(seconds=window_seconds)


def test_a_token_restricted_to_an_org_spends_the_same_quota(people: People):
    tokens = [people.kim.token(rag={"org": org.id}) for org in (people.acme, people.bolt)]
    answers = [people.kim.rpc("rag_check_rate_limit", hit_arguments(), token=token) for token in tokens]
    assert [answer.json()[0]["hits"] for answer in answers] == [1, 2]


# Arguments of a call, and the status of its response: without a row (200) nothing is admitted.
INVALID: list[tuple[int, str, list[Any]]] = [
    (200, "amount", [0, -1, -3, -1000, -(2**31), 1001, 2**31 - 1, None]),
    (200, "requests", [0, -1, -(2**31), None]),
    (400, "amount", [2**31, -(2**31) - 1, 0.5, "many", [1]]),
    (400, "bucket", ["", "Rag", "rag ", "other", "rag'; --", None]),
    (400, "window_seconds", [0, -60, 2, 59, 61, 604800, 2**31 - 1, None]),
    (400, "function", ["", "rag_search", "RAG-SEARCH", "made up", None]),
]


def test_invalid_arguments_admit_and_count_nothing(people: People, world: World, subtests: pytest.Subtests):
    """Nor do they lower a count."""
    for _ in range(3):
        spent(people.ann)
    before = counts(world, people.ann), outcomes_of(world, people.ann)
    for status, name, values in INVALID:
        for value in values:
            with subtests.test(name=name, value=value):
                answer = hit(people.ann, **{name: value})
                assert answer.status_code == status
                assert status == 400 or answer.json() == []
                assert (counts(world, people.ann), outcomes_of(world, people.ann)) == before


# -- how many a limit lets through --------------------------------------------------------------------


def tried(actor: Actor, times: int, *, token: str | None = None, **more: Any) -> list[bool]:
    """Which of so many requests, one after the other, were let through by all limits."""
    outcomes = []
    for _ in range(times):
        answer = actor.rpc("rag_check_rate_limit", hit_arguments(**more), token=token)
        assert answer.status_code == 200, answer.text
        outcomes.append(all(row["admitted"] for row in answer.json()))
    return outcomes


def windows(actor: Actor, *, token: str | None = None, **more: Any) -> dict[int, tuple[int, int, bool]]:
    """By window: the limit, the count after this request, and whether it was let through."""
    answer = actor.rpc("rag_check_rate_limit", hit_arguments(**more), token=token)
    assert answer.status_code == 200, answer.text
    return {row["seconds"]: (row["allowed"], row["hits"], row["admitted"]) for row in answer.json()}


def outcomes_of(world: World, actor: Actor) -> dict[tuple[str, str], int]:
    rows = world.sql("select function, outcome, total from rag.request_counts where user_id = %s", actor.id)
    return {(function, outcome): total for function, outcome, total in rows}


def test_a_limit_of_five_admits_five_and_five_more_after_the_window(people: People, world: World):
    assert tried(people.ann, 8, requests=5) == [True] * 5 + [False] * 3
    assert counts(world, people.ann) == [("rag", 60, 5)]
    set_back(world, people.ann, 60)
    assert tried(people.ann, 8, requests=5) == [True] * 5 + [False] * 3


def test_an_amount_over_the_remainder_is_refused_completely(people: People, world: World):
    assert windows(people.ann, requests=10, amount=7) == {60: (10, 7, True)}
    assert windows(people.ann, requests=10, amount=4) == {60: (10, 7, False)}
    assert windows(people.ann, requests=10, amount=3) == {60: (10, 10, True)}
    assert windows(people.ann, requests=10) == {60: (10, 10, False)}
    assert counts(world, people.ann) == [("rag", 60, 10)]


def test_an_amount_over_the_limit_is_refused_even_in_a_new_window(people: People, world: World):
    assert windows(people.ann, requests=10, amount=11) == {60: (10, 0, False)}
    assert counts(world, people.ann) == []
    tried(people.ann, 1, requests=10)
    set_back(world, people.ann, 60)
    (row,) = hit(people.ann, requests=10, amount=11).json()
    assert (row["hits"], row["admitted"]) == (0, False)


def test_a_lowered_limit_refuses_until_the_window_ends(people: People, world: World):
    tried(people.ann, 8, requests=10)
    assert windows(people.ann, requests=5) == {60: (5, 8, False)}
    set_back(world, people.ann, 60)
    assert windows(people.ann, requests=5) == {60: (5, 1, True)}


def test_sixteen_threads_are_admitted_exactly_up_to_the_limit(people: People, world: World):
    """In a new window, and in one that restarts."""
    for windows_begun in (1, 2):
        with ThreadPoolExecutor(16) as pool:
            results = list(pool.map(lambda _: hit(people.ann, requests=25).json()[0], range(40)))
        assert sorted(row["hits"] for row in results if row["admitted"]) == list(range(1, 26))
        assert counts(world, people.ann) == [("rag", 60, 25)]
        assert outcomes_of(world, people.ann) == {
            ("rag-search", "admitted"): 25 * windows_begun,
            ("rag-search", "limited"): 15 * windows_begun,
        }
        set_back(world, people.ann, 60)


# -- tiers --------------------------------------------------------------------------------------------


def test_the_default_tiers_exist(world: World):
    own = world.sql("select name, requests_per_day from rag.tiers where name not like 'test-%%' order by 2")
    assert own == [("free", 100), ("developer", 10_000), ("professional", 100_000), ("standard", None)]
    ((default,),) = world.sql("select tier from rag.orgs where id = %s", world.org().id)
    assert default == "standard"


def test_the_standard_tier_and_a_user_without_an_org_have_no_daily_limit(people: People):
    assert set(windows(people.ann)) == set(windows(people.sam)) == {60}


def test_a_tier_s_daily_limit_is_shared_by_a_user_s_buckets(people: People, world: World):
    world.tier(people.acme, day=5)
    assert tried(people.ann, 3) == [True] * 3
    assert tried(people.ann, 3, bucket="api") == [True, True, False]
    assert counts(world, people.ann) == [("api", 60, 2), ("day", 86400, 5), ("rag", 60, 3)]
    assert tried(people.alf, 1) == [True], "each of the org's people has a day of their own"


def test_a_day_ends_a_day_after_its_first_request(people: People, world: World):
    world.tier(people.acme, day=2)
    assert tried(people.ann, 3) == [True, True, False]
    set_back(world, people.ann, 86_399)
    assert tried(people.ann, 1) == [False]
    set_back(world, people.ann, 1)
    assert tried(people.ann, 3) == [True, True, False]


def test_a_refusal_by_the_daily_limit_does_not_count_for_the_minute(people: People, world: World):
    world.tier(people.acme, day=3)
    assert tried(people.ann, 10) == [True] * 3 + [False] * 7
    assert outcomes_of(world, people.ann) == {("rag-search", "admitted"): 3, ("rag-search", "limited"): 7}
    assert windows(people.ann) == {60: (60, 4, True), 86400: (3, 3, False)}
    assert counts(world, people.ann) == [("day", 86400, 3), ("rag", 60, 3)]
    assert windows(people.ann, amount=2)[86400] == (3, 3, False)
    assert counts(world, people.ann) == [("day", 86400, 3), ("rag", 60, 3)]


def test_a_tier_s_minute_limit_replaces_the_deployment_s_in_its_bucket(people: People, world: World):
    world.tier(people.acme, rag=2)
    assert tried(people.ann, 3, requests=60) == [True, True, False]
    assert windows(people.ann, bucket="api", requests=1) == {60: (1, 1, True)}, "the tier leaves this one"
    assert windows(people.bob) == {60: (60, 1, True)}
    world.tier(people.acme, rag=100, api=4)
    assert tried(people.alf, 5, bucket="api", requests=600) == [True] * 4 + [False]
    assert windows(people.alf, requests=1) == {60: (100, 1, True)}, "it may exceed the deployment's"
    assert windows(people.alf, requests=1, window_seconds=3600) == {60: (100, 2, True)}


def test_the_most_generous_of_several_orgs_tiers_counts(people: People, world: World):
    world.tier(people.acme, day=10, rag=20)
    world.tier(people.bolt, day=1000, rag=5)
    assert windows(people.kim) == {60: (20, 1, True), 86400: (1000, 1, True)}
    assert windows(people.ann) == {60: (20, 1, True), 86400: (10, 1, True)}
    assert windows(people.bob) == {60: (5, 1, True), 86400: (1000, 1, True)}
    restricted = people.kim.token(rag={"org": people.acme.id})
    assert windows(people.kim, token=restricted)[86400] == (10, 2, True)


def test_an_org_without_a_limit_counts_as_its_default(people: People, world: World):
    """No day, and the deployment's own rate where that is more: 20 a minute are more than 150 an hour."""
    world.tier(people.acme, day=10, rag=20)
    world.tier(people.bolt)
    assert windows(people.kim, requests=60) == {60: (60, 1, True)}
    assert windows(people.kim, requests=10) == {60: (20, 2, True)}
    assert windows(people.kim, requests=150, window_seconds=3600) == {60: (20, 3, True)}
    assert windows(people.bob, requests=150, window_seconds=3600) == {3600: (150, 1, True)}


# -- keys ---------------------------------------------------------------------------------------------


def key_of(actor: Actor, **claims: Any) -> tuple[str, str]:
    """A key's id, and a token that it would be exchanged for."""
    key_id = str(uuid4())
    return key_id, actor.key_token(key=key_id, **claims)


def test_a_user_s_keys_share_the_user_s_minute_and_day(people: People, world: World):
    world.tier(people.acme, day=7)
    (first, first_token), (second, second_token) = key_of(people.ann), key_of(people.ann)
    assert tried(people.ann, 2, bucket="api", requests=5) == [True] * 2
    assert tried(people.ann, 2, bucket="api", requests=5, token=first_token) == [True] * 2
    assert tried(people.ann, 2, bucket="api", requests=5, token=second_token) == [True, False]
    assert tried(people.ann, 1, bucket="api", requests=5) == [False]
    set_back(world, people.ann, 60)
    assert tried(people.ann, 3, bucket="api", requests=5, token=first_token) == [True, True, False]
    assert counts(world, people.ann) == [("api", 60, 2), ("day", 86400, 7)]
    assert counts(world, first) == counts(world, second) == []


def test_a_key_s_own_limit_counts_for_the_key_and_for_the_user(people: People, world: World):
    world.tier(people.acme, day=9, api=3, rag=3)
    slow, slow_token = key_of(people.ann, requests_per_minute=2)
    fast, fast_token = key_of(people.ann, requests_per_minute=5)
    other, other_token = key_of(people.ann, requests_per_minute=5)
    limits: dict[str, Any] = {"bucket": "api", "requests": 600}
    assert tried(people.ann, 3, **limits, token=slow_token) == [True, True, False]
    # A higher limit is the user's for requests of this key. It is not one more for each key.
    assert tried(people.ann, 3, **limits, token=fast_token) == [True, True, True]
    assert tried(people.ann, 1, **limits, token=fast_token) == [False]
    assert tried(people.ann, 1, **limits, token=other_token) == [False]
    assert tried(people.ann, 1, **limits) == [False]
    own = [("api", 60, 5), ("day", 86400, 5)]
    assert counts(world, people.ann) == own
    assert (counts(world, slow), counts(world, fast)) == ([("api", 60, 2)], [("api", 60, 3)])
    # A request that a later window refuses is counted in no window.
    assert counts(world, other) == [("api", 60, 0)]
    world.sql("update rag.rate_limits set hits = 9 where caller_id = %s and bucket = 'day'", people.ann.id)
    set_back(world, people.ann, 60)
    assert tried(people.ann, 1, **limits, token=fast_token) == [False]
    assert counts(world, people.ann) == [("api", 60, 0), ("day", 86400, 9)]
    assert counts(world, fast) == [("api", 60, 3)]


def test_a_malformed_key_limit_or_one_of_zero_admits_nothing(
    people: People, world: World, subtests: pytest.Subtests
):
    malformed: list[Any] = ["many", [], {}, True, "1e9", 2**40, 0.5]
    for own in (*malformed, 0, -1):
        with subtests.test(own=own):
            key_id, token = key_of(people.ann, requests_per_minute=own)
            answer = people.ann.rpc("rag_check_rate_limit", hit_arguments(bucket="api"), token=token)
            if own in malformed:
                assert answer.status_code == 400, answer.text
            else:
                assert [row["admitted"] for row in answer.json()] == [False]
            assert counts(world, key_id) == []


# -- links --------------------------------------------------------------------------------------------


def test_a_link_counts_by_its_document_and_spends_no_limit_of_its_user(people: People, world: World):
    world.tier(people.acme, day=3)
    document, other = str(uuid4()), str(uuid4())
    token = people.ann.token(rag={"document": document})
    link: dict[str, Any] = {"bucket": f"link {document}", "token": token}
    assert tried(people.ann, 3, requests=2, **link) == [True, True, False]
    set_back(world, people.ann, 60)
    assert tried(people.ann, 2, requests=2, **link) == [True, False]
    own = [(f"day link {document}", 86400, 3), (f"link {document}", 60, 1)]
    assert counts(world, people.ann) == own
    assert tried(people.ann, 1) == [True]
    second = {"bucket": f"link {other}", "token": people.ann.token(rag={"document": other})}
    assert tried(people.ann, 1, **second) == [True]
    assert tried(people.alf, 1, **{**link, "token": people.alf.token(rag={"document": document})}) == [True]


def test_a_link_s_bucket_is_for_its_token_alone(people: People, world: World, subtests: pytest.Subtests):
    document = str(uuid4())
    cases: list[tuple[str, dict[str, Any] | None]] = [
        (f"link {document}", None),
        (f"link {document}", {"document": str(uuid4())}),
        (f"day link {document}", {"document": document}),
        ("rag", {"document": document}),
        ("ingest", {"document": document}),
        ("link any text", {"document": "any text"}),
    ]
    for bucket, claims in cases:
        with subtests.test(bucket=bucket, claims=claims):
            token = people.ann.token(rag=claims) if claims else None
            answer = people.ann.rpc("rag_check_rate_limit", hit_arguments(bucket=bucket), token=token)
            assert answer.status_code == 400, answer.text
            assert counts(world, people.ann) == []


def test_the_worker_removes_ended_windows_of_links_alone(people: People, world: World):
    document = str(uuid4())
    token = people.ann.token(rag={"document": document})
    link: dict[str, Any] = {"bucket": f"link {document}", "token": token}
    world.tier(people.acme, day=3)
    tried(people.ann, 1, **link)
    tried(people.ann, 1)
    before = counts(world, people.ann)
    remove = "select public.rag_remove_old_calls()"
    world.as_role("rag_worker", remove)
    assert counts(world, people.ann) == before
    set_back(world, people.ann, 86_401)
    world.as_role("rag_worker", remove)
    assert counts(world, people.ann) == [("day", 86400, 1), ("rag", 60, 1)]


# -- text ---------------------------------------------------------------------------------------------


def test_ingested_bytes_count_for_the_user_over_all_keys_and_not_as_requests(people: People, world: World):
    world.tier(people.acme, day=2, api=1)
    of_key = key_of(people.ann, requests_per_minute=1)[1]
    text: dict[str, Any] = {"bucket": "ingest", "requests": 4096}
    assert hit(people.ann, "ingest", amount=10_001).json() == []
    assert windows(people.ann, **text, amount=3000) == {60: (4096, 3000, True)}
    assert windows(people.ann, **text, amount=1096, token=of_key) == {60: (4096, 4096, True)}
    assert windows(people.ann, **text, amount=1) == {60: (4096, 4096, False)}
    assert windows(people.alf, **text, amount=1) == {60: (4096, 1, True)}
    assert counts(world, people.ann) == [("ingest", 60, 4096)]
    assert outcomes_of(world, people.ann) == {}
    set_back(world, people.ann, 60)
    assert windows(people.ann, **text, amount=4096) == {60: (4096, 4096, True)}


# -- counters -----------------------------------------------------------------------------------------


def test_requests_are_counted_by_function_and_outcome_for_their_user(people: People, world: World):
    tried(people.ann, 5, requests=3)
    tried(people.ann, 2, function="rag-answer")
    _, token = key_of(people.ann)
    tried(people.ann, 2, function="api-keys", bucket="api", requests=1, token=token)
    windows(people.ann, function="rag-answer", amount=10)
    assert outcomes_of(world, people.ann) == {
        ("rag-search", "admitted"): 3,
        ("rag-search", "limited"): 2,
        ("rag-answer", "admitted"): 3,
        ("api-keys", "admitted"): 1,
        ("api-keys", "limited"): 1,
    }
    assert outcomes_of(world, people.alf) == {}


def test_a_user_has_at_most_64_function_names(people: People, world: World):
    """A direct caller may choose any name, so without a bound they could create any number of rows."""
    for number in range(66):
        assert tried(people.ann, 1, function=f"name-{number}", requests=PLENTY) == [True]
    assert len(outcomes_of(world, people.ann)) == 64
    assert tried(people.ann, 2, function="name-0") == [False, False]
    assert len(outcomes_of(world, people.ann)) == 65
    assert tried(people.bob, 1, function="name-65") == [True]


def test_metrics_name_at_most_64_functions(people: People, world: World):
    """Labels that direct callers choose would otherwise fill the monitoring system."""
    for actor, letter, total in ((people.ann, "f", 5), (people.bob, "g", 1)):
        rows = f"select %s, '{letter}-' || number, 'admitted', %s from generate_series(1, 60) as number"
        world.sql(f"insert into rag.request_counts {rows}", actor.id, total)
    read = "select labels ->> 'function' from public.rag_metrics() where name = 'rag_requests_total'"
    names = {name for (name,) in world.as_user(people.ann, read, sub=None, rag={"metrics": True})}
    assert len(names) == 65
    assert {"other", "f-1", "f-60"} <= names


def test_the_metrics_token_reads_sums_and_changes_nothing(people: People, world: World):
    claims: dict[str, Any] = {"sub": None, "rag": {"metrics": True}}
    read = "select labels ->> 'function', labels ->> 'outcome', value from public.rag_metrics()"

    def total() -> float:
        rows = world.as_user(people.ann, read, **claims)
        return sum(float(value) for *labels, value in rows if labels == ["rag-answer", "admitted"])

    tried(people.ann, 1, function="rag-answer")
    before = total()
    tried(people.ann, 2, function="rag-answer")
    tried(people.bob, 3, function="rag-answer")
    assert total() == before + 5
    for actor in (people.ann, people.ada):
        assert world.as_user(actor, read) == []
    for claim in (False, None, "yes", 1, [True], {"metrics": True}):
        assert world.as_user(people.ann, read, sub=None, rag={"metrics": claim}) == []
    count = "select * from public.rag_check_rate_limit('rag-search', 'rag', 60, 60)"
    assert world.as_user(people.ann, count, **claims) == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(people.ann, "update rag.request_counts set total = total + 1", **claims)
