"""Measurement of retrieval quality and confidence: `make eval`.

    python -m bench.evaluate FOLDER [--questions 225] [--parts graph] [--neutral-titles]

FOLDER is a labelled set or has several (labelled_sets.py). Each corpus goes through the real ingestion
path into a temporary stack. bench/eval_quality.py measures retrieval, bench/eval_graph.py the effect of the
graph, bench/confidence_tables.py the confidence. bench/eval_support.py, the grounding check, needs only the
sets.
"""

import argparse
import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console

from bench import (
    confidence_tables,
    eval_graph,
    eval_quality,
    eval_support,
    figures,
)
from bench.labelled_sets import IngestedSet, ingest_set, with_neutral_titles
from shared.calibration.labelled_sets import InvalidSet, LabelledSet, sets_in
from shared.calibration.stored_search import calibration_name_of, observe_stored
from shared.generation import calibration_fit

# All of Cranfield's questions, and a sample of SQuAD's 1,000.
QUESTIONS = 225
PARTS = QUALITY, GRAPH, CONFIDENCE, SUPPORT = "quality", "graph", "confidence", "support"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.evaluate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of each set at most (%(default)s)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default: all")
    parser.add_argument("--neutral-titles", action="store_true", help='search documents titled "Note 17"')
    arguments = parser.parse_args()
    console = Console()
    if SUPPORT in arguments.parts:
        eval_support.report(arguments.folder, console)
    if set(arguments.parts) != {SUPPORT}:
        sets = sets_in(arguments.folder)
        if arguments.neutral_titles:
            sets = [with_neutral_titles(labelled_set) for labelled_set in sets]
        _search(sets, arguments.questions, arguments.parts, console)
    return 0


def _search(sets: Sequence[LabelledSet], limit: int, parts: Sequence[str], console: Console) -> None:
    about = figures.machine()
    qualities: dict[str, eval_quality.Runs] = {}
    graphs: list[eval_graph.CorpusRuns] = []
    observations: dict[str, list[calibration_fit.Observation]] = {}
    model = ""
    for labelled_set in sets:
        with ingest_set(labelled_set, console) as ingested:
            if labelled_set.relevant and QUALITY in parts:
                qualities[labelled_set.name] = _quality(ingested, labelled_set, limit, console)
            if labelled_set.relevant and GRAPH in parts:
                graphs += eval_graph.measure(ingested, labelled_set, limit, console)
            if CONFIDENCE in parts:
                others = [other for other in sets if other is not labelled_set]
                observations[labelled_set.name] = observe_stored(
                    ingested.services, ingested.reader, labelled_set, others=others
                )
                model = calibration_name_of(ingested.services)
    if qualities:
        _record(QUALITY, about, eval_quality.goals(qualities), list(qualities), console)
    if observations:
        summary = calibration_fit.report(observations, model)
        console.print_json(data=summary)
        # Figures of another set or reranker are not the built-in calibration's.
        recorded = json.loads(confidence_tables.RESULTS.read_text())
        if (model, set(observations)) == (recorded["model"], set(recorded["sets"])):
            confidence_tables.RESULTS.write_text(json.dumps(summary, indent=1) + "\n")
    if graphs:
        eval_graph.write(graphs)
        _record(eval_graph.PART, about, eval_graph.goals(graphs), {one.name for one in graphs}, console)


def _quality(
    ingested: IngestedSet, labelled_set: LabelledSet, limit: int, console: Console
) -> eval_quality.Runs:
    runs = eval_quality.measure(ingested, labelled_set, limit, console)
    eval_quality.write(eval_quality.lines(ingested, labelled_set, runs))
    return runs


def _record(
    part: str,
    about: dict[str, object],
    results: list[figures.Figure],
    labelled_sets: Collection[str],
    console: Console,
) -> None:
    figures.record(part, about, results, labelled_sets)
    figures.print_table(part, results, console)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InvalidSet as invalid:
        sys.exit(f"The folder is no labelled set: {invalid}")
