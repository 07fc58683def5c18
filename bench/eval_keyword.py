"""Keyword search beside bm25s, by set and question length: called by bench/evaluate.py.

All judged questions of a set, through the same pipeline as in bench/eval_quality.py. Means and the paired
bootstrap's interval of the difference go to bench/results/keyword.jsonl.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from bench.eval_quality import BASELINE, KEYWORD, KEYWORD_LOSS, MEASURE, searches
from bench.labelled_sets import IngestedSet, judged
from bench.ranking import difference, measures
from shared.calibration.labelled_sets import LabelledSet

RESULTS = Path(__file__).parent / "results" / "keyword.jsonl"
# Number of words: from and below.
LENGTHS = {"all": (0, 10**9), "up to 15": (0, 16), "16 to 39": (16, 40), "40 and more": (40, 10**9)}


def measure(ingested: IngestedSet, labelled_set: LabelledSet, console: Console) -> list[dict[str, Any]]:
    """A line for each length that questions of the set have."""
    questions = judged(labelled_set, len(labelled_set.questions))
    offered = searches(ingested, labelled_set)
    scores = {
        method: {
            item.id: 100 * measures(offered[method](item.text), labelled_set.relevant[item.id])[MEASURE]
            for item in questions
        }
        for method in (BASELINE, KEYWORD)
    }
    lines: list[dict[str, Any]] = []
    for words, (low, high) in LENGTHS.items():
        chosen = [item.id for item in questions if low <= len(item.text.split()) < high]
        if not chosen:
            continue
        of = {method: {name: values[name] for name in chosen} for method, values in scores.items()}
        means = {method: round(fmean(values.values()), 2) for method, values in of.items()}
        line = {"set": labelled_set.name, "words": words, "questions": len(chosen), **means}
        lines.append({**line, "difference": str(difference(of[KEYWORD], of[BASELINE]))})
        console.print(str(lines[-1]), highlight=False)
    return lines


def holds(line: Mapping[str, Any]) -> bool:
    """Whether the difference is no less than the goal, and its interval reaches 0."""
    high = float(line["difference"].rstrip("]").rpartition(", ")[2])
    return line[KEYWORD] - line[BASELINE] >= KEYWORD_LOSS and high >= 0


def write(measured: Sequence[Mapping[str, Any]]) -> None:
    """Replaces the lines of the same sets."""
    sets = {line["set"] for line in measured}
    others = [line for line in results() if line["set"] not in sets]
    RESULTS.write_text("".join(json.dumps(line) + "\n" for line in [*others, *measured]))


def results() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]
