"""Calibration of confidence: features of labelled questions, the fit, and the errors to expect.

Every question goes through the real search. Four kinds of questions are told apart:

- answerable;
- hidden: the same questions with their documents removed from the results, so that passages on the subject
  remain, but no answer;
- foreign: labelled out_of_corpus, or a question of another set;
- on_topic: any other label, such as SQuAD 2.0's adversarial questions; reported, never fitted.

The fit: a logistic function where half of the questions are answerable; high, so that at most the budget of
questions without an answer is called high, three quarters of them hidden; medium, so that 95 % of the
answerable are answered; the rag contract's ceiling, so that it holds down 1 % of the answerable, in a corpus
with one passage on the subject. Each set has the same weight. Each set is also reported with a calibration
fitted on the other sets alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bench.labelled_sets import IngestedSet, Item, LabelledSet
from shared import pipeline
from shared.generation.confidence import (
    CALIBRATIONS,
    CEILING_TOP_N,
    JUDGED_MATCHES,
    SCALED_COVERAGE_WEIGHT,
    Calibration,
    calibration_name,
    log_odds_of_relevance,
    logistic,
)
from shared.generation.confidence_features import COVERAGE_WEIGHT, ConfidenceFeatures, features_of
from shared.models.embeddings import Embedder
from shared.models.similarity_scale import measure_scale
from shared.types import Filters, Match, Thresholds

RESULTS = Path(__file__).parent / "results" / "confidence.json"
ANSWERABLE, HIDDEN, FOREIGN, ON_TOPIC = "answerable", "hidden", "foreign", "on_topic"
KINDS = ANSWERABLE, HIDDEN, FOREIGN, ON_TOPIC
BUDGET, ANSWERED, HELD_DOWN, HIDDEN_SHARE = 0.04, 0.95, 0.01, 0.75
# The limit of questions of each kind and set, and of foreign questions from each other set.
QUESTIONS, FOREIGN_QUESTIONS = 500, 40
MAX_CHARACTERS = 500
# The limit of rag.is_calibrations.
MAX_SLOPE = 1000
Floats = NDArray[np.float64]


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


def observe(
    ingested: IngestedSet,
    labelled_set: LabelledSet,
    others: Sequence[LabelledSet],
    coverage_weight: float = COVERAGE_WEIGHT,
) -> list[Observation]:
    observations: list[Observation] = []
    for item in _sample(labelled_set.questions):
        gold = labelled_set.relevant.get(item.id, {})
        kind = _kind(item, gold)
        if kind is None:
            continue
        matches = _search(ingested, item.text)
        observations.append(_observation(kind, item.text, matches, coverage_weight))
        if kind == ANSWERABLE and gold:
            without = [match for match in matches if ingested.names.get(match.document_id) not in gold]
            observations.append(_observation(HIDDEN, item.text, without, coverage_weight))
    for other in others:
        observations += [
            _observation(FOREIGN, item.text, _search(ingested, item.text), coverage_weight)
            for item in _sample(_answerable(other), FOREIGN_QUESTIONS)
        ]
    return observations


def fit(
    sets: Iterable[Sequence[Observation]], budget: float = BUDGET, coverage_weight: float = COVERAGE_WEIGHT
) -> Calibration:
    """`coverage_weight`: that of the observations. Raises ValueError where a set has no answerable questions
    or none without an answer, or the fit cannot be used."""
    answerable, wrong = _Weighted(coverage_weight), _Weighted(coverage_weight)
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
    weights = wrong.weights()
    slope, per_log_odds, intercept = _logistic_fit(
        np.concatenate([answerable.rows(), wrong.rows()]),
        np.concatenate([np.ones(len(answerable.items)), np.zeros(len(wrong.items))]),
        np.concatenate([answerable.weights() / answerable.weights().sum(), weights / weights.sum()]),
    )
    relevance = round(max(0.0, per_log_odds / slope), 4) if slope else 0.0
    unscaled = np.array([1.0, relevance])
    totals, of_wrong = answerable.rows() @ unscaled, wrong.rows() @ unscaled
    has_gap = np.array([item.has_gap for item in wrong.items])
    high = _quantile(np.where(has_gap, of_wrong.min(), of_wrong), weights, 1 - budget)
    medium = min(high, _quantile(totals, answerable.weights(), 1 - ANSWERED))
    ceilings = []
    for least in (high, medium):
        reached = [
            index
            for index, item in enumerate(answerable.items)
            if totals[index] >= least and not (least == high and item.has_gap)
        ]
        means = np.array([answerable.items[index].mean for index in reached] or [0.0])
        ceilings.append(_quantile(means, answerable.weights()[reached] if reached else np.ones(1), HELD_DOWN))

    def score(total: float) -> float:
        return round(logistic(slope * total + intercept), 3)

    if not 0 < slope <= MAX_SLOPE or abs(intercept) > MAX_SLOPE or score(high) >= 1:
        raise ValueError("these questions are too few or too easily told apart for a calibration")
    return Calibration(
        round(slope, 3),
        round(intercept, 3),
        Thresholds(score(high), score(medium)),
        Thresholds(round(max(ceilings), 3), round(ceilings[1], 3)),
        relevance,
        coverage_weight,
    )


def errors(observations: Sequence[Observation], calibration: Calibration) -> dict[str, Any]:
    """What the calibration gives for these questions: by kind the shares called high and answered, AUROC of
    answerable questions against each other kind, the calibration error in ten bins, and the shares answered
    wrongly by the share of answerable questions answered (risk and coverage, as the threshold falls)."""
    scores = {
        kind: np.array([calibration.score(item.features) for item in observations if item.kind == kind])
        for kind in KINDS
    }
    gaps = {kind: np.array([item.has_gap for item in observations if item.kind == kind]) for kind in KINDS}
    present = [kind for kind in KINDS if len(scores[kind])]
    high, medium = calibration.thresholds.high, calibration.thresholds.medium
    return {
        "questions": {kind: len(scores[kind]) for kind in present},
        "high": {kind: _share((scores[kind] >= high) & ~gaps[kind]) for kind in present},
        "answered": {kind: _share(scores[kind] >= medium) for kind in present},
        "auroc": {kind: _auroc(scores[ANSWERABLE], scores[kind]) for kind in present if kind != ANSWERABLE},
        "calibration_error": _calibration_error(scores),
        "risk_coverage": _risk_coverage(scores),
    }


def coverage_weight_of(embedder: Embedder) -> float:
    """The weight of a model's calibration: in proportion to the scale of its similarities, but that of the
    built-in calibrations as they were fitted. Raises EmbeddingFailed."""
    scale = None if embedder.model in CALIBRATIONS else measure_scale(embedder)
    return round(SCALED_COVERAGE_WEIGHT * scale.width, 4) if scale else COVERAGE_WEIGHT


def model_of(ingested: IngestedSet) -> str:
    """The name of the calibration that fits the observations."""
    reranker = ingested.services.reranker
    return calibration_name(ingested.services.embedder.model, reranker.model if reranker else None)


def report(
    observations: Mapping[str, Sequence[Observation]],
    model: str,
    budget: float = BUDGET,
    coverage_weight: float = COVERAGE_WEIGHT,
) -> dict[str, Any]:
    """The calibration of all sets, and each set's errors under one that was fitted on the others. Raises as
    fit."""
    calibration = fit(observations.values(), budget, coverage_weight)
    by_set = {}
    for name, own in observations.items():
        others = [items for other, items in observations.items() if other != name]
        by_set[name] = errors(own, fit(others, budget, coverage_weight) if others else calibration)
    return {
        "model": model,
        "budget": budget,
        "calibration": row_of(calibration),
        "held_out": len(observations) > 1,
        "sets": by_set,
    }


def row_of(calibration: Calibration) -> dict[str, float]:
    """The calibration as rag.settings has it."""
    return {
        "slope": calibration.slope,
        "intercept": calibration.intercept,
        "high": calibration.thresholds.high,
        "medium": calibration.thresholds.medium,
        "ceiling_high": calibration.ceiling.high,
        "ceiling_medium": calibration.ceiling.medium,
        **({"relevance": calibration.relevance} if calibration.relevance else {}),
        **(
            {}
            if calibration.coverage_weight == COVERAGE_WEIGHT
            else {"coverage_weight": calibration.coverage_weight}
        ),
    }


class _Weighted:
    """Observations of which each group has a weight that its members share."""

    def __init__(self, coverage_weight: float) -> None:
        self.items: list[Observation] = []
        self._coverage_weight = coverage_weight
        self._weights: list[float] = []

    def add(self, items: Sequence[Observation], weight: float) -> None:
        self.items += items
        self._weights += [weight / len(items)] * len(items)

    def rows(self) -> Floats:
        """A row for each: similarity with coverage, and the log-odds of the reranker's best score."""
        rows = [
            (item.features.total(self._coverage_weight), log_odds_of_relevance(item.features))
            for item in self.items
        ]
        return np.array(rows).reshape(-1, 2)

    def weights(self) -> Floats:
        return np.array(self._weights)


def _kind(item: Item, gold: Mapping[str, int]) -> str | None:
    if item.label is None:
        return ANSWERABLE if gold else None
    return {ANSWERABLE: ANSWERABLE, "out_of_corpus": FOREIGN}.get(item.label, ON_TOPIC)


def _answerable(labelled_set: LabelledSet) -> list[Item]:
    return [
        item
        for item in labelled_set.questions
        if _kind(item, labelled_set.relevant.get(item.id, {})) == ANSWERABLE
    ]


def _sample(items: Iterable[Item], limit: int | None = None) -> list[Item]:
    """Of each label at most so many, those whose ids hash lowest."""
    by_label: dict[str | None, list[Item]] = {}
    for item in sorted(items, key=lambda item: crc32(item.id.encode())):
        by_label.setdefault(item.label, []).append(item)
    return [item for group in by_label.values() for item in group[: limit or QUESTIONS]]


def _search(ingested: IngestedSet, text: str) -> tuple[Match, ...]:
    """More matches than are judged: hidden questions need others in the place of removed ones."""
    query = replace(
        pipeline.confidence_query(text[:MAX_CHARACTERS], Filters(), ingested.services.reranker is not None),
        top_k=2 * JUDGED_MATCHES,
    )
    return pipeline.search(ingested.services, ingested.reader, query).matches


def _observation(kind: str, question: str, matches: Sequence[Match], coverage_weight: float) -> Observation:
    judged = matches[:JUDGED_MATCHES]
    features = features_of(question, judged, coverage_weight)
    return Observation(
        kind, features, max((match.similarity or 0.0 for match in judged), default=0.0) / CEILING_TOP_N
    )


def _logistic_fit(features: Floats, labels: Floats, weights: Floats) -> list[float]:
    """The coefficient of each column and the intercept, by Newton's method; 0 for a column of zeros."""
    design = np.column_stack([features, np.ones(len(features))])
    parameters = np.zeros(design.shape[1])
    for _ in range(50):
        probability = 1 / (1 + np.exp(-design @ parameters))
        gradient = design.T @ (weights * (labels - probability))
        curvature = (design * (weights * probability * (1 - probability))[:, None]).T @ design
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(parameters)), gradient)
        parameters += step
        if np.abs(step).max() < 1e-9:
            break
    return [float(parameter) for parameter in parameters]


def _quantile(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    return float(values[order[min(int(np.searchsorted(cumulative, share)), len(values) - 1)]])


def _share(truth: NDArray[np.bool_]) -> float:
    return round(float(truth.mean()), 3)


def _auroc(positive: Floats, negative: Floats) -> float:
    """The share of pairs in the right order, ties half."""
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, "left")
    equal = np.searchsorted(ordered, positive, "right") - below
    return round(float((below + equal / 2).mean() / len(negative)), 3)


def _unanswerable(scores: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """The scores of hidden and foreign questions, and weights, half for each kind."""
    kinds = [scores[kind] for kind in (HIDDEN, FOREIGN) if len(scores[kind])]
    weights = [np.full(len(values), 1 / len(values) / len(kinds)) for values in kinds]
    return np.concatenate(kinds), np.concatenate(weights)


def _calibration_error(scores: Mapping[str, Floats]) -> float:
    """Expected calibration error (Naeini et al. 2015), where half of the questions are answerable."""
    wrong, wrong_weights = _unanswerable(scores)
    answerable = scores[ANSWERABLE]
    values = np.concatenate([answerable, wrong])
    labels = np.concatenate([np.ones(len(answerable)), np.zeros(len(wrong))])
    weights = np.concatenate([np.full(len(answerable), 0.5 / len(answerable)), wrong_weights / 2])
    bins = np.minimum((values * 10).astype(int), 9)
    gaps = [abs((weights * (labels - values))[bins == index].sum()) for index in range(10)]
    return round(float(sum(gaps)), 3)


def _risk_coverage(scores: Mapping[str, Floats]) -> list[list[float]]:
    """For each twentieth of the answerable questions: the share of the answered questions, half of all being
    answerable, that have no answer."""
    wrong, weights = _unanswerable(scores)
    answerable = np.sort(scores[ANSWERABLE])[::-1]
    points = []
    for place in range(1, 21):
        threshold = answerable[max(0, round(len(answerable) * place / 20) - 1)]
        answered_wrongly = float(weights[wrong >= threshold].sum())
        points.append([place / 20, round(answered_wrongly / (answered_wrongly + place / 20), 3)])
    return points
