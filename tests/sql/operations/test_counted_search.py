"""A search that counts its request: the rows of the search, the limit's state and the tokens, in one call."""

from typing import Any

import httpx
import pytest

from tests.actors import MODEL, Actor, World, hit_arguments, vector
from tests.conftest import People
from tests.sql.operations.test_token_quotas import USAGE, exceeded, limit

EMBEDDING = {"embedding_tokens": 7, "embedding_calls": 1}


def search(actor: Actor, **more: Any) -> httpx.Response:
    arguments = {"query_vector": vector(0), "filters": {"model": MODEL}, **more}
    return actor.rpc("rag_counted_search", hit_arguments(**arguments))


def hits(world: World, actor: Actor) -> list[tuple[Any, ...]]:
    return world.sql("select hits from rag.rate_limits where caller_id = %s and bucket = 'rag'", actor.id)


@pytest.mark.parametrize(
    ("function", "more"),
    [("rag_match", {}), ("rag_search", {"mode": "hybrid", "query_text": "kettle", "expand_context": 1})],
)
def test_the_matches_are_those_of_a_search_and_all_counts_increase(
    people: People, world: World, function: str, more: dict[str, Any]
):
    people.ann.put([vector(0), vector(1)])
    arguments = {"query_vector": vector(0), "filters": {"model": MODEL}, **more}
    rows = people.ann.rpc(function, arguments).json()
    result = search(people.ann, **more, **EMBEDDING).json()
    durations = dict.fromkeys(("vector_ms", "lexical_ms"))
    assert len(rows) == 2
    assert [row | durations for row in result["matches"]] == [row | durations for row in rows]
    assert [(window["admitted"], window["hits"]) for window in result["windows"]] == [(True, 1)]
    assert result["exceeded_quotas"] == []
    assert world.sql(USAGE, people.acme.id) == [("embedding", 7, 1)]
    assert hits(world, people.ann) == [(1,)]


def test_a_refused_request_gets_no_matches(people: People, world: World):
    people.ann.put([vector(0)])
    assert search(people.ann, requests=1).json()["matches"]
    refused = search(people.ann, requests=1, **EMBEDDING).json()
    assert refused["matches"] is None
    assert [window["admitted"] for window in refused["windows"]] == [False]
    # Its embedding is paid for.
    assert world.sql(USAGE, people.acme.id) == [("embedding", 7, 1)]


def test_the_call_that_uses_up_a_quota_gets_its_matches_and_says_so(people: People, world: World):
    people.ann.put([vector(0)])
    limit(world, people.acme, embedding_tokens_per_day=7)
    result = search(people.ann, **EMBEDDING).json()
    assert result["matches"]
    assert [window["exceeded_quotas"] for window in result["windows"]] == [[]]
    assert result["exceeded_quotas"] == exceeded(people.ann) == ["embedding"]


def test_a_search_that_raises_counts_nothing(people: People, world: World):
    response = search(people.ann, mode="none", **EMBEDDING)
    assert (response.status_code, response.json()["details"]) == (400, "invalid_mode")
    assert hits(world, people.ann) == []
    assert world.sql(USAGE, people.acme.id) == []


@pytest.mark.parametrize("calls", [None, -1])
def test_a_wrong_number_of_embeddings_is_refused(people: People, world: World, calls: int | None):
    """Ignored, its tokens would not count."""
    response = search(people.ann, embedding_tokens=7, embedding_calls=calls)
    assert (response.status_code, response.json()["details"]) == (400, "invalid_tokens")
    assert hits(world, people.ann) == []
