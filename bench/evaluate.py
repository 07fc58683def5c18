"""Measure how well documents are found, and fit the confidence thresholds: what `make eval` runs.

    python -m bench.evaluate FOLDER [--questions 225]

FOLDER is a labelled set or holds several (bench/sets.py). Each corpus goes through the real ingestion path
into a stack of its own, and is asked there: bench/eval_quality.py what is found, bench/eval_confidence.py
when to answer. bench/eval_support.py, how answers are checked, needs the sets alone.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from bench import eval_confidence, eval_quality, eval_support, figures, quality_picture
from bench.sets import ingested, sets_in

# Reranking takes a second a question. So many are all of Cranfield's, and a sample of SQuAD's 1,000.
QUESTIONS = 225


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.evaluate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of each set at most (%(default)s)")
    given = parser.parse_args()
    console = Console()
    eval_support.report(given.folder, console)
    about = figures.machine()
    measured: dict[str, eval_quality.Runs] = {}
    for labelled in sets_in(given.folder):
        with ingested(labelled, console) as library:
            if labelled.relevant:
                runs = eval_quality.measure(library, labelled, given.questions, console)
                eval_quality.write(eval_quality.lines(library, labelled, runs))
                measured[labelled.name] = runs
            if eval_confidence.is_labelled(labelled):
                eval_confidence.report(library, labelled, console)
    if measured:
        found = eval_quality.goals(measured)
        figures.record("quality", about, found)
        figures.table("quality", found, console)
        quality_picture.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
