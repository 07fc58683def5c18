"""Chunks that are not in the HNSW index yet: how many there are, and that searches find them."""

import numpy as np
import pytest
from psycopg.errors import InsufficientPrivilege

from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.sql import passages

# Chunks of an org's newest document beside those that it has.
MORE_CHUNKS = """
    insert into rag.chunks (org_id, document_id, collection_id, ordinal, content, span_start, span_end,
      token_count, source_type, embedding_model, embedding, in_hnsw)
    select org_id, document_id, collection_id, number, 'x', 0, 1, 1, source_type, embedding_model, embedding,
      false
    from rag.chunks, generate_series(1000, 999 + %s) as number
    where org_id = %s and ordinal = 0
    limit %s
"""


def outside(world: World, actor: Actor) -> int:
    assert actor.org is not None
    ((count,),) = world.sql("select count(*) from rag.chunks where org_id = %s and not in_hnsw", actor.org.id)
    return int(count)


def fill(world: World, actor: Actor, count: int) -> None:
    """A document of one chunk, and that many further chunks outside of the index."""
    assert actor.org is not None
    passages.put(world, actor, "x")
    world.sql(MORE_CHUNKS, count, actor.org.id, count)


def test_chunks_of_a_small_org_stay_outside_of_the_index(world: World, people: People):
    people.ann.put([vector(number) for number in range(5)])
    assert outside(world, people.ann) == 5
    with passages.deployed_with(world, exact_rows=1_000_000):
        assert world.as_role("rag_worker", "select public.rag_extend_hnsw(100)") == [(0,)]
    assert outside(world, people.ann) == 5


def test_a_full_tail_takes_no_more_chunks(world: World, people: People):
    fill(world, people.ann, 3000)
    passages.put(world, people.ann, "y")
    assert outside(world, people.ann) == 3001


def test_the_worker_shortens_a_long_tail_and_changes_nothing_else(world: World, people: People):
    # Of other tests.
    world.sql("delete from rag.chunks where not in_hnsw")
    # An org with a short tail, which stays as it is.
    passages.put(world, people.bob, "z")
    fill(world, people.ann, 1002)
    terms = "select * from rag.document_terms order by org_id, document_id"
    before = world.sql(terms)
    added = [world.as_role("rag_worker", "select public.rag_extend_hnsw(2)") for _ in range(3)]
    assert added == [[(2,)], [(2,)], [(0,)]]
    assert outside(world, people.ann) == 999
    assert outside(world, people.bob) == 1
    assert world.sql(terms) == before


def test_the_worker_reads_no_chunk_and_takes_none_out_of_the_index(world: World, people: People):
    fill(world, people.ann, 1)
    for statement in ("select content from rag.chunks", "update rag.chunks set in_hnsw = false"):
        with pytest.raises(InsufficientPrivilege):
            world.as_role("rag_worker", statement)


def test_a_match_by_the_index_equals_brute_force_however_long_the_tail(
    world: World, people: People, subtests: pytest.Subtests
):
    vectors = [vector(seed) for seed in range(80)]
    similarity = np.array(vectors) @ np.array(vector(1000))
    expected = [str(number) for number in np.argsort(-similarity)[:10]]
    people.ann.put(vectors)
    for indexed in (0, 40, 80):
        in_index = "update rag.chunks set in_hnsw = ordinal %% 80 < %s where org_id = %s"
        world.sql(in_index, indexed, people.acme.id)
        for filters in ({}, {"source_type": "doc"}):
            with subtests.test(indexed=indexed, filters=filters):
                with passages.deployed_with(world, exact_rows=20):
                    rows = passages.match(world, people.ann, vector(1000), 10, **filters)
                assert [row["content"] for row in rows] == expected
                assert all(row["exact"] == (indexed < 11) for row in rows)
