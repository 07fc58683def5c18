"""A search with the matches by which confidence is judged: both lists are those of two searches."""

from typing import Any

import pytest

from tests.actors import MODEL, Actor, World, vector
from tests.conftest import People
from tests.sql import passages

WORDS = ("kettle", "copper", "boils", "litres", "lid", "handle", "spout", "steam")


@pytest.fixture(scope="module")
def shelf(world: World, shared_people: People) -> People:
    """Sixty chunks in six documents, whose words and vectors order them differently."""
    for number in range(6):
        vectors = [vector(10 * number + place) for place in range(10)]
        texts = [f"{WORDS[(number * place) % 8]} {WORDS[place % 5]} {number}" for place in range(10)]
        passages.put(world, shared_people.ann, *texts, vectors=vectors)
    return shared_people


def without_durations(rows: list[dict[str, Any]], mode: str = "hybrid") -> list[dict[str, Any]]:
    """The rows. Vector search compared more candidates for both lists, and also beside a search by keywords;
    a half-life counts from now."""
    none = dict.fromkeys(("vector_ms", "lexical_ms", "considered", *(["exact"] if mode == "keyword" else [])))
    return [row | none | {"score": round(row["score"], 5)} for row in rows]


def search(actor: Actor, function: str, **arguments: Any) -> Any:
    given = {"query_text": "copper kettle", "query_vector": vector(3), "filters": {"model": MODEL}}
    answer = actor.rpc(function, {**given, **arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()


OF_PAGE: dict[str, Any] = {"top_k": 8, "half_life_days": 30, "prefer": ["faq"], "expand_context": 1}


@pytest.mark.parametrize(
    ("mode", "options"),
    [(mode, OF_PAGE) for mode in ("semantic", "keyword", "hybrid", "hierarchical")]
    + [("keyword", {"top_k": 25}), ("hybrid", {"top_k": 25})],
)
def test_both_lists_are_those_of_two_searches(shelf: People, mode: str, options: dict[str, Any]):
    judged_top_k = 10 if options["top_k"] < 25 else 50
    both = search(shelf.ann, "rag_judged_search", mode=mode, judged_top_k=judged_top_k, **options)
    # A search by keywords alone has no vector: that of the judged matches changes no score.
    own = {"query_vector": None} if mode == "keyword" else {}
    alone = search(shelf.ann, "rag_search", mode=mode, **options, **own)
    judged = search(shelf.ann, "rag_search", mode="hybrid", top_k=judged_top_k)
    assert len(both["matches"]) == options["top_k"]
    assert without_durations(both["matches"], mode) == without_durations(alone, mode)
    assert without_durations(both["judged"]) == without_durations(judged)


@pytest.mark.parametrize("function", ["rag_judged_search", "rag_graph_search"])
@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
def test_each_list_has_the_durations_of_its_own_legs(shelf: People, mode: str, function: str):
    # Two durations may be equal once, but not five times.
    for _ in range(5):
        both = search(shelf.ann, function, mode=mode, judged_top_k=10)
        match, judged = both["matches"][0], both["judged"][0]
        legs = (match["vector_ms"] is not None, match["lexical_ms"] is not None)
        assert legs == (mode != "keyword", mode != "semantic")
        assert None not in (judged["vector_ms"], judged["lexical_ms"])
        if match["lexical_ms"] != judged["lexical_ms"]:
            return
    pytest.fail("Both lists have the same duration.")


@pytest.mark.parametrize("mode", ["graph", "keyword", "hierarchical"])
def test_a_search_in_the_graph_returns_both_lists(shelf: People, mode: str):
    own = {"query_vector": None} if mode == "keyword" else {}
    alone = search(shelf.ann, "rag_graph_search", mode=mode, top_k=5, **own)
    both = search(shelf.ann, "rag_graph_search", mode=mode, top_k=5, judged_top_k=10)
    judged = search(shelf.ann, "rag_search", mode="hybrid")
    assert without_durations(both.pop("judged")) == without_durations(judged)
    assert without_durations(both.pop("matches"), mode) == without_durations(alone.pop("matches"), mode)
    assert {**both, "graph_ms": None} == {**alone, "graph_ms": None}


@pytest.mark.parametrize("function", ["rag_judged_search", "rag_graph_search"])
def test_the_judged_matches_may_have_a_text_of_their_own(shelf: People, function: str):
    own = search(shelf.ann, function, judged_text="spout handle", judged_top_k=10)["judged"]
    judged = search(shelf.ann, "rag_search", query_text="spout handle", mode="hybrid")
    assert without_durations(own) == without_durations(judged)
    assert own != search(shelf.ann, function, judged_top_k=10)["judged"]


def test_collections_without_keywords_are_judged_by_meaning(people: People, world: World):
    people.ann.put([vector(1), vector(2)])
    change = "update rag.collections set config = %s where org_id = %s returning id::text"
    rows = world.sql(change, '{"enable_hybrid_search": false}', people.acme.id)
    filters = {"model": MODEL, "collection_ids": [home for (home,) in rows]}
    both = search(people.ann, "rag_judged_search", filters=filters)
    assert [row["word_score"] for row in both["judged"]] == [None, None]
    assert [row["chunk_id"] for row in both["judged"]] == [row["chunk_id"] for row in both["matches"]]
