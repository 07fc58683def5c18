"""Measure how well documents are found, and fit the confidence thresholds: what `make eval` runs.

    python -m bench.evaluate FOLDER [--questions 225] [--parts graph]

FOLDER is a labelled set or holds several (bench/sets.py). Each corpus goes through the real ingestion path
into a stack of its own, and is asked there: bench/eval_quality.py what is found, bench/eval_graph.py what the
graph adds to that, bench/eval_confidence.py when to answer. bench/eval_support.py, how answers are checked,
needs the sets alone.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench import eval_confidence, eval_graph, eval_quality, eval_support, figures, quality_picture
from bench.sets import Labelled, Library, ingested, sets_in

# Reranking takes a second a question. So many are all of Cranfield's, and a sample of SQuAD's 1,000.
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
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="all unless said")
    given = parser.parse_args()
    console = Console()
    if SUPPORT in given.parts:
        eval_support.report(given.folder, console)
    if set(given.parts) != {SUPPORT}:
        _search(sets_in(given.folder), given.questions, given.parts, console)
    return 0


def _search(sets: Sequence[Labelled], at_most: int, parts: Sequence[str], console: Console) -> None:
    about = figures.machine()
    qualities: dict[str, eval_quality.Runs] = {}
    graphs: list[eval_graph.Measured] = []
    for labelled in sets:
        with ingested(labelled, console) as library:
            if labelled.relevant and QUALITY in parts:
                qualities[labelled.name] = _quality(library, labelled, at_most, console)
            if labelled.relevant and GRAPH in parts:
                graphs += eval_graph.measure(library, labelled, at_most, console)
            if eval_confidence.is_labelled(labelled) and CONFIDENCE in parts:
                eval_confidence.report(library, labelled, console)
    if qualities:
        _tell(QUALITY, about, eval_quality.goals(qualities), console)
        quality_picture.write()
    if graphs:
        eval_graph.write(graphs)
        _tell(eval_graph.PART, about, eval_graph.goals(graphs), console)


def _quality(library: Library, labelled: Labelled, at_most: int, console: Console) -> eval_quality.Runs:
    runs = eval_quality.measure(library, labelled, at_most, console)
    eval_quality.write(eval_quality.lines(library, labelled, runs))
    return runs


def _tell(part: str, about: dict[str, object], found: list[figures.Figure], console: Console) -> None:
    figures.record(part, about, found)
    figures.table(part, found, console)


if __name__ == "__main__":
    sys.exit(main())
