"""rag_match by the HNSW index: a small tenant beside a large one, and a stable order."""

import pytest

from tests.actors import World, vector
from tests.conftest import People
from tests.sql import passages


@pytest.fixture
def small_exact_limit(world: World):
    """Make the HNSW route reachable with few rows."""
    with passages.deployed_with(world, exact_rows=20):
        yield


def test_a_small_tenant_gets_every_row_beside_a_large_one(people: People, world: World, small_exact_limit):
    """The textbook recipe returns 1 row of 10 here: the index hands out the large tenant's rows first."""
    people.bob.put([vector(seed) for seed in range(300)])
    needle = vector(5000)
    far = [[-value for value in needle[:384]] + needle[384:] for _ in range(3)]
    people.ann.put([*far, vector(1), vector(2)])
    world.sql("update rag.settings set exact_rows = 0")
    assert len(people.ann.match(needle, top_k=10)) == 5
    assert len(people.bob.match(needle, top_k=10)) == 10


@pytest.mark.usefixtures("small_exact_limit")
def test_the_index_scan_prefers_the_lowest_ids_among_equal_similarities(world: World, people: People):
    people.ann.put([vector(7)] * 30)
    passages.add_to_index(world)
    every = [row["chunk_id"] for row in people.ann.match(vector(7), top_k=30)]
    for top_k in (1, 10):
        results = [row["chunk_id"] for row in people.ann.match(vector(7), top_k=top_k)]
        assert results == sorted(every)[:top_k]


def test_an_org_of_three_billion_chunks_is_searched(world: World, people: People):
    people.ann.put([vector(1), vector(2)])
    world.sql(
        "insert into rag.term_segments (org_id, collection_id, segment, config, embedding_model, documents, "
        "chunks, length) "
        "select org_id, collection_id, gen_random_uuid(), config, embedding_model, 1, 3000000000, 1 "
        "from rag.document_terms where org_id = %s",
        people.acme.id,
    )
    assert len(people.ann.match(vector(1))) == 2
