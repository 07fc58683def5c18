"""Preferred source types, in every mode of search."""

from typing import Any

import pytest

from tests.actors import World, vector
from tests.conftest import People
from tests.sql import passages

MODES = ["semantic", "keyword", "hybrid", "hierarchical"]


def search(world: World, people: People, mode: str, **arguments: Any) -> list[passages.Row]:
    """Ann looks for pumps near vector(1)."""
    return passages.search(world, people.ann, "pump", mode=mode, query_vector=vector(1), **arguments)


def test_a_preferred_type_keeps_its_score_and_others_keep_85_percent(world: World, people: People):
    for source_type in ("doc", "issue", "email"):
        passages.put(world, people.ann, "pump", vectors=[vector(1)], source_type=source_type)
    for mode in MODES:
        plain = {row["source_type"]: row["score"] for row in search(world, people, mode)}
        expected = {name: score if name == "issue" else 0.85 * score for name, score in plain.items()}
        rows = search(world, people, mode, prefer=["issue", "call"])
        assert rows[0]["source_type"] == "issue", mode
        assert {row["source_type"]: row["score"] for row in rows} == pytest.approx(expected), mode


def test_a_preferred_type_can_enter_the_page(world: World, people: People):
    for number in range(5):
        near = [one + 0.01 * number * other for one, other in zip(vector(1), vector(2), strict=True)]
        source_type = "issue" if number == 4 else "doc"
        passages.put(world, people.ann, "pump", vectors=[near], source_type=source_type)
    for mode in MODES:
        (first,) = search(world, people, mode, top_k=1, prefer=["issue"])
        assert first["source_type"] == "issue", mode
        assert len(search(world, people, mode, top_k=3, prefer=["issue"])) == 3, mode


def test_an_absent_preferred_type_changes_no_order(world: World, people: People):
    for number in range(5):
        passages.put(world, people.ann, "pump", vectors=[vector(number)])
    ids = [row["chunk_id"] for row in search(world, people, "hybrid")]
    preferred: list[list[str | None] | None] = [None, [], ["nothing"], [None]]
    for prefer in preferred:
        assert [row["chunk_id"] for row in search(world, people, "hybrid", prefer=prefer)] == ids, prefer
