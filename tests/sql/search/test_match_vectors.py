"""rag_match and the edges of half precision, in which it compares."""

from tests.actors import MODEL, vector
from tests.conftest import People


def test_a_vector_without_a_direction_in_half_precision_is_refused(people: People):
    """Its norm in half precision is zero, infinite or not a number, and so is each distance."""
    people.ann.put([vector(1), vector(2)])
    texts = [f"[{','.join([value] * 1536)}]" for value in ("NaN", "Infinity", "-Infinity")]
    for query_vector in ([1e-8] * 1536, [1e-30] * 1536, [1e6] * 1536, *texts):
        answer = people.ann.rpc("rag_match", {"query_vector": query_vector, "filters": {"model": MODEL}})
        assert answer.status_code == 400, answer.text
        if isinstance(query_vector, list) and query_vector[0] < 1:
            assert answer.json()["details"] == "zero_vector"
