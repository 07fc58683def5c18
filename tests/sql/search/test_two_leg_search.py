"""The vector and the keyword leg of a search: how long each takes."""

from tests.actors import World, vector
from tests.conftest import People
from tests.sql import passages

MODES = ("semantic", "keyword", "hybrid", "hierarchical")


def test_each_used_leg_reports_its_duration(world: World, people: People):
    passages.put(world, people.ann, "pump", vectors=[vector(1)])
    timed = {}
    for mode in MODES:
        (row,) = passages.search(world, people.ann, "pump", mode=mode, query_vector=vector(1))
        timed[mode] = (row["vector_ms"], row["lexical_ms"])
        assert all(0 < taken < 8000 for taken in timed[mode] if taken is not None)
    (matched,) = passages.match(world, people.ann, vector(1))
    assert matched["vector_ms"] > 0
    assert matched["lexical_ms"] is timed["semantic"][1] is None
    assert timed["keyword"][0] is None
    assert None not in timed["hybrid"] + timed["hierarchical"]
