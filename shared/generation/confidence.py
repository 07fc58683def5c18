"""Confidence of matches by their similarity, without I/O."""

import math
from collections.abc import Sequence

from shared.types import Confidence, Judgement, Match, Thresholds

# The mean is taken over this many matches, or fewer if there are fewer (contract: top five).
CONFIDENCE_TOP_N = 5

# Similarities mean something only within one embedding model. The contract's numbers serve OpenAI's; the
# local model's were fitted by `make eval`, on questions that its report (in bench/results) does not use.
CONTRACT_THRESHOLDS = Thresholds(high=0.75, medium=0.60)
THRESHOLDS = {
    "text-embedding-3-small": CONTRACT_THRESHOLDS,
    "all-MiniLM-L6-v2": Thresholds(high=0.52, medium=0.41),
}


def thresholds_for(model: str, high: float | None, medium: float | None) -> Thresholds:
    """The model's thresholds, each replaced by the deployment's own where that is set."""
    default = THRESHOLDS.get(model, CONTRACT_THRESHOLDS)
    return Thresholds(
        high=default.high if high is None else high,
        medium=default.medium if medium is None else medium,
    )


def judge(matches: Sequence[Match], thresholds: Thresholds, judged: int = CONFIDENCE_TOP_N) -> Judgement:
    """Confidence by the mean similarity of the `judged` nearest matches. No match, or a match without a
    similarity, counts as 0."""
    best = sorted((match.similarity or 0.0 for match in matches), reverse=True)[:judged]
    # fsum: a mean of exactly 0.60 must not fall below it by rounding.
    mean = math.fsum(best) / len(best) if best else 0.0
    if best and mean >= thresholds.high:
        confidence = Confidence.HIGH
    elif best and mean >= thresholds.medium:
        confidence = Confidence.MEDIUM
    else:
        confidence = Confidence.LOW
    return Judgement(confidence, mean, thresholds)
