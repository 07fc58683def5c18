"""What admins are told of their org: within a bound, and whether that was enough."""

import pytest

from shared.pipeline import Pipeline
from tests import graphing
from tests.conftest import People


def test_no_more_rows_are_counted_than_may_be_and_it_is_said(core: Pipeline, people: People):
    graphing.put_all(core, people.ann)
    (whole,) = people.ada.rpc("rag_stats").json()
    (bounded,) = people.ada.rpc("rag_stats", {"most": 2}).json()
    assert (whole["total_documents"], whole["is_complete"]) == (len(graphing.TOLD), True)
    assert (bounded["total_documents"], bounded["total_chunks"], bounded["is_complete"]) == (2, 2, False)


@pytest.mark.parametrize("most", [0, -1, 500_001])
def test_a_bound_that_cannot_be_is_refused(people: People, most: int):
    answer = people.ada.rpc("rag_stats", {"most": most})
    assert (answer.status_code, answer.json()["details"]) == (400, "invalid_most")
