"""Statistics of an org for its admins: limited counts, marked as such."""

import pytest

from shared.services import Services
from tests import graph_documents
from tests.conftest import People


def test_counts_are_limited_and_marked_as_such(services: Services, people: People):
    graph_documents.put_all(services, people.ann)
    (whole,) = people.ada.rpc("rag_stats").json()
    people.ada.request("GET", "/v1/collections")
    people.ann.request("GET", "/v1/collections")
    (bounded,) = people.ada.rpc("rag_stats", {"max_rows": 2}).json()
    assert (whole["total_documents"], whole["is_complete"]) == (len(graph_documents.CHUNKS), True)
    assert (bounded["total_documents"], bounded["total_chunks"], bounded["is_complete"]) == (2, 2, False)
    (least,) = people.ada.rpc("rag_stats", {"max_rows": 1}).json()
    one = ("users", "collections", "documents", "chunks", "relationships")
    assert {least[f"total_{name}"] for name in one} == {least["api_calls_today"]} == {1}
    assert least["storage_used_bytes"] < bounded["storage_used_bytes"] < whole["storage_used_bytes"]


def test_an_invalid_limit_is_refused(people: People, subtests: pytest.Subtests):
    for most in [0, -1, 500_001]:
        with subtests.test(most=most):
            answer = people.ada.rpc("rag_stats", {"max_rows": most})
            assert (answer.status_code, answer.json()["details"]) == (400, "invalid_max_rows")
