"""rag_search: each mode's scores, each argument, each typed error."""

from typing import Any

import pytest

from tests.actors import MODEL, World, vector
from tests.conftest import People
from tests.sql import passages

TEXTS = ["pump alpha", "pump pump beta", "gamma", "delta pump valve", "epsilon valve valve"]


def fill(world: World, people: People) -> None:
    """No two are equally near to vector(2), and none is behind it, where all similarities are 0."""
    for number, text in enumerate(TEXTS):
        pairs = zip(vector(2), vector(100 + number), strict=True)
        near = [one * (number + 1) + other * 3 for one, other in pairs]
        passages.put(world, people.ann, text, vectors=[near])


@pytest.fixture(scope="module")
def shelf(world: World, shared_people: People) -> People:
    fill(world, shared_people)
    return shared_people


def by_chunk(rows: list[dict[str, Any]], what: str) -> dict[str, Any]:
    return {row["chunk_id"]: row[what] for row in rows}


def test_semantic_mode_equals_rag_match(world: World, shelf: People):
    rows = passages.search(world, shelf.ann, None, mode="semantic", query_vector=vector(2), top_k=3)
    matched = passages.match(world, shelf.ann, vector(2), top_k=3)
    assert passages.untimed(rows) == passages.untimed(matched)
    assert all(row["score"] == row["similarity"] and row["word_score"] is None for row in rows)


def test_keyword_mode_has_no_similarities(world: World, shelf: People):
    rows = passages.search(world, shelf.ann, "pump")
    assert {row["similarity"] for row in rows} == {None}
    assert {row["exact"] for row in rows} == {None}
    with_vector = passages.search(world, shelf.ann, "pump", query_vector=vector(2))
    assert by_chunk(with_vector, "score") == by_chunk(rows, "score")
    expected = by_chunk(passages.match(world, shelf.ann, vector(2)), "similarity")
    assert by_chunk(with_vector, "similarity") == {one: expected[one] for one in by_chunk(rows, "score")}


def test_hybrid_scores_are_a_mean_of_similarity_and_keyword_score(world: World, shelf: People):
    similarity = by_chunk(passages.match(world, shelf.ann, vector(2)), "similarity")
    words = by_chunk(passages.search(world, shelf.ann, "pump valve"), "score")
    for share in (0.4, 0.0, 1.0):
        with passages.deployed_with(world, similarity_share=share):
            rows = passages.search(world, shelf.ann, "pump valve", mode="hybrid", query_vector=vector(2))
        expected = {one: share * similarity[one] + (1 - share) * words.get(one, 0) for one in similarity}
        assert by_chunk(rows, "score") == pytest.approx(expected, abs=1e-6)
        assert by_chunk(rows, "similarity") == similarity
    assert by_chunk(rows, "word_score") == {one: words.get(one, 0) for one in similarity}


def test_unknown_words_leave_the_semantic_order(world: World, shelf: People):
    rows = passages.search(world, shelf.ann, "unheard", mode="hybrid", query_vector=vector(2))
    matches = passages.match(world, shelf.ann, vector(2))
    assert [row["chunk_id"] for row in rows] == [row["chunk_id"] for row in matches]
    assert rows[0]["score"] == pytest.approx(rows[0]["similarity"])
    assert passages.search(world, shelf.ann, "unheard") == []


def test_hierarchical_mode_finds_chunks_of_the_best_documents_only(world: World, people: People):
    """Five documents at least: those whose best chunks are best."""
    good = [passages.put(world, people.ann, "pump", "other", "more") for _ in range(5)]
    for _ in range(10):
        passages.put(world, people.ann, "nothing", vectors=[[-value for value in passages.written(0)]])

    def search(mode: str, top_k: int) -> list[dict[str, Any]]:
        return passages.search(world, people.ann, "pump", mode=mode, query_vector=vector(0), top_k=top_k)

    results = search("hierarchical", 15)
    assert {row["document_id"] for row in results} == set(good)
    assert len(results) == 15
    hybrid = search("hybrid", 5)
    assert [row["content"] for row in hybrid] == ["pump"] * 5 == [row["content"] for row in results[:5]]
    assert len(search("hierarchical", 25)) == 25


DECAYS = [(-5, 1.0), (10, 0.75), (20, 0.625), (10**5, 0.5)]


def test_a_score_decays_by_half_lives_to_at_least_half(world: World, people: People):
    for days, entries in DECAYS:
        ((date,),) = world.sql("select (now() - make_interval(days => %s))::text", days)
        document_id = passages.put(world, people.ann, "pump", occurred_at=date)
        for mode in ("semantic", "keyword", "hybrid"):
            arguments: dict[str, Any] = {"mode": mode, "query_vector": vector(0)}
            (fresh,) = passages.search(world, people.ann, "pump", **arguments)
            (faded,) = passages.search(world, people.ann, "pump", half_life_days=10, **arguments)
            assert faded["score"] == pytest.approx(fresh["score"] * entries, rel=1e-3), (days, mode)
            assert faded["similarity"] == fresh["similarity"], (days, mode)
        passages.delete(world, people.ann, document_id)


def test_recency_changes_the_order_and_undated_documents_count_as_new(world: World, people: People):
    for date in ("2001-01-01T00:00:00Z", None):
        passages.put(world, people.ann, "pump", occurred_at=date, title=date or "none")
    rows = passages.search(world, people.ann, "pump", half_life_days=5e-324)
    assert [row["title"] for row in rows] == ["none", "2001-01-01T00:00:00Z"]


def test_a_half_life_reorders_more_documents_than_the_page_has(world: World, people: People):
    """The new document is less similar than both old ones, whose scores are halved."""
    old: dict[str, Any] = {"occurred_at": "2001-01-01T00:00:00Z", "title": "old", "vectors": [vector(0)]}
    for _ in range(2):
        passages.put(world, people.ann, "old", **old)
    similar = [3 * one + other for one, other in zip(vector(0), vector(1), strict=True)]
    passages.put(world, people.ann, "new", vectors=[similar], title="new")
    arguments: dict[str, Any] = {"mode": "semantic", "query_vector": vector(0), "top_k": 1}
    for half_life, title in ((None, "old"), (10, "new")):
        rows = passages.search(world, people.ann, half_life_days=half_life, **arguments)
        assert [row["title"] for row in rows] == [title]


@pytest.mark.parametrize("mode", ["hybrid", "hierarchical"])
def test_collections_without_hybrid_search_are_searched_semantically(world: World, people: People, mode: str):
    """All of those that are searched; where one has it, words have their part."""
    fill(world, people)
    ((home,),) = world.sql("select id::text from rag.collections where org_id = %s", people.acme.id)

    def search(**filters: Any) -> list[dict[str, Any]]:
        rows = passages.search(
            world, people.ann, "pump", mode=mode, query_vector=vector(2), filters={"model": MODEL, **filters}
        )
        return passages.untimed(rows)

    by_both = search(collection_id=home)
    for config, meaning in (("{}", False), ('{"enable_hybrid_search": true}', False),
                            ('{"enable_hybrid_search": false}', True)):  # fmt: skip
        world.sql("update rag.collections set config = %s::jsonb where id = %s", config, home)
        rows = search(collection_id=home)
        assert (rows == by_both) is not meaning
        assert all(row["word_score"] is None for row in rows) is meaning
    insertion = "insert into rag.collections (org_id, name) values (%s, 'o') returning id::text"
    ((other,),) = world.sql(insertion, people.acme.id)
    assert search(collection_ids=[home, other]) == by_both
    assert search() == by_both
    # By word, when that is asked for, all the same.
    filters = {"model": MODEL, "collection_id": home}
    assert passages.search(world, people.ann, "pump", mode="keyword", filters=filters)


def test_without_a_vector_the_search_is_by_keyword(world: World, people: People):
    """Also in the default mode, which is hybrid."""
    passages.put(world, people.ann, "zebra", "zebra crossing", "pump")
    arguments = {"query_text": "zebra", "filters": {"model": MODEL}}
    expected = passages.search(world, people.ann, "zebra")
    assert len(expected) == 2
    for mode in ({}, {"mode": "hybrid"}, {"mode": "hierarchical"}, {"mode": "keyword"}):
        answer = people.ann.direct().rpc("rag_search", arguments | mode)
        assert passages.untimed(answer.json()) == passages.untimed(expected), mode
