"""Vectors remembered for their user alone: recalled as they are compared, bounded, expiring."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import httpx
import psycopg
import pytest

from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.sql.sql_as_user import become

BOUND = 64
HOUR = 3600


def hash_of(number: object) -> str:
    return sha256(str(number).encode()).hexdigest()


def remember(actor: Actor, number: object, embedding: Sequence[float] | None = None, **more: Any) -> None:
    answer = remembering(actor, hash=hash_of(number), embedding=embedding or vector(1), **more)
    assert (answer.status_code, answer.text) == (204, "")


def remembering(actor: Actor, **more: Any) -> httpx.Response:
    arguments = {"hash": hash_of(0), "embedding": vector(1), "max_age_seconds": HOUR, **more}
    return actor.rpc("rag_put_query_embedding", arguments)


def recall(actor: Actor, number: object, seconds: Any = HOUR) -> list[float] | None:
    answer = actor.rpc("rag_get_query_embedding", {"hash": hash_of(number), "max_age_seconds": seconds})
    assert answer.status_code == 200, answer.text
    results: list[float] | None = answer.json()
    return results


def remembered(world: World, actor: Actor) -> list[str]:
    """The hashes that are there for this user, oldest first."""
    order = "order by created_at"
    rows = world.sql(f"select hash from rag.query_embeddings where user_id = %s {order}", actor.id)
    return [entry for (entry,) in rows]


def grow_older(world: World, actor: Actor, seconds: float) -> None:
    change = "update rag.query_embeddings set created_at = created_at - make_interval(secs => %s)"
    world.sql(f"{change} where user_id = %s", seconds, actor.id)


def fill(world: World, actor: Actor, count: int) -> None:
    """So many rows, each a second younger than the one before."""
    world.sql(
        "insert into rag.query_embeddings select %s, encode(sha256(number::text::bytea), 'hex'), "
        "%s::extensions.vector, now() - make_interval(secs => %s - number) "
        "from generate_series(1, %s) as number",
        actor.id, str(vector(1)), count + 1, count,
    )  # fmt: skip


def test_a_vector_is_returned_in_half_precision(people: People, world: World):
    arguments = vector(7)
    remember(people.ann, 1, arguments)
    results = recall(people.ann, 1)
    assert results == pytest.approx(arguments, rel=1e-3, abs=1e-4)
    half = "%s::extensions.vector::extensions.halfvec::text"
    assert world.sql(f"select {half} = {half}", str(arguments), str(results)) == [(True,)]


def test_a_second_write_replaces_the_vector_and_its_age(people: People, world: World):
    remember(people.ann, 1, vector(1))
    grow_older(world, people.ann, HOUR - 5)
    remember(people.ann, 1, vector(2))
    assert remembered(world, people.ann) == [hash_of(1)]
    grow_older(world, people.ann, HOUR - 5)
    assert recall(people.ann, 1) == pytest.approx(vector(2), rel=1e-3, abs=1e-4)


def test_a_vector_is_returned_until_it_expires(people: People, world: World):
    remember(people.ann, 1)
    assert recall(people.ann, "new") is None
    assert [recall(people.ann, 1, seconds) for seconds in (0, -1, -(2**31), None)] == [None] * 4
    assert recall(people.ann, 1, 60)
    grow_older(world, people.ann, 60)
    assert recall(people.ann, 1, 60) is None
    assert recall(people.ann, 1, 120), "who asks says how old"


def test_a_write_deletes_only_the_caller_s_expired_rows(people: People, world: World):
    for actor in (people.ann, people.alf):
        remember(actor, "old")
        grow_older(world, actor, HOUR)
    remember(people.ann, "new")
    assert remembered(world, people.ann) == [hash_of("new")]
    assert remembered(world, people.alf) == [hash_of("old")]


def test_the_oldest_of_more_than_64_rows_is_deleted(people: People, world: World):
    """Of that user: neither another user's nor, with a known hash, any."""
    remember(people.alf, "his")
    fill(world, people.ann, BOUND)
    remember(people.ann, "one more")
    hashes = [*(hash_of(number) for number in range(2, BOUND + 1)), hash_of("one more")]
    assert remembered(world, people.ann) == hashes
    remember(people.ann, 2)
    assert remembered(world, people.ann) == hashes[1:] + hashes[:1]
    assert remembered(world, people.alf) == [hash_of("his")]


FAULTS: dict[str, list[dict[str, Any]]] = {
    "invalid_hash": [
        {"hash": None}, {"hash": ""}, {"hash": "g" * 64}, {"hash": "A" * 64}, {"hash": "0" * 63},
        {"hash": "0" * 65}, {"hash": "0" * 64 + "\n"},
    ],
    "wrong_dimensions": [{"embedding": None}, {"embedding": [1.0]}, {"embedding": [1.0] * 3073}],
    "zero_vector": [{"embedding": [0.0] * 1536}, {"embedding": [1e-12] * 1536}],
    "invalid_max_age": [{"max_age_seconds": seconds} for seconds in (None, 0, -1, 86_401)],
    "": [
        {"embedding": "[NaN]"}, {"embedding": "[Infinity]"}, {"embedding": [1e6] * 1536},
        {"embedding": [1e39] * 1536}, {"embedding": "word"}, {"embedding": {}}, {"embedding": []},
    ],
}  # fmt: skip


def test_invalid_values_are_not_stored(people: People, world: World, subtests: pytest.Subtests):
    """Some are no vectors at all, and have no code of their own."""
    for code, faults in FAULTS.items():
        for fault in faults:
            with subtests.test(fault=str(fault)[:60]):
                answer = remembering(people.ann, **fault)
                assert answer.status_code == 400, answer.text
                assert not code or answer.json()["details"] == code
                assert remembered(world, people.ann) == []


def test_a_malformed_hash_returns_nothing(people: People):
    for malformed in ("", "x", None, "0" * 1000):
        arguments = {"hash": malformed, "max_age_seconds": HOUR}
        assert people.ann.rpc("rag_get_query_embedding", arguments).json() is None


def test_concurrent_writes_neither_deadlock_nor_exceed_the_limit(people: People, world: World):
    """The same hashes in opposite orders and new ones, at a full cache: each deletes what others write."""
    fill(world, people.ann, BOUND)
    numbers = [*range(1, 60), *range(60, 0, -1), *(f"new {number}" for number in range(80))]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: remember(people.ann, number), numbers))
    assert len(remembered(world, people.ann)) == BOUND


def test_a_call_waits_only_for_calls_of_its_own_user(people: People, world: World):
    call = "select public.rag_put_query_embedding(%s, %s, 3600)"
    address = people.ann.stack.database_url()
    with psycopg.connect(address) as first, psycopg.connect(address) as second:
        become(first, people.ann)
        first.execute(call, [hash_of(1), str(vector(1))])
        remember(people.alf, 1)
        become(second, people.ann)
        second.execute("set local statement_timeout = 100")
        with pytest.raises(psycopg.errors.QueryCanceled):
            second.execute(call, [hash_of(2), str(vector(1))])
        second.rollback()
    assert remembered(world, people.ann) == remembered(world, people.alf) == [hash_of(1)]


def test_a_read_does_not_wait_for_a_write(people: People, world: World):
    remember(people.ann, 1, vector(1))
    with psycopg.connect(people.ann.stack.database_url()) as writing:
        become(writing, people.ann)
        writing.execute("select public.rag_put_query_embedding(%s, %s, 3600)", [hash_of(1), str(vector(2))])
        assert recall(people.ann, 1) == pytest.approx(vector(1), rel=1e-3, abs=1e-4)
    assert recall(people.ann, 1) == pytest.approx(vector(2), rel=1e-3, abs=1e-4)


def test_the_row_is_found_by_its_primary_key(people: People, world: World):
    fill(world, people.ann, BOUND)
    for _ in range(20):
        fill(world, world.user(), BOUND)
    world.sql("analyze rag.query_embeddings")
    query = "select embedding from rag.query_embeddings where user_id = (select auth.uid()) and hash = %s"
    plan = world.as_user(people.ann, f"explain (costs off) {query}", hash_of(1))
    assert "Index Cond: ((user_id = " in "\n".join(line for (line,) in plan)
