"""Calls by day: counted by rag_check_rate_limit for the caller, listed for admins, kept for 90 days."""

import psycopg
import pytest

from tests.actors import World, hit_arguments
from tests.conftest import People

COUNTED = "select owner_id::text, total from rag.org_calls where org_id = %s order by total"


def called(world: World, people: People, *days_ago: int) -> None:
    for ago in days_ago:
        insert = (
            "insert into rag.org_calls (org_id, owner_id, day, total) "
            "values (%s, %s, (now() at time zone 'UTC')::date - %s, %s)"
        )
        world.sql(insert, people.acme.id, people.ann.id, ago, ago)


def test_calls_are_counted_by_day(people: People, world: World):
    called(world, people, 1, 29, 30)
    people.ann.rpc("rag_check_rate_limit", hit_arguments())
    people.alf.rpc("rag_check_rate_limit", hit_arguments())
    people.bob.rpc("rag_check_rate_limit", hit_arguments())
    usage = people.ada.rpc("rag_list_usage").json()
    assert len(usage) == 30
    assert [row["day"] for row in usage] == sorted(row["day"] for row in usage)
    counted = [(row["calls"], row["users"]) for row in usage]
    assert (counted[0], counted[-2], counted[-1]) == ((29, 1), (1, 1), (2, 2))
    assert set(counted[1:-2]) == {(0, 0)}
    assert sum(row["calls"] for row in people.ada.rpc("rag_list_usage", {"days": 90}).json()) == 62
    for days in (0, 91, None):
        refused = people.ada.rpc("rag_list_usage", {"days": days})
        assert (refused.status_code, refused.json()["details"]) == (400, "invalid_days")


def test_only_the_worker_removes_calls_and_only_old_ones(people: People, world: World):
    called(world, people, 89, 90, 200)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(people.ada, "delete from rag.org_calls")
    assert people.ada.rpc("rag_remove_old_calls").status_code == 403
    assert world.as_role("rag_worker", "delete from rag.org_calls where day is not null returning day") != []
    assert world.as_role("rag_worker", "select public.rag_remove_old_calls()") == [(0,)]
    assert world.sql(COUNTED, people.acme.id) == [(people.ann.id, 89)]
    called(world, people, 90, 200)
    for number in (1, 1, 0):
        assert world.as_role("rag_worker", "select public.rag_remove_old_calls()") == [(number,)]
    assert world.sql(COUNTED, people.acme.id) == [(people.ann.id, 89)]
