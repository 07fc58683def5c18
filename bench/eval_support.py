"""Errors of the grounding check, and the fit of its limits: called by bench/evaluate.py. Needs no stack.

    python -m bench.eval_support FOLDER

From the documents of labelled sets come sentences that five passages support (unchanged; with words left out,
moved, inflected; two of two documents joined; questions combined with their answers) and sentences that they
do not support (of similar documents and of others; with a number, a name or a negation changed; questions
with another question's answer; invented quotations): bench/perturbed_sentences.py. Half of the documents, by
a hash of their ids, fit the limits; the other half is reported in bench/results/support.json. A set with
questions is also reported with all its documents.
"""

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any
from zlib import crc32

from rich.console import Console

from bench.baseline_bm25 import bm25
from bench.figures import markdown_table
from bench.perturbed_sentences import VERBATIM, Case, QuestionAnswer, claims_about
from shared.calibration.labelled_sets import LabelledSet, match_of, sets_in
from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.sentence_support import LIMITS, SupportThresholds
from shared.generation.grounding.types import CheckResult, Verdict
from shared.types import Match

RESULTS = Path(__file__).parent / "results" / "support.json"
DOCUMENTS, PASSAGES = 100, 5
# Of limits that are worth about the same, the strictest is taken.
TOLERANCE = 0.01
EDITED = "edited sentences, all kinds"
EXCHANGED = "names exchanged or of elsewhere, all kinds"
KINDS_OF_EXCHANGED = (
    "question with a name of elsewhere",
    "two names exchanged",
    "name of elsewhere in it",
    "name of elsewhere in it, words left out",
)
STEPS = [step / 20 for step in range(10, 19)]


@dataclass(frozen=True)
class Subject:
    """Sentences about a document, and the passages that a search for it would return."""

    id: str
    matches: Sequence[Match]
    cases: Sequence[Case]

    @property
    def fits(self) -> bool:
        return crc32(self.id.encode()) % 2 == 0


def subjects_of(
    labelled_set: LabelledSet, request: Mapping[str, Sequence[QuestionAnswer]], limit: int | None = DOCUMENTS
) -> list[Subject]:
    """Of at most so many documents, those whose ids hash lowest."""
    documents = {item.id: item for item in labelled_set.documents}
    search = bm25(labelled_set.documents)
    # Documents without a question give no information about answers.
    chosen = [item for item in labelled_set.documents if item.id in request] or list(labelled_set.documents)
    chosen = sorted(chosen, key=lambda item: crc32(item.id.encode()))[:limit]
    results = []
    for place, item in enumerate(chosen):
        near = [documents[name] for name in search(item.text) if name != item.id]
        context, unseen = [item, *near[: PASSAGES - 1]], near[PASSAGES - 1 :]
        far = chosen[place - len(chosen) // 2]
        draw = random.Random(item.id)  # noqa: S311  # chooses words
        cases = claims_about(context, unseen, far, request.get(item.id, ()), draw)
        results.append(Subject(item.id, [match_of(each, each.text, lang="en") for each in context], cases))
    return results


def accuracies(subjects: Iterable[Subject], limits: SupportThresholds) -> dict[str, tuple[float, int]]:
    """By kind of sentence, the share judged rightly, and of how many."""
    right: dict[str, list[bool]] = defaultdict(list)
    for subject in subjects:
        checker = Checker(subject.matches, limits)
        for case in subject.cases:
            right[case.kind].append(is_right(case, checker.check(case.text)))
    return {kind: (fmean(entry), len(entry)) for kind, entry in right.items()}


def is_right(case: Case, checked: CheckResult) -> bool:
    """Supported as it should be; or, for invented quotations, at least not shown as a quotation."""
    if case.quotes and '"' not in checked.text:
        return True
    return (checked.verdict is Verdict.SUPPORTED) == case.holds


def balanced_accuracy(subjects: Sequence[Subject], limits: SupportThresholds) -> float:
    """The mean share of what holds plus the mean share of what does not, every kind alike."""
    holds = {case.kind: case.holds for subject in subjects for case in subject.cases}
    accuracy = accuracies(subjects, limits)
    return sum(fmean(accuracy[kind][0] for kind in accuracy if holds[kind] is side) for side in (True, False))


def fit(subjects: Sequence[Subject]) -> SupportThresholds:
    """The limits one after the other: two windows never need less than one."""

    def strictest(steps: Sequence[float], limits: Callable[[float], SupportThresholds]) -> float:
        by_name = {step: balanced_accuracy(subjects, limits(step)) for step in steps}
        return max(step for step in steps if by_name[step] >= max(by_name.values()) - TOLERANCE)

    alone = strictest(STEPS, lambda step: SupportThresholds(step, max(step, 0.75)))
    return SupportThresholds(
        alone,
        strictest([step for step in STEPS if step >= alone], lambda step: SupportThresholds(alone, step)),
    )


def questions_in(folder: Path) -> dict[str, list[QuestionAnswer]]:
    """Questions with answers by the document that holds them, as far as a set's meta tells."""
    by_name: dict[str, list[QuestionAnswer]] = defaultdict(list)
    for line in (folder / "queries.jsonl").read_text().splitlines():
        item: dict[str, Any] = json.loads(line)
        meta = item.get("meta", {})
        about, answers = meta.get("source_doc"), meta.get("answers") or []
        if about and (answers or meta.get("answerable") is False):
            by_name[about].append(QuestionAnswer(item["text"], answers[0] if answers else None))
    return by_name


def report(folder: Path, console: Console) -> None:
    """Fit, print and write what the other half gives, at the limits in use."""
    subjects: list[Subject] = []
    names, whole = [], {}
    for labelled_set in sets_in(folder):
        place = folder if (folder / "corpus.jsonl").exists() else folder / labelled_set.name
        questions = questions_in(place)
        subjects += subjects_of(labelled_set, questions)
        names.append(labelled_set.name)
        if questions:
            of_set = subjects_of(labelled_set, questions, limit=None)
            whole[labelled_set.name] = shares([subject for subject in of_set if not subject.fits])
    fitting = [subject for subject in subjects if subject.fits]
    reported = [subject for subject in subjects if not subject.fits]
    fitted = fit(fitting)
    started = perf_counter()
    accuracy = accuracies(reported, LIMITS)
    elapsed = perf_counter() - started
    summary = {
        "datasets": names,
        "fitted_on": sum(len(subject.cases) for subject in fitting),
        "fitted": asdict(fitted),
        "in_use": asdict(LIMITS),
        "reported_on": sum(count for _, count in accuracy.values()),
        "milliseconds_a_sentence": round(1000 * elapsed / sum(count for _, count in accuracy.values()), 2),
        **shares(reported, accuracy),
        "whole": whole,
    }
    RESULTS.write_text(json.dumps(summary, indent=2) + "\n")
    console.print_json(data=summary)


def shares(
    subjects: Sequence[Subject], accuracy: Mapping[str, tuple[float, int]] | None = None
) -> dict[str, dict[str, list[float]]]:
    """By kind, of how many sentences which share is kept (those that hold) or caught (the others)."""
    accuracy = accuracy or accuracies(subjects, LIMITS)
    holds = {case.kind: case.holds for subject in subjects for case in subject.cases}
    return {
        side: {
            kind: [round(share, 3), count]
            for kind, (share, count) in accuracy.items()
            if holds[kind] == valid
        }
        for side, valid in (("kept", True), ("caught", False))
    }


def table() -> list[str]:
    """The table of docs/benchmarks.md, as it was measured last: columns for the sample, and for each set with
    all its documents."""
    summary = json.loads(RESULTS.read_text())
    samples = [summary, *summary["whole"].values()]
    edited = [kind for kind in summary["kept"] if kind != VERBATIM]
    true_ones = [{**sample["kept"], EDITED: _mean_of(sample["kept"], edited)} for sample in samples]
    false_ones = [
        {**sample["caught"], EXCHANGED: _mean_of(sample["caught"], KINDS_OF_EXCHANGED)} for sample in samples
    ]
    rows = [
        (kind, side, *(cell for sample in of_side for cell in _cells(*sample.get(kind, (0, 0)))))
        for side, of_side in (("kept", true_ones), ("caught", false_ones))
        for kind in of_side[0]
    ]
    columns = ("sentences", "", "100 documents of each set", "of", "all documents of SQuAD", "of")
    return markdown_table(columns, rows)


def _mean_of(shares_by_kind: Mapping[str, Sequence[float]], kinds: Collection[str]) -> tuple[float, int]:
    """The share of all sentences of these kinds, each sentence alike, and of how many."""
    pairs = [(shares_by_kind[kind][0], int(shares_by_kind[kind][1])) for kind in kinds]
    total = sum(count for _, count in pairs)
    return sum(share * count for share, count in pairs) / total, total


def _cells(share: float, count: int) -> tuple[str, str]:
    return (f"{100 * share:.1f} %", f"{count:,}") if count else ("", "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.eval_support", description=__doc__)
    parser.add_argument("folder", type=Path)
    report(parser.parse_args().folder, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main())
