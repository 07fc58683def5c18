"""Calibration of confidence, fitted to labelled questions and written to a database: `make calibrate`.

    python -m bench.calibrate FOLDER [--budget 0.04] [--database URL]

FOLDER is a labelled set or has several (bench/labelled_sets.py): your documents and questions. A single set
needs questions with the label out_of_corpus; of several sets each one's questions are foreign to the others.
The documents go into a temporary stack with the embedding model of the environment, as for `make eval`. The
report has the errors to expect, each set's under a calibration that was fitted on the others.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from psycopg.types.json import Jsonb
from rich.console import Console

from bench import eval_confidence
from bench.labelled_sets import ingest_set
from shared.calibration.labelled_sets import LabelledSet, sets_in
from shared.generation import calibration_fit


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.calibrate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=float, default=calibration_fit.BUDGET)
    parser.add_argument("--database", help="URL of the database whose rag.settings gets the calibration")
    arguments = parser.parse_args()
    if not 0 < arguments.budget < 1:
        parser.error("--budget must be between 0 and 1")
    console = Console()
    sets = sets_in(arguments.folder)
    observations, model, coverage_weight = observe_sets(sets, console)
    try:
        summary = calibration_fit.report(observations, model, arguments.budget, coverage_weight)
    except ValueError as error:
        parser.error(str(error))
    console.print_json(data=summary)
    if arguments.database:
        write(arguments.database, model, summary)
        console.print(f"rag.settings has the calibration of {model}.")
    return 0


def observe_sets(
    sets: list[LabelledSet], console: Console
) -> tuple[dict[str, list[calibration_fit.Observation]], str, float]:
    """Each set's observations, the name of their calibration, and its weight of the coverage."""
    observations, model, weight = {}, "", 0.0
    for labelled_set in sets:
        others = [other for other in sets if other is not labelled_set]
        with ingest_set(labelled_set, console) as ingested:
            weight = weight or eval_confidence.coverage_weight_of(ingested.services.embedder)
            observations[labelled_set.name] = eval_confidence.observe(ingested, labelled_set, others, weight)
            model = eval_confidence.model_of(ingested)
    return observations, model, weight


def write(database: str, model: str, summary: dict[str, object]) -> None:
    """Replace the calibration of that name in rag.settings; others remain."""
    calibration = summary["calibration"]
    assert isinstance(calibration, dict)  # report makes it
    about = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "budget": summary["budget"],
        "sets": summary["sets"],
    }
    value = json.loads(json.dumps({model: {**calibration, **about}}))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update rag.settings set calibrations = calibrations || %s", [Jsonb(value)])


if __name__ == "__main__":
    sys.exit(main())
