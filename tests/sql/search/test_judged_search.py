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


def without_durations(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows. Vector search compared more candidates for both lists; a half-life counts from now."""
    none = dict.fromkeys(("vector_ms", "lexical_ms", "considered"))
    return [row | none | {"score": round(row["score"], 5)} for row in rows]


def search(actor: Actor, function: str, **arguments: Any) -> Any:
    given = {"query_text": "copper kettle", "query_vector": vector(3), "filters": {"model": MODEL}}
    answer = actor.rpc(function, {**given, **arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("mode", ["semantic", "hybrid", "hierarchical"])
@pytest.mark.parametrize(
    "options",
    [{"top_k": 3}, {"top_k": 25}, {"top_k": 8, "half_life_days": 30, "prefer": ["faq"], "expand_context": 1}],
)
def test_both_lists_are_those_of_two_searches(shelf: People, mode: str, options: dict[str, Any]):
    judged_top_k = 10 if options["top_k"] < 25 else 50
    both = search(shelf.ann, "rag_judged_search", mode=mode, judged_top_k=judged_top_k, **options)
    alone = search(shelf.ann, "rag_search", mode=mode, **options)
    judged = search(shelf.ann, "rag_search", mode="hybrid", top_k=judged_top_k)
    assert len(both["matches"]) == options["top_k"]
    assert without_durations(both["matches"]) == without_durations(alone)
    assert without_durations(both["judged"]) == without_durations(judged)


def test_collections_without_keywords_are_judged_by_meaning(people: People, world: World):
    people.ann.put([vector(1), vector(2)])
    change = "update rag.collections set config = %s where org_id = %s returning id::text"
    rows = world.sql(change, '{"enable_hybrid_search": false}', people.acme.id)
    filters = {"model": MODEL, "collection_ids": [home for (home,) in rows]}
    both = search(people.ann, "rag_judged_search", filters=filters)
    assert [row["word_score"] for row in both["judged"]] == [None, None]
    assert [row["chunk_id"] for row in both["judged"]] == [row["chunk_id"] for row in both["matches"]]


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"query_vector": None}, "missing_vector"), ({"query_text": ""}, "missing_text"),
    ({"mode": "graph"}, "invalid_mode"), ({"top_k": 0}, "invalid_top_k"),
    ({"prefer": ["x"] * 101}, "invalid_prefer"),
    ({"judged_top_k": 301}, "invalid_top_k"), ({"expand_context": 11}, "invalid_expand_context"),
]  # fmt: skip


def test_invalid_arguments_are_refused(shared_people: People):
    for arguments, code in INVALID:
        given = {"query_text": "kettle", "query_vector": vector(3), **arguments}
        answer = shared_people.ann.rpc("rag_judged_search", given)
        assert (answer.status_code, answer.json()["details"]) == (400, code)
