"""expand_context: texts grow by their neighbours, as far as their document, and no text comes twice."""

from itertools import product
from typing import Any

import pytest

from tests.actors import World
from tests.conftest import People
from tests.sql import passages

SENTENCES = [f"sentence {number} é." for number in range(12)]
TEXT = "\n".join(SENTENCES)


def chunks(overlap: int) -> list[dict[str, Any]]:
    """One for each sentence, with so many sentences before it."""
    results = passages.passages(SENTENCES)
    for number in reversed(range(len(results))):
        first = results[max(0, number - overlap)]["span_start"]
        results[number]["span_start"] = first
    return results


@pytest.mark.parametrize("overlap", [0, 1, 2])
def test_texts_are_the_document_s_without_duplicates(world: World, people: People, overlap: int):
    for _ in range(2):
        passages.put(world, people.ann, TEXT, chunks=chunks(overlap))
    for top_k, neighbours, number in product((3, 12), (0, 1, 10), (0, 6)):
        rows = passages.search(
            world, people.ann, None, mode="semantic", query_vector=passages.written(number), top_k=top_k,
            expand_context=neighbours,
        )  # fmt: skip
        assert len(rows) == top_k
        taken: set[tuple[str, int]] = set()
        for row in rows:
            assert row["content"] == TEXT[row["span_start"] : row["span_end"]] != ""
            places = {(row["document_id"], place) for place in range(row["span_start"], row["span_end"])}
            # As they are, chunks may overlap.
            assert neighbours == 0 or not places & taken, (top_k, neighbours, number)
            taken |= places


NEIGHBOURHOODS = [(0, 1, 0, 1), (5, 1, 4, 6), (5, 3, 2, 8), (11, 10, 1, 11), (5, 10, 0, 11)]


def test_one_match_is_extended_on_both_sides(world: World, people: People):
    passages.put(world, people.ann, TEXT, chunks=chunks(0))
    passages.put(world, people.ann, "another")
    for number, neighbours, first, last in NEIGHBOURHOODS:
        (row,) = passages.search(
            world, people.ann, None, mode="semantic", query_vector=passages.written(number), top_k=1,
            expand_context=neighbours, filters={"source_type": "doc"},
        )  # fmt: skip
        grown = "\n".join(SENTENCES[first : last + 1])
        # The other document is as near to the first vector.
        assert row["content"] == grown or (number == 0 and row["content"] == "another"), (number, neighbours)


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "hierarchical"])
def test_every_mode_extends_its_texts(world: World, people: People, mode: str):
    passages.put(world, people.ann, *SENTENCES)
    vector = passages.written(5)
    (row,) = passages.search(
        world, people.ann, "5", mode=mode, query_vector=vector, top_k=1, expand_context=1
    )
    assert row["content"] == "\n".join(SENTENCES[4:7])
