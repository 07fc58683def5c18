"""Fit the confidence thresholds of the embedder at hand, and report on questions that the fit did not see:
called by bench/evaluate.py for a set whose questions are labelled.

A question's label is "answerable", "out_of_corpus" or anything else. The figures in docs/benchmarks.md
are from 3,000 questions of SQuAD 2.0 (CC BY-SA, so not kept here) over 815 of its paragraphs: 1,000
answerable, 1,000 of its adversarial unanswerable ones, 1,000 about articles that are not among the 815.

Every question goes through the real search. Its number is the contract's: the mean similarity of its five
best chunks. Half of the questions (by a hash of their id) fit two thresholds, the other half is reported:

- medium: where questions of the corpus and questions foreign to it are told apart best (Youden's J:
  largest difference between the shares let through);
- high: where at most 1 % of the foreign ones are still let through.

Questions that are on topic but not answered look the same to this rule as answerable ones; their share is
reported, not fitted: no threshold on similarity can tell them apart.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from rich.console import Console

from bench.labelled_sets import IngestedSet, LabelledSet
from shared import pipeline
from shared.generation.confidence import CONTRACT_THRESHOLDS, judge
from shared.types import Query

RESULTS = Path(__file__).parent / "results"
ANSWERABLE, FOREIGN = "answerable", "out_of_corpus"


def is_labelled(labelled_set: LabelledSet) -> bool:
    return {ANSWERABLE, FOREIGN} <= {item.label for item in labelled_set.questions}


def measure(ingested: IngestedSet, labelled_set: LabelledSet) -> dict[str, dict[str, float]]:
    """Each question's mean similarity by label and id."""
    means: dict[str, dict[str, float]] = defaultdict(dict)
    for item in labelled_set.questions:
        result = pipeline.search(ingested.core, ingested.reader, Query(item.text, top_k=5, rerank=False))
        mean = judge(result.matches, CONTRACT_THRESHOLDS).mean_similarity
        means[str(item.label)][item.id] = mean
    return means


def halves(means: dict[str, float]) -> tuple[list[float], list[float]]:
    """The half to fit on and the half to report, by a hash of the query's id."""
    fit = [value for name, value in means.items() if crc32(name.encode()) % 2 == 0]
    report = [value for name, value in means.items() if crc32(name.encode()) % 2 == 1]
    return fit, report


def share_from(values: Sequence[float], threshold: float) -> float:
    return sum(value >= threshold for value in values) / len(values)


def fit(answerable: Sequence[float], foreign: Sequence[float]) -> tuple[float, float]:
    """(high, medium), to two decimals."""
    steps = [step / 100 for step in range(101)]
    medium = max(steps, key=lambda step: share_from(answerable, step) - share_from(foreign, step))
    high = next(step for step in steps if step > medium and share_from(foreign, step) <= 0.01)
    return high, medium


def report(ingested: IngestedSet, labelled_set: LabelledSet, console: Console) -> None:
    """Fit, print and write bench/results/confidence_MODEL.json."""
    model, means = ingested.core.embedder.model, measure(ingested, labelled_set)
    fitted: dict[str, list[float]] = {}
    reported: dict[str, list[float]] = {}
    for label, values in means.items():
        fitted[label], reported[label] = halves(values)
    high, medium = fit(fitted[ANSWERABLE], fitted[FOREIGN])
    contract = CONTRACT_THRESHOLDS
    summary = {
        "model": model,
        "dataset": labelled_set.name,
        "fitted_on": {label: len(values) for label, values in fitted.items()},
        "high": high,
        "medium": medium,
        "reported_on": {label: len(values) for label, values in reported.items()},
        "answered": {label: round(share_from(values, medium), 3) for label, values in reported.items()},
        "answered_with_high_confidence": {
            label: round(share_from(values, high), 3) for label, values in reported.items()
        },
        "answered_at_the_contracts_numbers": {
            label: round(share_from(values, contract.medium), 3) for label, values in reported.items()
        },
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"confidence_{model.replace('/', '_')}.json"
    path.write_text(json.dumps(summary, indent=2) + "\n")
    console.print_json(data=summary)
