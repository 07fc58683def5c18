"""expand_context: texts grow by their neighbours, as far as their document, and no text comes twice."""

from typing import Any

import pytest

from tests.actors import World
from tests.conftest import People
from tests.sql import passages

SENTENCES = [f"sentence {number} é." for number in range(12)]
TEXT = "\n".join(SENTENCES)


def chunks(overlap: int) -> list[dict[str, Any]]:
    """One for each sentence, with so many sentences before it."""
    found = passages.passages(SENTENCES)
    for number in reversed(range(len(found))):
        first = found[max(0, number - overlap)]["span_start"]
        found[number] |= {"span_start": first, "content": TEXT[first : found[number]["span_end"]]}
    return found


@pytest.mark.parametrize("overlap", [0, 1, 2])
@pytest.mark.parametrize("neighbours", [0, 1, 2, 10])
@pytest.mark.parametrize("top_k", [1, 3, 12])
def test_texts_are_the_document_s_and_none_comes_twice(
    world: World, people: People, overlap: int, neighbours: int, top_k: int
):
    for _ in range(2):
        passages.put(world, people.ann, TEXT, chunks=chunks(overlap))
    for seed in range(4):
        rows = passages.search(
            world, people.ann, None, mode="semantic", query_vector=passages.written(seed * 3), top_k=top_k,
            expand_context=neighbours,
        )  # fmt: skip
        assert len(rows) == top_k
        taken: set[tuple[str, int]] = set()
        for row in rows:
            assert row["content"] == TEXT[row["span_start"] : row["span_end"]] != ""
            places = {(row["document_id"], place) for place in range(row["span_start"], row["span_end"])}
            # As they are, chunks may overlap.
            assert neighbours == 0 or not places & taken
            taken |= places


@pytest.mark.parametrize(
    ("number", "neighbours", "first", "last"),
    [(0, 1, 0, 1), (5, 1, 4, 6), (5, 3, 2, 8), (11, 10, 1, 11), (5, 10, 0, 11)],
)
def test_one_hit_grows_to_both_sides(
    world: World, people: People, number: int, neighbours: int, first: int, last: int
):
    passages.put(world, people.ann, TEXT, chunks=chunks(0))
    passages.put(world, people.ann, "another")
    vector = passages.written(number)
    (row,) = passages.search(
        world, people.ann, None, mode="semantic", query_vector=vector, top_k=1, expand_context=neighbours,
        filters={"source_type": "doc"},
    )  # fmt: skip
    if number == 0:
        assert row["content"] in ("another", "\n".join(SENTENCES[:2]))
        return
    assert row["content"] == "\n".join(SENTENCES[first : last + 1])


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "hierarchical"])
def test_every_mode_grows_its_texts(world: World, people: People, mode: str):
    passages.put(world, people.ann, *SENTENCES)
    vector = passages.written(5)
    (row,) = passages.search(
        world, people.ann, "5", mode=mode, query_vector=vector, top_k=1, expand_context=1
    )
    assert row["content"] == "\n".join(SENTENCES[4:7])
