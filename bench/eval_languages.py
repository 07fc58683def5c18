"""Questions in four languages over English documents, with the embedder of the environment.

    python -m bench.eval_languages

Searches and judges the questions of bench/datasets/multilingual over the English documents of the demo, in a
temporary stack. Confidence is judged twice: as installed, and by a calibration that was fitted on the other
half of the questions, in all languages. The figures go to bench/results/languages.jsonl, by model.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from bench.figures import markdown_table, print_lines, replace_lines
from bench.labelled_sets import IngestedSet, ingest_set
from local.demo_corpus import CORPUS, read_file
from shared import pipeline
from shared.calibration.labelled_sets import Item, LabelledSet
from shared.calibration.stored_search import calibration_name_of, observe_stored
from shared.generation.calibration_fit import ANSWERABLE, FOREIGN, Observation, fit_languages
from shared.generation.confidence import Calibration
from shared.types import Confidence, Filters, Mode, Query

QUESTIONS = Path(__file__).parent / "datasets" / "multilingual" / "questions.tsv"
RESULTS = Path(__file__).parent / "results" / "languages.jsonl"
LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish"}
DEPTHS = 1, 5
# Passages of one document can fill the first places.
PASSAGES = 30
COLUMNS = (
    "model", "questions", "semantic: hit@1", "hit@5", "hybrid: hit@1", "hit@5", "refused",
    "foreign, answered", "calibrated: refused", "foreign, answered",
)  # fmt: skip
Line = dict[str, Any]


def main() -> None:
    console = Console()
    sets = {language: labelled_set(language) for language in LANGUAGES}
    with ingest_set(sets["en"], console) as ingested:
        lines = measure(ingested, sets)
    replace_lines(RESULTS, lines, lambda line: line["model"] == lines[0]["model"])
    print_lines(rows(lines), console)


def labelled_set(language: str) -> LabelledSet:
    """The English documents, and the questions in that language."""
    documents = [
        Item(name, document.text, document.title)
        for path in sorted(CORPUS.rglob("*.md"))
        if (document := read_file(path, name := str(path.relative_to(CORPUS))).document).lang == "en"
    ]
    with QUESTIONS.open(newline="") as file:
        entries = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    relevant = {entry["id"]: dict.fromkeys(entry["documents"].split(","), 1) for entry in entries}
    questions = [
        Item(entry["id"], entry[language], label="answerable" if entry["documents"] else "out_of_corpus")
        for entry in entries
    ]
    return LabelledSet(f"multilingual_{language}", documents, questions, relevant)


def measure(ingested: IngestedSet, sets: dict[str, LabelledSet]) -> list[Line]:
    """A line for each language."""
    halves = {
        language: [
            observe_stored(ingested.services, ingested.reader, half_of(labelled, half)) for half in range(2)
        ]
        for language, labelled in sets.items()
    }
    calibrations = [fit_languages([of[half] for of in halves.values()]) for half in range(2)]
    lines = []
    for language, labelled in sets.items():
        answered = [
            (item, _is_answered(calibration, item))
            for calibration, items in zip(reversed(calibrations), halves[language], strict=True)
            for item in items
        ]
        shares = {**hits(ingested, labelled), **judged(ingested, labelled), **calibrated(answered)}
        line = {
            "model": calibration_name_of(ingested.services),
            "language": language,
            "questions": len(labelled.questions),
        }
        lines.append({**line, **{name: round(share, 3) for name, share in shares.items()}})
    return lines


def _is_answered(calibration: Calibration, item: Observation) -> bool:
    applied = calibration.of_language(item.features)
    return applied.score(item.features) >= applied.thresholds.medium


def half_of(labelled: LabelledSet, half: int) -> LabelledSet:
    """Every second question: neighbours are about the same document."""
    return LabelledSet(labelled.name, (), labelled.questions[half::2], labelled.relevant)


def hits(ingested: IngestedSet, labelled: LabelledSet) -> dict[str, float]:
    """The shares of questions with a relevant document among the first documents."""
    questions = [item for item in labelled.questions if item.label == ANSWERABLE]
    figures = {}
    for mode in (Mode.SEMANTIC, Mode.HYBRID):
        rankings = [documents(ingested, item.text, mode) for item in questions]
        for depth in DEPTHS:
            figures[f"{mode.value}_hit@{depth}"] = fmean(
                not labelled.relevant[item.id].keys().isdisjoint(ranking[:depth])
                for item, ranking in zip(questions, rankings, strict=True)
            )
    return figures


def documents(ingested: IngestedSet, text: str, mode: Mode) -> list[str]:
    """Names of the documents in the order of their best passages."""
    matches = pipeline.search(ingested.services, ingested.reader, Query(text, PASSAGES, mode=mode)).matches
    return ingested.ranking(matches)


def judged(ingested: IngestedSet, labelled: LabelledSet) -> dict[str, float]:
    answered: dict[str | None, list[bool]] = {ANSWERABLE: [], "out_of_corpus": []}
    for item in labelled.questions:
        query = pipeline.confidence_query(item.text, Filters())
        matches = pipeline.search(ingested.services, ingested.reader, query).matches
        judgement = pipeline.judge_matches(ingested.services, ingested.reader, matches, item.text)
        answered[item.label].append(judgement.confidence is not Confidence.LOW)
    return {"refused": 1 - fmean(answered[ANSWERABLE]), "foreign_answered": fmean(answered["out_of_corpus"])}


def calibrated(answered: Sequence[tuple[Observation, bool]]) -> dict[str, float]:
    of = {
        kind: fmean(is_answered for item, is_answered in answered if item.kind == kind)
        for kind in (ANSWERABLE, FOREIGN)
    }
    return {"calibrated_refused": 1 - of[ANSWERABLE], "calibrated_foreign_answered": of[FOREIGN]}


def rows(lines: Sequence[Line]) -> list[str]:
    """The table of these lines."""
    return markdown_table(
        COLUMNS,
        (
            (
                line["model"],
                LANGUAGES[line["language"]],
                *(f"{100 * value:.0f} %" for value in list(line.values())[3:]),
            )
            for line in lines
        ),
    )


if __name__ == "__main__":
    main()
