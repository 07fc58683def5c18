"""Confidence by thresholds, on literal similarities."""

import json

import pytest

from local import ROOT
from shared.generation.confidence import CONTRACT_THRESHOLDS, THRESHOLDS, judge, thresholds_for
from shared.types import Confidence, Thresholds
from tests.shared.examples import match, settings

CONTRACT = Thresholds(high=0.75, medium=0.60)


def judged(*similarities: float, thresholds: Thresholds = CONTRACT) -> Confidence:
    return judge([match(similarity=similarity) for similarity in similarities], thresholds).confidence


def test_exactly_the_threshold_is_enough_for_any_number_of_matches(subtests: pytest.Subtests):
    for count in range(1, 9):
        with subtests.test(count=count):
            assert judged(*[0.75] * count) is Confidence.HIGH
            assert judged(*[0.60] * count) is Confidence.MEDIUM


def test_a_mean_of_exactly_the_threshold_is_enough_despite_binary_fractions(subtests: pytest.Subtests):
    """The means are 0.75 and 0.60 to the last digit; a naive sum of floats falls short of some."""
    cases: list[tuple[tuple[float, ...], Confidence]] = [
        ((0.9, 0.8, 0.75, 0.7, 0.6), Confidence.HIGH),
        ((0.95, 0.95, 0.7, 0.4), Confidence.HIGH),
        ((0.8, 0.7), Confidence.HIGH),
        ((0.7, 0.65, 0.6, 0.55, 0.5), Confidence.MEDIUM),
        ((0.7, 0.7, 0.7, 0.3), Confidence.MEDIUM),
        ((0.95, 0.6, 0.55, 0.3), Confidence.MEDIUM),
        ((0.95, 0.85, 0.6, 0.3, 0.3), Confidence.MEDIUM),
        ((0.65, 0.55), Confidence.MEDIUM),
    ]
    for similarities, confidence in cases:
        with subtests.test(similarities=similarities, confidence=confidence):
            assert judged(*similarities) is confidence


def test_just_below_a_threshold_is_not_enough():
    assert judged(0.7499) is Confidence.MEDIUM
    assert judged(0.5999) is Confidence.LOW
    assert judged(*[0.6] * 4, 0.5999) is Confidence.LOW


def test_no_matches_are_low_confidence_at_zero():
    judgement = judge([], CONTRACT)
    assert judgement.confidence is Confidence.LOW
    assert judgement.mean_similarity == 0.0


def test_no_matches_are_low_confidence_for_every_threshold():
    assert judge([], Thresholds(high=0, medium=0)).confidence is Confidence.LOW
    assert judged(0.0, thresholds=Thresholds(high=0, medium=0)) is Confidence.HIGH


def test_only_the_best_five_count():
    assert judged(*[0.8] * 5, *[0.0] * 45) is Confidence.HIGH
    assert judged(*[0.8] * 4, 0.0, 0.0) is Confidence.MEDIUM


def test_fewer_than_five_matches_are_averaged_over_their_number():
    judgement = judge([match(similarity=0.9), match(similarity=0.7)], CONTRACT)
    assert judgement.mean_similarity == pytest.approx(0.8)
    assert judgement.confidence is Confidence.HIGH


def test_a_judgement_reports_the_applied_thresholds():
    thresholds = Thresholds(high=0.5, medium=0.4)
    assert judge([], thresholds).thresholds == thresholds


def test_openai_models_and_unknown_ones_have_the_contract_s_thresholds():
    assert CONTRACT_THRESHOLDS == CONTRACT
    assert thresholds_for("text-embedding-3-small", None, None) == CONTRACT
    assert thresholds_for("a model of tomorrow", None, None) == CONTRACT


def test_the_local_model_has_its_fitted_thresholds():
    fitted = json.loads((ROOT / "bench" / "results" / "confidence_all-MiniLM-L6-v2.json").read_text())
    assert thresholds_for(fitted["model"], None, None) == Thresholds(fitted["high"], fitted["medium"])
    assert thresholds_for(fitted["model"], None, None) != CONTRACT


def test_each_model_s_thresholds_allow_three_levels(subtests: pytest.Subtests):
    for model in sorted(THRESHOLDS):
        with subtests.test(model=model):
            thresholds = THRESHOLDS[model]
            assert 0 < thresholds.medium < thresholds.high < 1


def test_settings_override_one_threshold_or_both():
    one = settings(rag_confidence_high_threshold=0.9)
    both = settings(rag_confidence_high_threshold=0.9, rag_confidence_medium_threshold=0)
    for deployment, expected in ((one, Thresholds(0.9, 0.60)), (both, Thresholds(0.9, 0))):
        assert expected == thresholds_for(
            deployment.rag_embedding_model,
            deployment.rag_confidence_high_threshold,
            deployment.rag_confidence_medium_threshold,
        )
