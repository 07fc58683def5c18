"""Confidence in matches: their features, weighed by a calibration of the embedding model, without I/O.

The score is the probability that the matches answer the question, where half of the questions have an
answer: a logistic function (Platt 1999) of the best match's similarity plus its weighed coverage, and of a
reranker's best score where one has a calibration. `make calibrate` fits it and the thresholds to an error
budget. A model without one gets the calibration of other models, moved to the scale of its similarities.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from shared.generation.confidence_features import COVERAGE_WEIGHT, ConfidenceFeatures
from shared.models.scale_before_calibration import SimilarityScale
from shared.types import Confidence, Judgement, Match, Thresholds

# Confidence is judged by this many matches of one search, whatever the request asks for.
JUDGED_MATCHES = 10
# The rag contract's mean is taken over this many, or fewer if there are fewer.
CEILING_TOP_N = 5
CONFLICT = "Documents give different values for the same thing."
# Rerankers' scores crowd near 0 and 1: their log-odds are used, within these bounds.
RELEVANCE_BOUNDS = 0.001, 0.999
CONTRACT_THRESHOLDS = Thresholds(high=0.75, medium=0.60)
# The source of a calibration in rag.settings that no question of the adopter fits.
SHIPPED_QUESTIONS = "shipped_questions"
# No mean similarity is below.
NO_CEILING = Thresholds(-1.0, -1.0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """`slope` and `intercept` make features a score; `thresholds` are of that score. `ceiling`: the mean
    similarity below which the rag contract holds a level down; `relevance`: the weight of the log-odds of a
    reranker's best score, 0 for a search without a reranker; `is_fitted`: to the embedding model itself;
    `coverage_weight`: that of the coverage beside the similarity; `by_shipped_questions`: not by the
    adopter's; `other_languages`: for questions in another language than the best passage, whose words they
    do not share."""

    slope: float
    intercept: float
    thresholds: Thresholds
    ceiling: Thresholds
    relevance: float = 0.0
    coverage_weight: float = COVERAGE_WEIGHT
    is_fitted: bool = True
    by_shipped_questions: bool = False
    other_languages: "Calibration | None" = None

    def of_language(self, features: ConfidenceFeatures) -> "Calibration":
        """The calibration that applies to the features."""
        return self.other_languages if features.is_other_language and self.other_languages else self

    def score(self, features: ConfidenceFeatures) -> float:
        """The score, 0..1."""
        total = features.total(self.coverage_weight) + self.relevance * log_odds_of_relevance(features)
        return logistic(self.slope * total + self.intercept)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """A calibration as rag.settings has it."""
        return cls(
            row["slope"],
            row["intercept"],
            Thresholds(row["high"], row["medium"]),
            Thresholds(row["ceiling_high"], row["ceiling_medium"]),
            row.get("relevance") or 0.0,
            COVERAGE_WEIGHT if (weight := row.get("coverage_weight")) is None else weight,
            by_shipped_questions=row.get("source") == SHIPPED_QUESTIONS,
            other_languages=cls.of(row["other_languages"]) if row.get("other_languages") else None,
        )

    def row(self) -> dict[str, Any]:
        """The calibration as rag.settings has it."""
        return {
            "slope": self.slope,
            "intercept": self.intercept,
            "high": self.thresholds.high,
            "medium": self.thresholds.medium,
            "ceiling_high": self.ceiling.high,
            "ceiling_medium": self.ceiling.medium,
            **({"relevance": self.relevance} if self.relevance else {}),
            **({} if self.coverage_weight == COVERAGE_WEIGHT else {"coverage_weight": self.coverage_weight}),
            **({"other_languages": self.other_languages.row()} if self.other_languages else {}),
        }

    @classmethod
    def on_scale(cls, scale: SimilarityScale) -> Self:
        """The calibration of an uncalibrated model, by the position of a similarity on its scale: 0 is that
        of unrelated texts, 1 that of matching ones."""
        slope = SCALED_SLOPE / scale.width
        return cls(
            slope,
            SCALED_INTERCEPT - slope * scale.unrelated,
            SCALED_THRESHOLDS,
            NO_CEILING,
            coverage_weight=SCALED_COVERAGE_WEIGHT * scale.width,
            is_fitted=False,
        )


# Of the position on a model's scale: fitted to the two local models on seven sets (bench/eval_scale.py), with
# the errors in docs/benchmarks.md.
SCALED_SLOPE, SCALED_INTERCEPT, SCALED_COVERAGE_WEIGHT = 3.095, -4.367, 1.25
SCALED_THRESHOLDS = Thresholds(0.82, 0.245)
NOT_CALIBRATED = (
    "Confidence is not calibrated for the embedding model yet, so the level is medium at most. "
    "The worker calibrates it, or the operator by make calibrate."
)
BY_SHIPPED_QUESTIONS = (
    "Confidence is calibrated by questions of the product, not by questions on these documents."
)
OTHER_LANGUAGE = "The best passage is in another language than the question."
NOT_MEASURED = "The embedding model could not be measured yet, so no answer is withheld."
# The first is fitted on the sets that bench/results/confidence.json names, with their errors; the second on
# the shipped questions (shared/calibration), with its errors on public sets in docs/benchmarks.md.
CALIBRATIONS = {
    "all-MiniLM-L6-v2": Calibration(7.335, -5.369, Thresholds(0.828, 0.229), Thresholds(0.095, 0.08)),
    "multilingual-e5-small": Calibration(
        25.562,
        -22.769,
        Thresholds(0.77, 0.304),
        Thresholds(0.17, 0.165),
        coverage_weight=0.1012,
        by_shipped_questions=True,
        other_languages=Calibration(
            29.51, -23.936, Thresholds(1.0, 0.491), Thresholds(0.0, 0.0), coverage_weight=0.0
        ),
    ),
}


# Of a model whose scale could not be measured.
NO_CALIBRATION = Calibration(0.0, 0.0, Thresholds(1.0, 0.0), NO_CEILING, is_fitted=False)


def log_odds_of_relevance(features: ConfidenceFeatures) -> float:
    """0 without a reranker."""
    if features.relevance is None:
        return 0.0
    least, most = RELEVANCE_BOUNDS
    relevance = min(most, max(least, features.relevance))
    return math.log(relevance / (1 - relevance))


def calibration_name(model: str, reranker: str | None) -> str:
    """The name of a calibration in rag.settings: that of the embedding model, or of both models."""
    return f"{model} + {reranker}" if reranker else model


def judge(features: ConfidenceFeatures, matches: Sequence[Match], calibration: Calibration) -> Judgement:
    """The level by the score, at most medium where the matches lack a name, number, date, identifier or
    negation of the question, or one withdraws the value of another. By a calibration of other models
    it is medium at most, and by NO_CALIBRATION medium."""
    applied = calibration.of_language(features)
    score, thresholds, ceiling = applied.score(features), applied.thresholds, applied.ceiling
    level = level_of(score, thresholds) if matches else Confidence.LOW
    because = [
        f"The best passage has a similarity of {features.similarity:.2f}, and its best sentence has "
        f"{features.coverage:.0%} of the question's words by weight."
        if matches
        else "No passage was found."
    ]
    if applied.relevance and features.relevance is not None:
        because.append(f"The reranker's best score is {features.relevance:.2f}.")
    if features.is_other_language and applied is calibration:
        because.append(OTHER_LANGUAGE)
    if matches and calibration.by_shipped_questions:
        because.append(BY_SHIPPED_QUESTIONS)
    against = [] if applied is calibration else [OTHER_LANGUAGE]
    if matches and not applied.is_fitted:
        against.append(NOT_MEASURED if calibration is NO_CALIBRATION else NOT_CALIBRATED)
    if features.missing:
        against.append(f"None of the passages judged mentions {', '.join(features.missing)}.")
    if features.lacks_negation:
        against.append("None of the passages judged denies what the question denies.")
    if features.has_withdrawal:
        against.append(CONFLICT)
    judgement = Judgement(
        level, score if matches else 0.0, thresholds, tuple(because), features.missing, ceiling
    )
    return _at_most_medium(judgement, *against) if against else judgement


def limit_to_ceiling(judgement: Judgement, matches: Sequence[Match]) -> Judgement:
    """The judgement, with a level no higher than the rag contract's: the mean similarity of the five nearest
    of the matches that the request retrieved."""
    mean = mean_similarity(matches)
    highest = level_of(mean, judgement.ceiling) if matches else Confidence.LOW
    if highest.rank >= judgement.confidence.rank:
        return judgement
    reason = f"The mean similarity of the best chunks, {mean:.2f}, permits no more than {highest.value}."
    return replace(judgement, confidence=highest, because=(*judgement.because, reason))


def judge_by_contract(judgement: Judgement, matches: Sequence[Match], thresholds: Thresholds) -> Judgement:
    """The judgement with the rag contract's level: that of the mean similarity of the five nearest of the
    matches that the request retrieved. Later findings about the answer are reasons and leave the level,
    except that an abstention is low."""
    mean = mean_similarity(matches)
    reason = f"The mean similarity of the best chunks (five at most) is {mean:.2f}."
    because = tuple(each for each in judgement.because if each not in (NOT_CALIBRATED, NOT_MEASURED))
    return replace(
        judgement,
        confidence=level_of(mean, thresholds) if matches else Confidence.LOW,
        score=mean,
        thresholds=thresholds,
        because=(reason, *because) if matches else because,
        ceiling=thresholds,
        is_by_contract=True,
    )


def without_best_passage(judgement: Judgement) -> Judgement:
    """The judgement where the matches that answer lack the best of those judged. Its level stays."""
    reason = "The best passage is not among those of this response."
    return replace(judgement, because=(*judgement.because, reason))


def with_named_value(judgement: Judgement) -> Judgement:
    """The judgement, at least medium, where the question names a value of the matches word for word."""
    reason = "A passage has a value whose name, or whose row and column, the question repeats."
    return replace(judgement, confidence=Confidence.MEDIUM, because=(*judgement.because, reason))


def after_abstention(judgement: Judgement, *, is_extractive: bool = False) -> Judgement:
    """The judgement where the generator found no answer in the matches."""
    reason = (
        "No sentence that could answer has a word of the question."
        if is_extractive
        else "The model found no answer in the passages."
    )
    return replace(judgement, confidence=Confidence.LOW, because=(*judgement.because, reason))


def after_conflict(judgement: Judgement, notes: tuple[str, ...] = ()) -> Judgement:
    """The judgement, medium at most, where documents give different values for the same thing. `notes`: on
    those that contradict a model's answer."""
    return replace(_at_most_medium(judgement, CONFLICT), contradictions=notes)


def after_indirect(judgement: Judgement) -> Judgement:
    """The judgement, medium at most, where an extracted answer has no sentence that answers directly."""
    return _at_most_medium(judgement, "No sentence of the passages answers directly.")


def after_check(judgement: Judgement, unsupported: tuple[str, ...]) -> Judgement:
    """The judgement, medium at most where the matches do not support these sentences of the answer."""
    if not unsupported:
        return judgement
    reason = "The passages do not support every sentence of the answer."
    return replace(_at_most_medium(judgement, reason), unsupported=unsupported)


def after_unmentioned(judgement: Judgement, word: str, *, names_another: bool = False) -> Judgement:
    """The judgement where the sentences of an extracted answer do not mention a word of the question. Its
    level stays, unless they name another thing of the kind, such as another year: medium at most."""
    reason = f"The sentences quoted do not mention {word}."
    if names_another:
        return _at_most_medium(judgement, reason)
    return replace(judgement, because=(*judgement.because, reason))


def level_of(value: float, thresholds: Thresholds) -> Confidence:
    if value >= thresholds.high:
        return Confidence.HIGH
    return Confidence.MEDIUM if value >= thresholds.medium else Confidence.LOW


def mean_similarity(matches: Sequence[Match]) -> float:
    """The mean over the five nearest matches, 0 without any. A match without a similarity counts as 0."""
    best = sorted((match.similarity or 0.0 for match in matches), reverse=True)[:CEILING_TOP_N]
    # fsum: a mean of exactly 0.60 must not fall below it by rounding.
    return math.fsum(best) / len(best) if best else 0.0


def _at_most_medium(judgement: Judgement, *reasons: str) -> Judgement:
    is_lowered = judgement.confidence is Confidence.HIGH and not judgement.is_by_contract
    level = Confidence.MEDIUM if is_lowered else judgement.confidence
    because = tuple(dict.fromkeys((*judgement.because, *reasons)))
    return replace(judgement, confidence=level, because=because)


def logistic(value: float) -> float:
    # For large values exp would overflow.
    return (1 + math.tanh(value / 2)) / 2
