"""Requests counted in Postgres: every call once, each user's their own, and never backwards."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.actors import Actor, World, hit_arguments
from tests.conftest import People

PLENTY = 1_000_000


def hit(actor: Actor, bucket: Any = "rag", window_seconds: Any = 60, **more: Any) -> httpx.Response:
    """Under a limit that nobody reaches, unless `requests` says so."""
    arguments = {"bucket": bucket, "window_seconds": window_seconds, "requests": PLENTY, **more}
    return actor.rpc("rag_hit", hit_arguments(**arguments))


def spent(actor: Actor, bucket: str = "rag", window_seconds: int = 60, **more: Any) -> int:
    """What the count stands at after this hit."""
    answer = hit(actor, bucket, window_seconds, **more)
    assert answer.status_code == 200, answer.text
    (row,) = answer.json()
    return int(row["hits"])


def counts(world: World, actor: Actor) -> list[tuple[Any, ...]]:
    return world.sql(
        "select bucket, window_seconds, hits from rag.rate_limits where caller_id = %s order by 1, 2",
        actor.id,
    )


def set_back(world: World, actor: Actor, seconds: float) -> None:
    """Let the user's windows have begun earlier."""
    world.sql(
        "update rag.rate_limits set started_at = started_at - make_interval(secs => %s) where caller_id = %s",
        seconds,
        actor.id,
    )


def test_every_call_counts_once(people: People, world: World):
    assert [spent(people.ann) for _ in range(4)] == [1, 2, 3, 4]
    assert counts(world, people.ann) == [("rag", 60, 4)]


def test_a_call_may_count_for_several(people: People):
    assert [spent(people.ann, amount=amount) for amount in (1, 10, 1000, 1)] == [1, 11, 1011, 1012]


@pytest.mark.parametrize("window_seconds", [1, 60, 3600, 86400])
def test_a_window_ends_its_length_after_the_first_call(people: People, world: World, window_seconds: int):
    (first,) = hit(people.ann, window_seconds=window_seconds).json()
    (second,) = hit(people.ann, window_seconds=window_seconds).json()
    ((now,),) = world.sql("select clock_timestamp()")
    resets_at = datetime.fromisoformat(first["resets_at"])
    assert timedelta(0) < resets_at - now + timedelta(seconds=5) < timedelta(seconds=window_seconds + 5)
    if window_seconds > 1:
        assert first["resets_at"] == second["resets_at"]


def test_windows_and_buckets_count_apart(people: People, world: World):
    spent(people.ann, "rag", 60)
    spent(people.ann, "rag", 86400)
    spent(people.ann, "api", 60)
    spent(people.ann, "rag", 60)
    assert counts(world, people.ann) == [("api", 60, 1), ("rag", 60, 2), ("rag", 86400, 1)]


def test_users_spend_only_their_own(people: People, world: World):
    """Members of one org and of none alike."""
    for _ in range(3):
        spent(people.ann)
    assert [spent(actor) for actor in (people.alf, people.bob, people.sam)] == [1, 1, 1]
    assert counts(world, people.ann) == [("rag", 60, 3)]


@pytest.mark.parametrize("name", ["user_id", "caller_id", "key", "started_at", "hits"])
def test_nobody_names_another_to_spend_from(people: People, world: World, name: str):
    """The function takes no such argument; PostgREST does not find one that does."""
    spent(people.bob)
    assert hit(people.ann, **{name: people.bob.id}).status_code == 404
    assert counts(world, people.bob) == [("rag", 60, 1)]


def test_a_token_narrowed_to_an_org_spends_from_the_same_budget(people: People):
    arguments = hit_arguments()
    for number, org in enumerate((people.acme, people.bolt), start=1):
        answer = people.kim.rpc("rag_hit", arguments, token=people.kim.token(rag={"org": org.id}))
        assert answer.json()[0]["hits"] == number


@pytest.mark.parametrize("amount", [0, -1, -3, -1000, -(2**31), 1001, 2**31 - 1, None])
def test_an_amount_out_of_range_counts_nothing_and_never_lowers_a_count(
    people: People, world: World, amount: int | None
):
    for _ in range(3):
        spent(people.ann)
    answer = hit(people.ann, amount=amount)
    assert (answer.status_code, answer.json()) == (200, [])
    assert counts(world, people.ann) == [("rag", 60, 3)]


@pytest.mark.parametrize("amount", [2**31, -(2**31) - 1, 0.5, "many", [1]])
def test_an_amount_that_is_no_integer_is_refused(people: People, world: World, amount: Any):
    spent(people.ann)
    assert hit(people.ann, amount=amount).status_code == 400
    assert counts(world, people.ann) == [("rag", 60, 1)]


@pytest.mark.parametrize("bucket", ["", "Rag", "rag ", "other", "rag'; --", None])
def test_an_unknown_bucket_is_refused(people: People, world: World, bucket: str | None):
    assert hit(people.ann, bucket=bucket).status_code == 400
    assert counts(world, people.ann) == []


@pytest.mark.parametrize("window_seconds", [0, -60, 2, 59, 61, 604800, 2**31 - 1, None])
def test_an_unknown_window_is_refused(people: People, world: World, window_seconds: int | None):
    assert hit(people.ann, window_seconds=window_seconds).status_code == 400
    assert counts(world, people.ann) == []


@pytest.mark.parametrize("window_seconds", [1, 60, 3600, 86400])
def test_a_window_that_has_run_out_starts_again(people: People, world: World, window_seconds: int):
    before = datetime.now(UTC)
    spent(people.ann, window_seconds=window_seconds, amount=1000)
    set_back(world, people.ann, window_seconds)
    (row,) = hit(people.ann, window_seconds=window_seconds).json()
    assert row["hits"] == 1
    assert datetime.fromisoformat(row["resets_at"]) > before + timedelta(seconds=window_seconds)


def test_a_window_that_has_not_quite_run_out_goes_on(people: People, world: World):
    assert spent(people.ann) == 1
    set_back(world, people.ann, 30)
    assert spent(people.ann) == 2
    set_back(world, people.ann, 31)
    assert spent(people.ann) == 1


def test_a_restart_of_one_window_leaves_the_others(people: People, world: World):
    spent(people.ann, window_seconds=60, amount=5)
    spent(people.ann, window_seconds=3600, amount=5)
    set_back(world, people.ann, 60)
    assert spent(people.ann, window_seconds=60) == 1
    assert spent(people.ann, window_seconds=3600) == 6


def test_sixteen_threads_of_ten_calls_count_exactly_160(people: People, world: World):
    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(lambda _: spent(people.ann), range(160)))
    # No count was handed out twice, none was lost.
    assert sorted(seen) == list(range(1, 161))
    assert counts(world, people.ann) == [("rag", 60, 160)]


def test_calls_that_meet_at_the_end_of_a_window_start_one_new_window(people: People, world: World):
    spent(people.ann, amount=500)
    set_back(world, people.ann, 60)
    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(lambda _: spent(people.ann), range(48)))
    assert sorted(seen) == list(range(1, 49))


def test_calls_of_several_users_at_once_count_apart(people: People):
    actors = [people.ann, people.alf, people.bob, people.sam] * 10
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(spent, actors))
    assert [spent(actor) for actor in (people.ann, people.alf, people.bob, people.sam)] == [11] * 4


def test_anon_counts_nothing(people: People, world: World):
    """With the project's key alone, as a bearer or not at all."""
    stack = people.ann.stack
    before = world.sql("select count(*), sum(hits) from rag.rate_limits")
    for headers in ({}, {"Authorization": f"Bearer {stack.anon_key}"}):
        answer = httpx.post(
            f"{stack.url}/rest/v1/rpc/rag_hit",
            json=hit_arguments(),
            headers={"apikey": stack.anon_key, **headers},
        )
        assert answer.status_code == 401
    assert world.sql("select count(*), sum(hits) from rag.rate_limits") == before


def test_a_token_without_a_user_counts_nothing(people: People, world: World):
    before = world.sql("select count(*) from rag.rate_limits")
    answer = people.ann.rpc("rag_hit", hit_arguments(), token=people.ann.token(sub=None))
    assert (answer.status_code, answer.json()) == (200, [])
    assert world.sql("select count(*) from rag.rate_limits") == before


def test_users_see_no_count_but_their_own_even_in_sql(people: People, world: World):
    spent(people.ann, amount=7)
    spent(people.bob)
    assert world.as_user(people.bob, "select caller_id::text, hits from rag.rate_limits") == [
        (people.bob.id, 1)
    ]
    ann = "where caller_id = %s returning 1"
    assert world.as_user(people.bob, f"update rag.rate_limits set hits = 1 {ann}", people.ann.id) == []
    assert counts(world, people.ann) == [("rag", 60, 7)]
