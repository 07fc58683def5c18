"""Tables of confidence and answers in docs/benchmarks.md, called by bench/benchmarks_page.py."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import eval_answers
from bench.figures import VERDICTS, Figure, markdown_table
from shared.generation import calibration_fit

# Of the built-in calibration, by set.
RESULTS = Path(__file__).parent / "results" / "confidence.json"


def errors() -> list[str]:
    """A row a set, and their mean: what a calibration gives that was fitted on the other sets."""
    by_set = {name: _shares_and_ranks(of_set) for name, of_set in _confidence_by_set().items()}
    by_set["mean"] = [fmean(column) for column in zip(*by_set.values(), strict=True)]
    rows = [
        (name, *(f"{100 * share:.1f} %" for share in values[:6]), *(f"{rank:.3f}" for rank in values[6:]))
        for name, values in by_set.items()
    ]
    columns = (
        "set", "answered", "high", "no answer, high", "hidden, high", "foreign, answered", "foreign, high",
        "AUROC hidden", "foreign", "calibration error",
    )  # fmt: skip
    return markdown_table(columns, rows)


def _confidence_by_set() -> dict[str, dict[str, Any]]:
    by_set: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text())["sets"]
    return by_set


def _shares_and_ranks(of_set: dict[str, Any]) -> list[float]:
    """The columns of the table, shares before ranks."""
    high, answered, auroc = of_set["high"], of_set["answered"], of_set["auroc"]
    return [
        answered["answerable"], high["answerable"], _wrongly_high(of_set), high["hidden"],
        answered["foreign"], high["foreign"],
        auroc["hidden"], auroc["foreign"], of_set["calibration_error"],
    ]  # fmt: skip


def _wrongly_high(of_set: dict[str, Any]) -> float:
    """The share of questions without an answer that is called high, in the fit's mixture."""
    hidden = calibration_fit.HIDDEN_SHARE
    return float(hidden * of_set["high"]["hidden"] + (1 - hidden) * of_set["high"]["foreign"])


def goals() -> list[str]:
    """A row a goal of confidence and answers."""
    by_set = _confidence_by_set()
    squad = by_set["abstain_squad2_3k"]
    answerable = json.loads(eval_answers.RESULTS.read_text())["groups"]["answerable"]
    cases = json.loads(eval_answers.RESULTS_OF_CASES.read_text())["groups"]["unanswerable"]
    verdicts = eval_answers.readings()
    wrongly_high = [_wrongly_high(of_set) for of_set in by_set.values()]

    def mean(value: Callable[[dict[str, Any]], float]) -> float:
        return fmean(value(of_set) for of_set in by_set.values())

    figures = [
        Figure("AUROC, foreign, SQuAD", squad["auroc"]["foreign"], "", goal=">= 0.98"),
        Figure("AUROC, foreign, mean", mean(lambda one: one["auroc"]["foreign"]), "", goal=">= 0.9"),
        Figure("high, SQuAD", 100 * squad["high"]["answerable"], "%", goal=">= 40"),
        Figure("high, mean", 100 * mean(lambda one: one["high"]["answerable"]), "%", goal=">= 25"),
        Figure("no answer, high, SQuAD", 100 * _wrongly_high(squad), "%", goal="<= 5"),
        Figure("no answer, high, mean", 100 * fmean(wrongly_high), "%", goal="<= 5"),
        Figure("no answer, high, the worst set", 100 * max(wrongly_high), "%", goal="<= 5"),
        Figure("answered, SQuAD", 100 * squad["answered"]["answerable"], "%", goal=">= 85"),
        Figure(
            "answered, demo's documents and handbook",
            100 * answerable["answered"] / answerable["questions"],
            "%",
            goal=">= 90",
        ),
        Figure("right, of these, by reading", 100 * verdicts["right"] / verdicts.total(), "%", goal=">= 90"),
        Figure(f"no answer, high, of {cases['questions']} cases", cases["high"], "", goal="<= 1"),
    ]  # fmt: skip
    rows = [
        (goal.name, f"{goal.value:.3g} {goal.unit}".strip(), str(goal.goal), VERDICTS[goal.holds])
        for goal in figures
    ]
    return markdown_table(("figure", "value", "goal", ""), rows)


def agreement() -> list[str]:
    """A row a comparison of the levels that the APIs give."""
    counts = json.loads(eval_answers.RESULTS.read_text())["agreement"]
    rows = {"all five APIs, the same level": "same level", "rag API, lowered by its rule": "rag lower"}
    return markdown_table(
        ("levels", "questions", "of"),
        ((name, str(counts[key]), str(counts["questions"])) for name, key in rows.items()),
    )


def answers(results: Path = eval_answers.RESULTS) -> list[str]:
    """A row a kind of question; without an argument over the demo's documents and the handbook."""
    groups = json.loads(results.read_text())["groups"]
    counts = ("questions", "answered", "high", "with_evidence")
    return markdown_table(
        ("questions", "of", "answered", "high", "with the evidence in the answer"),
        (
            (name.replace("_", " "), *(str(group[count]) for count in counts))
            for name, group in groups.items()
        ),
    )
