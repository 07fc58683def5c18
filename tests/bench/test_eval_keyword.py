"""The goals of keyword search beside BM25."""

import pytest

from bench import eval_keyword
from bench.eval_quality import BASELINE, KEYWORD


@pytest.mark.parametrize(
    ("keyword", "difference", "holds"),
    [
        (49.5, "-0.5 [-2.0, +0.3]", True),
        (49.5, "-0.5 [-0.9, -0.1]", False),  # the interval does not reach 0
        (48.5, "-1.5 [-4.0, +0.3]", False),  # the mean is below -1
    ],
)
def test_a_difference_has_two_goals(keyword: float, difference: str, holds: bool):
    assert eval_keyword.holds({BASELINE: 50.0, KEYWORD: keyword, "difference": difference}) is holds
