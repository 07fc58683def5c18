"""rag_match and the edges of half precision, in which it compares."""

import pytest

from tests.actors import MODEL, vector
from tests.conftest import People


@pytest.mark.parametrize("size", [1e-8, 1e-30])
def test_a_vector_that_is_zero_in_half_precision_is_refused(people: People, size: float):
    """It has a norm as it comes and none as it is compared: its distance to everything is not a number."""
    people.ann.put([vector(1), vector(2)])
    answer = people.ann.rpc("rag_match", {"query_vector": [size] * 1536, "filters": {"model": MODEL}})
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"] == "zero_vector"


def test_the_length_of_the_query_vector_does_not_matter(people: People, subtests: pytest.Subtests):
    """A cosine has no length: the same ranks, and the same similarities up to half precision."""
    people.ann.put([vector(seed) for seed in range(20)])
    expected = people.ann.match(vector(100))
    for scale in (1e-4, 1e-2, 1.0, 1e2, 1e4):
        with subtests.test(scale=scale):
            rows = people.ann.match([value * scale for value in vector(100)])
            assert [row["similarity"] for row in rows] == pytest.approx(
                [row["similarity"] for row in expected], abs=2e-3
            )
            assert rows[0]["chunk_id"] == expected[0]["chunk_id"]


def test_a_vector_beyond_half_precision_is_refused(people: People):
    people.ann.put([vector(1)])
    answer = people.ann.rpc("rag_match", {"query_vector": [1e6] * 1536, "filters": {"model": MODEL}})
    assert answer.status_code == 400


def test_a_vector_with_nan_is_refused(people: People, subtests: pytest.Subtests):
    for value in ["NaN", "Infinity", "-Infinity"]:
        with subtests.test(value=value):
            answer = people.ann.rpc("rag_match", {"query_vector": f"[{','.join([value] * 1536)}]"})
            assert answer.status_code == 400
