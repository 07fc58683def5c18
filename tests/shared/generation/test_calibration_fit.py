"""Calibration fitted to literal observations, with its error budget and its errors."""

import random
from dataclasses import replace

import pytest

from shared.generation.calibration_fit import (
    ANSWERABLE,
    FOREIGN,
    HIDDEN,
    Observation,
    errors,
    fit,
    fit_languages,
    report,
)
from shared.generation.confidence_features import ConfidenceFeatures


def observations(seed: int, count: int = 400) -> list[Observation]:
    draw = random.Random(seed)  # noqa: S311  # makes observations
    means = {ANSWERABLE: 1.0, HIDDEN: 0.7, FOREIGN: 0.35}

    def features(mean: float) -> ConfidenceFeatures:
        return ConfidenceFeatures(max(0.0, draw.gauss(mean, 0.15)), 0.0, lacks_negation=draw.random() < 0.05)

    pairs = [(kind, mean) for kind, mean in means.items() for _ in range(count)]
    return [Observation(kind, features(mean), mean / 2) for kind, mean in pairs]


def test_the_fit_keeps_its_budget_on_what_it_was_fitted_to():
    own = observations(1)
    calibration = fit([own], budget=0.05)
    shares = errors(own, calibration)
    wrong = 0.75 * shares["high"][HIDDEN] + 0.25 * shares["high"][FOREIGN]
    assert wrong == pytest.approx(0.05, abs=0.01)
    assert shares["answered"][ANSWERABLE] == pytest.approx(0.97, abs=0.01)
    assert calibration.slope > 0
    assert 0 < calibration.thresholds.medium < calibration.thresholds.high < 1


def test_a_smaller_budget_calls_less_high():
    own = observations(1)
    shares = [errors(own, fit([own], budget))["high"][ANSWERABLE] for budget in (0.1, 0.05, 0.01)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


def test_the_score_is_calibrated_and_ranks_the_kinds():
    own = observations(2)
    shares = errors(own, fit([own]))
    assert shares["calibration_error"] < 0.1
    assert 0.8 < shares["auroc"][HIDDEN] < shares["auroc"][FOREIGN]


def test_each_set_is_reported_under_a_fit_of_the_others():
    easy = observations(3)
    for number, item in enumerate(easy):
        nearer = replace(item.features, similarity=item.features.similarity + 1.0)
        easy[number] = replace(item, features=nearer)
    summary = report({"one": observations(1), "easy": easy}, "model")
    # The thresholds of the other set are too low for this one.
    assert summary["sets"]["easy"]["high"][HIDDEN] > 0.9
    assert summary["sets"]["one"]["high"][ANSWERABLE] < 0.05


@pytest.mark.parametrize("kinds", [(ANSWERABLE,), (HIDDEN, FOREIGN)])
def test_a_set_of_one_kind_cannot_be_fitted(kinds: tuple[str, ...]):
    some = [item for item in observations(1) if item.kind in kinds]
    with pytest.raises(ValueError, match="needs answerable questions"):
        fit([some])


def test_questions_in_another_language_have_a_fit_of_their_own_if_they_are_enough():
    own = observations(1)
    other = [
        replace(
            item,
            features=replace(item.features, similarity=item.features.similarity / 2, is_other_language=True),
        )
        for item in observations(2)
    ]
    calibration = fit_languages([own, other])
    assert replace(calibration, other_languages=None) == fit([own])
    shares = errors(other, calibration)["answered"]
    assert shares[ANSWERABLE] == pytest.approx(0.97, abs=0.01)
    assert set(errors(other, calibration)["high"].values()) == {0.0}
    assert errors(other, replace(calibration, other_languages=None))["answered"][ANSWERABLE] < 0.3
    with pytest.raises(ValueError, match="in the language of the documents"):
        fit_languages([other])
    few = [item for item in other if item.kind == ANSWERABLE][:10] + other[-20:]
    assert fit_languages([own, few]).other_languages is None
