"""Confidence by features, calibration and the rag contract's ceiling, on literal values."""

import json
import math
from dataclasses import replace

import pytest

from local import ROOT
from shared.generation.confidence import (
    BY_SHIPPED_QUESTIONS,
    CALIBRATIONS,
    NO_CALIBRATION,
    NOT_CALIBRATED,
    NOT_MEASURED,
    OTHER_LANGUAGE,
    Calibration,
    after_abstention,
    after_check,
    after_conflict,
    after_indirect,
    judge,
    judge_by_contract,
    limit_to_ceiling,
    mean_similarity,
    with_named_value,
)
from shared.generation.confidence_features import ConfidenceFeatures
from shared.models.scale_before_calibration import SimilarityScale
from shared.types import Confidence, Judgement, Thresholds
from tests.shared.examples import match

CONTRACT = Thresholds(high=0.75, medium=0.60)
# The score of similarity 0.5 is one half.
CALIBRATION = Calibration(10, -5, Thresholds(0.8, 0.5), Thresholds(0.4, 0.3))


def by_contract(*similarities: float) -> Confidence:
    """The level, of ten further passages for the judgement."""
    matches = [match(similarity=similarity) for similarity in similarities]
    judged = calibrated(ConfidenceFeatures(0.1, 0.0, missing=("FL-900",)))
    return judge_by_contract(judged, matches, CONTRACT).confidence


def calibrated(features: ConfidenceFeatures) -> Judgement:
    return judge(features, [match(similarity=features.similarity)], CALIBRATION)


def test_with_the_contract_s_settings_exactly_the_contract_s_threshold_is_enough():
    for count in range(1, 9):
        assert by_contract(*[0.75] * count) is Confidence.HIGH
        assert by_contract(*[0.60] * count) is Confidence.MEDIUM
    assert by_contract(0.7499) is Confidence.MEDIUM
    assert by_contract(0.5999) is Confidence.LOW
    assert by_contract(*[0.6] * 4, 0.5999) is Confidence.LOW


def test_a_mean_of_exactly_the_threshold_is_enough_despite_binary_fractions():
    """The means are 0.75 and 0.60 to the last digit; a naive sum of floats falls short of some."""
    cases: list[tuple[tuple[float, ...], Confidence]] = [
        ((0.9, 0.8, 0.75, 0.7, 0.6), Confidence.HIGH), ((0.95, 0.95, 0.7, 0.4), Confidence.HIGH),
        ((0.7, 0.65, 0.6, 0.55, 0.5), Confidence.MEDIUM), ((0.95, 0.6, 0.55, 0.3), Confidence.MEDIUM),
    ]  # fmt: skip
    assert [(similarities, by_contract(*similarities)) for similarities, _ in cases] == cases


def test_the_mean_is_of_the_best_five_or_of_fewer():
    assert mean_similarity([]) == 0.0
    assert mean_similarity([match(similarity=0.9), match(similarity=0.7)]) == pytest.approx(0.8)
    assert mean_similarity([match(similarity=value) for value in (0.8, 0.1, 0.8, 0.8, 0.8, 0.8)]) == 0.8
    assert mean_similarity([replace(match(), similarity=None)]) == 0.0


def test_no_matches_are_low_confidence_at_zero():
    generous = Calibration(0, 100, Thresholds(0, 0), Thresholds(0, 0))
    for calibration in (NO_CALIBRATION, CALIBRATION, generous):
        judgement = judge(ConfidenceFeatures(0.0, 0.0), [], calibration)
        assert (judgement.confidence, judgement.score) == (Confidence.LOW, 0.0)
        assert judgement.because == ("No passage was found.",)
        assert limit_to_ceiling(judgement, []).confidence is Confidence.LOW


def test_the_score_is_a_logistic_function_of_similarity_and_half_of_the_coverage():
    assert calibrated(ConfidenceFeatures(0.5, 0.0)).score == pytest.approx(0.5)
    assert calibrated(ConfidenceFeatures(0.3, 0.4)).score == pytest.approx(0.5)
    assert calibrated(ConfidenceFeatures(0.5, 0.2)).score == pytest.approx(1 / (1 + math.exp(-1)))


def test_a_reranker_s_score_counts_by_the_weight_of_its_calibration():
    reranked = replace(CALIBRATION, relevance=0.1)
    for relevance, log_odds in ((0.5, 0.0), (0.9, math.log(9)), (0.0, -math.log(999)), (1.0, math.log(999))):
        features = ConfidenceFeatures(0.5, 0.0, relevance=relevance)
        judgement = judge(features, [match(similarity=0.5)], reranked)
        assert judgement.score == pytest.approx(1 / (1 + math.exp(-10 * 0.1 * log_odds)))
        assert judgement.because[-1] == f"The reranker's best score is {relevance:.2f}."
        assert calibrated(features).score == pytest.approx(0.5), "an unfitted reranker counts nothing"
    assert judge(ConfidenceFeatures(0.5, 0.0), [match(similarity=0.5)], reranked).score == pytest.approx(0.5)


def test_extreme_calibrations_have_a_score():
    for slope, score in ((1000.0, 1.0), (-1000.0, 0.0)):
        extreme = Calibration(slope, slope, Thresholds(0.8, 0.5), Thresholds(0.4, 0.3))
        assert judge(ConfidenceFeatures(1.0, 1.0), [match(similarity=1.0)], extreme).score == pytest.approx(
            score
        )


def test_the_thresholds_divide_the_score_into_levels():
    assert calibrated(ConfidenceFeatures(0.64, 0.0)).confidence is Confidence.HIGH
    assert calibrated(ConfidenceFeatures(0.63, 0.0)).confidence is Confidence.MEDIUM
    assert calibrated(ConfidenceFeatures(0.5, 0.0)).confidence is Confidence.MEDIUM
    assert calibrated(ConfidenceFeatures(0.49, 0.0)).confidence is Confidence.LOW
    assert calibrated(ConfidenceFeatures(0.49, 0.0)).thresholds == CALIBRATION.thresholds


def test_confidence_is_medium_at_most_over_a_gap_and_a_low_level_stays():
    certain, calibration = [match(similarity=1.0)], CALIBRATION
    assert judge(ConfidenceFeatures(1.0, 1.0), certain, calibration).confidence is Confidence.HIGH
    missing = judge(ConfidenceFeatures(1.0, 1.0, ("FL-900", "2026")), certain, calibration)
    assert missing.confidence is Confidence.MEDIUM
    assert missing.because[-1] == "None of the passages judged mentions FL-900, 2026."
    denied = judge(ConfidenceFeatures(1.0, 1.0, lacks_negation=True), certain, calibration)
    assert denied.confidence is Confidence.MEDIUM
    assert denied.because[-1] == "None of the passages judged denies what the question denies."
    assert calibrated(ConfidenceFeatures(0.1, 0.0, ("FL-900",))).confidence is Confidence.LOW


def test_the_rag_contract_s_mean_holds_a_level_down_and_never_raises_it():
    high = calibrated(ConfidenceFeatures(1.0, 1.0))
    assert limit_to_ceiling(high, [match(similarity=0.4)]) == high
    medium = limit_to_ceiling(high, [match(similarity=0.39)])
    assert medium.confidence is Confidence.MEDIUM
    assert medium.because[-1] == "The mean similarity of the best chunks, 0.39, permits no more than medium."
    assert limit_to_ceiling(high, [match(similarity=0.29)]).confidence is Confidence.LOW
    low = calibrated(ConfidenceFeatures(0.1, 0.0))
    assert limit_to_ceiling(low, [match(similarity=0.9)]) == low


def test_with_the_contract_s_settings_no_finding_changes_the_level():
    judgement = judge_by_contract(
        calibrated(ConfidenceFeatures(0.1, 0.0, missing=("FL-900",))), [match(similarity=0.75)], CONTRACT
    )
    assert (judgement.score, judgement.thresholds, judgement.ceiling) == (0.75, CONTRACT, CONTRACT)
    assert judgement.because[0] == "The mean similarity of the best chunks (five at most) is 0.75."
    assert "None of the passages judged mentions FL-900." in judgement.because
    for later in (after_check(judgement, ("x",)), after_conflict(judgement)):
        assert later.confidence is Confidence.HIGH
        assert len(later.because) == len(judgement.because) + 1
    assert judge_by_contract(judgement, [], CONTRACT).confidence is Confidence.LOW
    assert after_abstention(judgement).confidence is Confidence.LOW


def test_an_abstention_is_low_and_unsupported_sentences_are_medium_at_most():
    high = calibrated(ConfidenceFeatures(1.0, 1.0))
    abstained = after_abstention(high)
    assert abstained.confidence is Confidence.LOW
    assert abstained.because[-1] == "The model found no answer in the passages."
    extractive = after_abstention(high, is_extractive=True)
    assert extractive.because[-1] == "No sentence that could answer has a word of the question."
    assert after_check(high, ()) == high
    checked = after_check(high, ("It holds 9 litres.",))
    assert (checked.confidence, checked.unsupported) == (Confidence.MEDIUM, ("It holds 9 litres.",))
    assert after_check(calibrated(ConfidenceFeatures(0.1, 0.0)), ("x",)).confidence is Confidence.LOW


def test_documents_with_different_values_are_medium_at_most():
    judgement = after_conflict(calibrated(ConfidenceFeatures(1.0, 1.0)))
    assert judgement.confidence is Confidence.MEDIUM
    assert judgement.because[-1] == "Documents give different values for the same thing."


def test_the_local_model_has_the_calibration_that_was_measured():
    measured = json.loads((ROOT / "bench" / "results" / "confidence.json").read_text())
    assert CALIBRATIONS[measured["model"]] == Calibration.of(measured["calibration"])


def test_a_model_without_a_fit_is_judged_by_the_position_on_its_scale():
    """The same questions, by two models whose similarities lie elsewhere, have the same scores."""
    wide, narrow = SimilarityScale(0.1, 0.5), SimilarityScale(0.8, 0.9)
    for position, coverage in ((1.2, 1.0), (0.8, 0.4), (0.1, 0.2)):
        one, other = (
            judge(
                ConfidenceFeatures(scale.unrelated + position * scale.width, coverage),
                [match(similarity=0.5)],
                Calibration.on_scale(scale),
            )
            for scale in (wide, narrow)
        )
        assert one.score == pytest.approx(other.score)
        assert one.confidence is other.confidence
        assert one.because[-1] == other.because[-1] == NOT_CALIBRATED
    best = judge(ConfidenceFeatures(1.0, 1.0), [match(similarity=1.0)], Calibration.on_scale(wide))
    assert best.confidence is Confidence.MEDIUM
    assert limit_to_ceiling(best, [match(similarity=0.0)]) == best
    none = judge(ConfidenceFeatures(0.0, 0.0), [match(similarity=0.0)], Calibration.on_scale(wide))
    assert none.confidence is Confidence.LOW


def test_where_no_scale_can_be_measured_no_answer_is_withheld():
    judgement = judge(ConfidenceFeatures(0.0, 0.0), [match(similarity=-0.1)], NO_CALIBRATION)
    assert (judgement.confidence, judgement.because[-1]) == (Confidence.MEDIUM, NOT_MEASURED)
    assert limit_to_ceiling(judgement, [match(similarity=-0.1)]) == judgement
    assert judge(ConfidenceFeatures(0.0, 0.0), [], NO_CALIBRATION).confidence is Confidence.LOW
    by_contract = judge_by_contract(judgement, [match(similarity=0.8)], CONTRACT)
    assert by_contract.confidence is Confidence.HIGH
    assert NOT_MEASURED not in by_contract.because


def test_another_language_than_the_passage_s_has_its_own_calibration_where_there_is_one():
    of_other = Calibration(10.0, -5.0, Thresholds(0.9, 0.5), Thresholds(0.0, 0.0), coverage_weight=0.0)
    calibration = Calibration(
        10.0, -9.0, Thresholds(0.8, 0.6), Thresholds(0.0, 0.0), other_languages=of_other
    )
    row = {**calibration.row(), "source": "shipped_questions"}
    assert Calibration.of(row) == replace(calibration, by_shipped_questions=True)
    features = ConfidenceFeatures(0.55, 0.1, is_other_language=True)
    judgement = judge(features, [match()], Calibration.of(row))
    assert (judgement.confidence, judgement.thresholds) == (Confidence.MEDIUM, of_other.thresholds)
    assert {OTHER_LANGUAGE, BY_SHIPPED_QUESTIONS} <= {*judgement.because}
    same = judge(replace(features, is_other_language=False), [match()], calibration)
    assert (same.confidence, same.thresholds) == (Confidence.LOW, calibration.thresholds)
    without = judge(features, [match()], replace(calibration, other_languages=None))
    assert (without.confidence, OTHER_LANGUAGE in without.because) == (Confidence.LOW, True)


def test_an_indirect_answer_is_medium_at_most_and_a_named_value_medium_at_least():
    high, low = (calibrated(ConfidenceFeatures(similarity, 0.0)) for similarity in (0.9, 0.1))
    assert (high.confidence, low.confidence) == (Confidence.HIGH, Confidence.LOW)
    assert after_indirect(high).confidence is Confidence.MEDIUM
    assert after_indirect(low).confidence is Confidence.LOW
    named = with_named_value(low)
    assert (named.confidence, named.score) == (Confidence.MEDIUM, low.score)
    assert len(named.because) == len(low.because) + 1
