"""A calibration fitted to observations of labelled questions, and its errors.

There are four kinds of questions:

- answerable;
- hidden: the same questions with their documents removed from the results, so that passages on the subject
  remain, but no answer;
- foreign: about other subjects than the documents;
- on_topic: any other question without an answer; reported, never fitted.

The fit: a logistic function where half of the questions are answerable; high, so that at most the budget of
questions without an answer is called high, three quarters of them hidden; medium, so that 97 % of the
answerable are answered; the rag contract's ceiling, so that it holds down 1 % of the answerable, in a corpus
with one passage on the subject. Each set has the same weight.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from operator import mul
from typing import Any

from shared.generation.confidence import (
    CEILING_TOP_N,
    JUDGED_MATCHES,
    Calibration,
    log_odds_of_relevance,
    logistic,
)
from shared.generation.confidence_features import COVERAGE_WEIGHT, ConfidenceFeatures, features_of
from shared.types import Match, Thresholds

ANSWERABLE, HIDDEN, FOREIGN, ON_TOPIC = "answerable", "hidden", "foreign", "on_topic"
KINDS = ANSWERABLE, HIDDEN, FOREIGN, ON_TOPIC
BUDGET, ANSWERED, HELD_DOWN, HIDDEN_SHARE = 0.04, 0.97, 0.01, 0.75
# How many questions in another language than the best passage a fit needs, with and without an answer.
MIN_OTHER_LANGUAGES = 20
# The limit of rag.is_calibrations.
MAX_SLOPE = 1000
# Newton's method ends with a step below the first, or after so many.
CONVERGED, MAX_STEPS = 1e-9, 50


@dataclass(frozen=True)
class Observation:
    """`mean`: the rag contract's mean similarity where only the best match has any."""

    kind: str
    features: ConfidenceFeatures
    mean: float

    @property
    def has_gap(self) -> bool:
        """Whether confidence is medium at most."""
        return bool(self.features.missing) or self.features.lacks_negation


def observe(kind: str, question: str, matches: Sequence[Match], coverage_weight: float) -> Observation:
    """The observation of a question whose search has these matches, best first."""
    judged = matches[:JUDGED_MATCHES]
    features = features_of(question, judged, coverage_weight)
    return Observation(
        kind, features, max((match.similarity or 0.0 for match in judged), default=0.0) / CEILING_TOP_N
    )


def fit(
    sets: Iterable[Sequence[Observation]],
    budget: float = BUDGET,
    coverage_weight: float = COVERAGE_WEIGHT,
    foreign_answered: float | None = None,
) -> Calibration:
    """`coverage_weight`: that of the observations; `foreign_answered`: medium answers that share of the
    foreign questions, in place of 97 % of the answerable. Raises ValueError where a set has no answerable
    questions or none without an answer, or the fit cannot be used."""
    answerable, wrong = _weighted(sets)
    rows = [
        (
            item.features.total(coverage_weight),
            log_odds_of_relevance(item.features),
            weight,
            float(group is answerable),
        )
        for group in (answerable, wrong)
        for item, weight in zip(group.items, group.shares(), strict=True)
    ]
    slope, per_log_odds, intercept = _logistic_fit(rows)
    relevance = round(max(0.0, per_log_odds / slope), 4) if slope else 0.0
    totals = [total + relevance * log_odds for total, log_odds, _, _ in rows]
    of_answerable, of_wrong = totals[: len(answerable.items)], totals[len(answerable.items) :]
    lowest = min(of_wrong)
    without_gaps = [
        lowest if item.has_gap else total for total, item in zip(of_wrong, wrong.items, strict=True)
    ]
    high = _quantile(without_gaps, wrong.weights, 1 - budget)
    medium = _quantile(of_answerable, answerable.weights, 1 - ANSWERED)
    if foreign_answered is not None:
        of_foreign = [
            (total, weight)
            for total, weight, item in zip(of_wrong, wrong.weights, wrong.items, strict=True)
            if item.kind == FOREIGN
        ]
        if of_foreign:
            medium = _quantile(*_columns(of_foreign), 1 - foreign_answered)
    medium = min(high, medium)

    def score(total: float) -> float:
        return round(logistic(slope * total + intercept), 3)

    if not 0 < slope <= MAX_SLOPE or abs(intercept) > MAX_SLOPE or score(high) >= 1:
        raise ValueError("these questions are too few or too easily told apart for a calibration")
    of_high, of_medium = (
        _ceiling(answerable, of_answerable, least, with_gaps=least != high) for least in (high, medium)
    )
    return Calibration(
        round(slope, 3),
        round(intercept, 3),
        Thresholds(score(high), score(medium)),
        Thresholds(round(max(of_high, of_medium), 3), round(of_medium, 3)),
        relevance,
        coverage_weight,
    )


def _ceiling(answerable: "_Weighted", totals: Sequence[float], least: float, *, with_gaps: bool) -> float:
    """The similarity that HELD_DOWN of the answerable questions with at least that total do not reach."""
    reached = [
        (item.mean, weight)
        for item, weight, total in zip(answerable.items, answerable.weights, totals, strict=True)
        if total >= least and (with_gaps or not item.has_gap)
    ]
    return _quantile(*_columns(reached), HELD_DOWN) if reached else 0.0


def _weighted(sets: Iterable[Sequence[Observation]]) -> tuple["_Weighted", "_Weighted"]:
    """The answerable questions and the others of all sets; each set has the same weight. Raises ValueError
    where a set has no answerable question, or none without an answer."""
    answerable, wrong = _Weighted(), _Weighted()
    for observations in sets:
        of_kind = {kind: [item for item in observations if item.kind == kind] for kind in KINDS}
        without = {HIDDEN: of_kind[HIDDEN], FOREIGN: of_kind[FOREIGN]}
        if not of_kind[ANSWERABLE] or not any(without.values()):
            raise ValueError("a set needs answerable questions, and some that it does not answer")
        answerable.add(of_kind[ANSWERABLE], 1.0)
        share = HIDDEN_SHARE if all(without.values()) else 1.0
        shares = {HIDDEN: share, FOREIGN: 1 - HIDDEN_SHARE if share < 1 else 1.0}
        for kind, items in without.items():
            if items:
                wrong.add(items, shares[kind])
    return answerable, wrong


def fit_languages(
    sets: Iterable[Sequence[Observation]],
    budget: float = BUDGET,
    coverage_weight: float = COVERAGE_WEIGHT,
    foreign_answered: float | None = None,
) -> Calibration:
    """As fit, with a calibration of its own for questions in another language than the best passage, where
    there are enough of them: by the similarity alone, and medium at most, since a similar passage without the
    answer is hardly less similar."""
    sets = list(sets)
    other = [item for items in sets for item in items if item.features.is_other_language]
    own = [
        [item for item in items if not item.features.is_other_language]
        for items in sets
        if _has_own_language(items)
    ]
    if not own:
        raise ValueError("a calibration needs questions in the language of the documents")
    calibration = fit(own, budget, coverage_weight, foreign_answered)
    answerable = sum(item.kind == ANSWERABLE for item in other)
    without = sum(item.kind in (HIDDEN, FOREIGN) for item in other)
    if min(answerable, without) < MIN_OTHER_LANGUAGES:
        return calibration
    try:
        of_other = fit([other], budget, 0.0, foreign_answered)
    except ValueError:
        return calibration
    never_high = Thresholds(1.0, of_other.thresholds.medium)
    of_other = replace(of_other, thresholds=never_high, ceiling=Thresholds(0.0, 0.0))
    return replace(calibration, other_languages=of_other)


def _has_own_language(observations: Sequence[Observation]) -> bool:
    """Whether most are of questions in the language of the best passage."""
    return 2 * sum(item.features.is_other_language for item in observations) < len(observations)


def errors(observations: Sequence[Observation], calibration: Calibration) -> dict[str, Any]:
    """What the calibration gives for these questions: by kind the shares called high and answered, AUROC of
    answerable questions against each other kind, and the calibration error in ten bins."""
    scores: dict[str, list[float]] = {}
    is_high: dict[str, list[bool]] = {}
    is_answered: dict[str, list[bool]] = {}
    for item in observations:
        applied = calibration.of_language(item.features)
        score, thresholds = applied.score(item.features), applied.thresholds
        scores.setdefault(item.kind, []).append(score)
        is_high.setdefault(item.kind, []).append(score >= thresholds.high and not item.has_gap)
        is_answered.setdefault(item.kind, []).append(score >= thresholds.medium)
    present = [kind for kind in KINDS if kind in scores]
    return {
        "questions": {kind: len(scores[kind]) for kind in present},
        "high": {kind: _share(is_high[kind]) for kind in present},
        "answered": {kind: _share(is_answered[kind]) for kind in present},
        "auroc": {kind: _auroc(scores[ANSWERABLE], scores[kind]) for kind in present if kind != ANSWERABLE},
        "calibration_error": _calibration_error(scores),
    }


def report(
    observations: Mapping[str, Sequence[Observation]],
    model: str,
    budget: float = BUDGET,
    coverage_weight: float = COVERAGE_WEIGHT,
    foreign_answered: float | None = None,
) -> dict[str, Any]:
    """The calibration of all sets, and each set's errors under one that was fitted on the others. Raises as
    fit."""
    fitted = partial(
        fit_languages, budget=budget, coverage_weight=coverage_weight, foreign_answered=foreign_answered
    )
    calibration = fitted(observations.values())
    by_set = {}
    for name, own in observations.items():
        others = [items for other, items in observations.items() if other != name]
        by_set[name] = errors(own, fitted(others) if any(map(_has_own_language, others)) else calibration)
    return {
        "model": model,
        "budget": budget,
        "calibration": calibration.row(),
        "held_out": len(observations) > 1,
        "sets": by_set,
    }


class _Weighted:
    """Observations of which each group has a weight that its members share."""

    def __init__(self) -> None:
        self.items: list[Observation] = []
        self.weights: list[float] = []

    def add(self, items: Sequence[Observation], weight: float) -> None:
        self.items += items
        self.weights += [weight / len(items)] * len(items)

    def shares(self) -> list[float]:
        """The weights, with a sum of 1."""
        total = math.fsum(self.weights)
        return [weight / total for weight in self.weights]


def _logistic_fit(rows: Sequence[tuple[float, float, float, float]]) -> tuple[float, float, float]:
    """The coefficients of the first two columns, and the intercept, by Newton's method; 0 for a column of
    zeros. The others are a row's weight and its label, 0 or 1."""
    first = second = intercept = 0.0
    for _ in range(MAX_STEPS):
        gradient, curvature = [0.0] * 3, [[1e-9 * (row == column) for column in range(3)] for row in range(3)]
        for total, log_odds, weight, label in rows:
            columns = total, log_odds, 1.0
            probability = logistic(first * total + second * log_odds + intercept)
            error, spread = weight * (label - probability), weight * probability * (1 - probability)
            for index, value in enumerate(columns):
                gradient[index] += error * value
                for other in range(3):
                    curvature[index][other] += spread * value * columns[other]
        step = _solve(curvature, gradient)
        first, second, intercept = first + step[0], second + step[1], intercept + step[2]
        if max(map(abs, step)) < CONVERGED:
            break
    return first, second, intercept


def _solve(matrix: list[list[float]], right: Sequence[float]) -> list[float]:
    """The solution of a small positive definite system, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for pivot in range(size):
        for lower in range(pivot + 1, size):
            factor = rows[lower][pivot] / rows[pivot][pivot]
            rows[lower] = [
                value - factor * above for value, above in zip(rows[lower], rows[pivot], strict=True)
            ]
    solution = [0.0] * size
    for row in reversed(range(size)):
        rest = math.fsum(map(mul, rows[row][row + 1 : size], solution[row + 1 :]))
        solution[row] = (rows[row][size] - rest) / rows[row][row]
    return solution


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [first for first, _ in pairs], [second for _, second in pairs]


def _quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float:
    ordered = sorted(zip(values, weights, strict=True))
    total = math.fsum(weights)
    cumulative = [weight / total for weight in accumulate(weight for _, weight in ordered)]
    return ordered[min(bisect_left(cumulative, share), len(ordered) - 1)][0]


def _share(truths: Sequence[bool]) -> float:
    return round(sum(truths) / len(truths), 3)


def _auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The share of pairs in the right order, ties half."""
    ordered = sorted(negative)
    below = math.fsum((bisect_left(ordered, score) + bisect_right(ordered, score)) / 2 for score in positive)
    return round(below / len(positive) / len(negative), 3)


def _unanswerable(scores: Mapping[str, Sequence[float]]) -> list[tuple[float, float]]:
    """The scores of hidden and foreign questions, and weights, half for each kind."""
    kinds = [scores[kind] for kind in (HIDDEN, FOREIGN) if scores.get(kind)]
    return [(score, 1 / len(values) / len(kinds)) for values in kinds for score in values]


def _calibration_error(scores: Mapping[str, Sequence[float]]) -> float:
    """Expected calibration error (Naeini et al. 2015), where half of the questions are answerable."""
    answerable = scores[ANSWERABLE]
    gaps = [0.0] * 10
    labelled = [
        *((score, 0.5 / len(answerable), 1.0) for score in answerable),
        *((score, weight / 2, 0.0) for score, weight in _unanswerable(scores)),
    ]
    for score, weight, label in labelled:
        gaps[min(int(score * 10), 9)] += weight * (label - score)
    return round(math.fsum(map(abs, gaps)), 3)
