"""What rankings are worth, by hand."""

import math

import pytest

from bench.ranking import by_best_chunk, difference, measures


def test_a_document_has_the_rank_of_its_best_chunk():
    assert by_best_chunk(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]


def test_a_perfect_ranking_scores_one_in_every_measure():
    scores = measures(["a", "b", "c"], {"a": 2, "b": 1})
    assert set(scores.values()) == {1.0}


def test_gains_are_exponential_and_discounted_by_the_logarithm_of_the_rank():
    scores = measures(["x", "b", "a"], {"a": 2, "b": 1})
    gained = 1 / math.log2(3) + 3 / math.log2(4)
    assert scores["nDCG@10"] == pytest.approx(gained / (3 + 1 / math.log2(3)))
    assert scores["MRR@10"] == 0.5


def test_results_after_the_tenth_count_nothing():
    ranking = [f"x{number}" for number in range(10)] + ["a"]
    assert set(measures(ranking, {"a": 1}).values()) == {0.0}


def test_recall_counts_relevant_documents_and_all_needs_every_one():
    scores = measures(["a", "x", "x2", "x3", "x4", "b"], {"a": 1, "b": 1, "c": 1})
    assert (scores["Recall@5"], scores["Recall@8"], scores["Recall@10"]) == (1 / 3, 2 / 3, 2 / 3)
    assert scores["All@8"] == scores["All@10"] == 0
    assert measures(["a", "x", "x2", "x3", "x4", "b"], {"a": 1, "b": 1})["All@8"] == 1


def test_a_difference_in_every_question_has_a_zero_width_interval():
    theirs = {str(number): float(number) for number in range(50)}
    results = difference({name: value + 2 for name, value in theirs.items()}, theirs)
    assert (results.mean, results.low, results.high) == (2, 2, 2)


def test_a_paired_difference_has_an_interval_around_the_mean():
    theirs = {str(number): float(number % 7) for number in range(200)}
    results = difference({name: value + (int(name) % 3 - 1) for name, value in theirs.items()}, theirs)
    assert results.low < results.mean < results.high
    assert results.low < 0 < results.high
    # One question in three is a point better, one worse: the mean of 200 strays by about 0.06.
    assert results.high - results.low == pytest.approx(4 * math.sqrt(2 / 3 / 200), rel=0.1)
