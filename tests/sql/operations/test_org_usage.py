"""Calls by day: counted by rag_check_rate_limit for the caller alone, in one org."""

import psycopg
import pytest

from tests.actors import World, hit_arguments
from tests.conftest import People

COUNTED = "select owner_id::text, total from rag.org_calls where org_id = %s order by total"


def test_a_user_is_counted_for_their_own_calls(people: People, world: World):
    for actor in (people.ann, people.ann, people.bob, people.kim, people.sam):
        assert actor.rpc("rag_check_rate_limit", hit_arguments()).status_code == 200
    assert world.sql(COUNTED, people.acme.id) == [(people.ann.id, 2)]
    assert world.sql(COUNTED, people.bolt.id) == [(people.bob.id, 1)]


def test_calls_cannot_be_counted_for_another_user(people: People, world: World):
    people.ann.rpc("rag_check_rate_limit", hit_arguments())
    insert = "insert into rag.org_calls (org_id, owner_id, day, total) values (%s, %s, current_date, 9)"
    for org, owner in ((people.acme.id, people.alf.id), (people.bolt.id, people.ann.id)):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ann, insert, org, owner)
    update = "update rag.org_calls set total = 9 where owner_id = %s returning total"
    assert world.as_user(people.ada, update, people.ann.id) == []
    assert world.as_user(people.ann, update, people.ann.id) == [(9,)]
