"""Ranking measures, and the significance of their differences."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

import numpy as np

DEPTH = 10
RESAMPLES = 10_000
SEED = 20_261_122


def by_best_chunk(documents: Iterable[str]) -> list[str]:
    """The documents of chunks, in the order of each one's best."""
    return list(dict.fromkeys(documents))


def measures(ranking: Sequence[str], relevant: Mapping[str, int]) -> dict[str, float]:
    """nDCG@10 with exponential gains (Burges et al. 2005), Recall@5, @8 and @10, whether all relevant
    documents are among eight or ten, and the reciprocal of the first one's place; each 0 to 1."""
    gains = [relevant.get(document, 0) for document in ranking]
    first = next((place for place, gain in enumerate(gains[:DEPTH], 1) if gain), None)
    return {
        "nDCG@10": _gain(gains) / _gain(sorted(relevant.values(), reverse=True)),
        "Recall@5": _hits(gains, 5) / len(relevant),
        "Recall@8": _hits(gains, 8) / len(relevant),
        "Recall@10": _hits(gains, DEPTH) / len(relevant),
        "All@8": float(_hits(gains, 8) == len(relevant)),
        "All@10": float(_hits(gains, DEPTH) == len(relevant)),
        "MRR@10": 1 / first if first else 0.0,
    }


def _gain(gains: Sequence[int]) -> float:
    return math.fsum((2.0**gain - 1) / math.log2(place + 1) for place, gain in enumerate(gains[:DEPTH], 1))


def _hits(gains: Sequence[int], places: int) -> int:
    return sum(gain > 0 for gain in gains[:places])


@dataclass
class Run:
    """Of one way to search one set: each question's measures in hundredths, and the seconds it took."""

    by_question: dict[str, dict[str, float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def mark(self, question: str, ranking: Sequence[str], relevant: Mapping[str, int]) -> None:
        shares = measures(ranking, relevant)
        self.by_question[question] = {name: 100 * share for name, share in shares.items()}

    def of(self, measure: str) -> dict[str, float]:
        return {question: entry[measure] for question, entry in self.by_question.items()}

    def mean(self, measure: str) -> float:
        return fmean(self.of(measure).values())

    def means(self, names: Iterable[str]) -> str:
        """In words, with the median time."""
        means = ", ".join(f"{name} {self.mean(name):.1f}" for name in names)
        return f"{means}; {1000 * median(self.seconds):.1f} ms"


@dataclass(frozen=True)
class Difference:
    """The mean difference of the same questions, and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def difference(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Difference:
    """Paired bootstrap (Efron and Tibshirani 1993) over the questions, which both must have."""
    own = np.array([value - theirs[question] for question, value in ours.items()])
    draw = np.random.default_rng(SEED)
    means = own[draw.integers(0, len(own), (RESAMPLES, len(own)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(float(own.mean()), float(low), float(high))
