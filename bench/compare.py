"""Comparison of two configurations on the same questions, with intervals: `make compare`.

    python -m bench.compare FOLDER --change NAME=VALUE [--change NAME=VALUE ...]

FOLDER is a labelled set or has several (labelled_sets.py). The environment is compared with the same
environment after the changes. NAME is a setting of the functions in capitals (RAG_RERANK_ENABLED), a column
of rag.settings (similarity_share), or mode: that of the searches, hybrid by default. A change of the
embedding model or of chunks needs another ingestion and is not possible here. Each difference has the 95 %
interval of the paired bootstrap over the questions of all sets.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from psycopg import sql
from rich.console import Console
from rich.table import Table

from bench.labelled_sets import IngestedSet, ingest_set
from bench.ranking import difference, measures
from shared import pipeline
from shared.calibration.labelled_sets import InvalidSet, LabelledSet, sets_in
from shared.config import Settings
from shared.services import Services
from shared.types import Confidence, Filters, Mode, Query

MODE = "mode"
CHUNKS = 30
QUESTIONS = 500
ANSWERED, WITHHELD, EITHER = (
    "answerable questions answered",
    "other questions withheld",
    "answered, or withheld",
)
# By measure and question, in hundredths.
Measures = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Configuration:
    """`settings`: of the functions, by their names in capitals; `columns`: of rag.settings."""

    settings: Mapping[str, str]
    columns: Mapping[str, str]
    mode: Mode = Mode.HYBRID

    @classmethod
    def of(cls, changes: Iterable[str]) -> "Configuration":
        """Raises ValueError for a change without a name, an unknown setting or an unknown mode."""
        values = dict(change.split("=", 1) for change in changes)
        settings = {name: value for name, value in values.items() if name.isupper()}
        if unknown := [name for name in settings if name.lower() not in Settings.model_fields]:
            raise ValueError(f"{', '.join(unknown)}: no setting of this project")
        columns = {name: value for name, value in values.items() if not name.isupper() and name != MODE}
        return cls(settings, columns, Mode(values.get(MODE, Mode.HYBRID)))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--change", action="append", required=True, metavar="NAME=VALUE")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of each set at most (%(default)s)")
    arguments = parser.parse_args()
    try:
        changed = Configuration.of(arguments.change)
    except ValueError as error:
        parser.error(str(error))
    console = Console()
    before: Measures = {}
    after: Measures = {}
    for labelled_set in sets_in(arguments.folder):
        with ingest_set(labelled_set, console) as ingested:
            first, second = compare(ingested, labelled_set, changed, arguments.questions)
        for total, part in ((before, first), (after, second)):
            for name, values in part.items():
                total.setdefault(name, {}).update(values)
    console.print(table(before, after, ", ".join(arguments.change)))
    return 0


def compare(
    ingested: IngestedSet, labelled_set: LabelledSet, changed: Configuration, limit: int = QUESTIONS
) -> tuple[Measures, Measures]:
    """The measures before and after the change. The set's database has the changed columns afterwards."""
    before = measure(ingested, labelled_set, Mode.HYBRID, limit)
    with psycopg.connect(ingested.database_url, autocommit=True) as connection:
        for column, value in changed.columns.items():
            statement = sql.SQL("update rag.settings set {} = %s").format(sql.Identifier(column))
            connection.execute(statement, [value])
    values = {name.lower(): value for name, value in changed.settings.items()}
    settings = Settings.model_validate(
        {**ingested.services.settings.model_dump(exclude_unset=True), **values}
    )
    with closing(Services(settings)) as services:
        return before, measure(replace(ingested, services=services), labelled_set, changed.mode, limit)


def measure(ingested: IngestedSet, labelled_set: LabelledSet, mode: Mode, limit: int) -> Measures:
    """The ranking of the judged questions, and of each labelled question whether it is rightly answered or
    withheld, by its confidence before a model is called."""
    results: Measures = {}
    for item in labelled_set.questions[:limit]:
        query = Query(item.text, CHUNKS, Filters(), mode)
        result = pipeline.search_and_judge(ingested.services, ingested.reader, query)
        key = f"{labelled_set.name} {item.id}"
        relevant = labelled_set.relevant.get(item.id, {})
        if relevant:
            for name, value in measures(ingested.ranking(result.matches), relevant).items():
                results.setdefault(name, {})[key] = 100 * value
        is_answered = result.judgement.confidence is not Confidence.LOW
        if item.label in ("answerable", "out_of_corpus") or relevant:
            is_answerable = bool(relevant) or item.label == "answerable"
            is_right = 100.0 * (is_answered is is_answerable)
            for name in (ANSWERED if is_answerable else WITHHELD, EITHER):
                results.setdefault(name, {})[key] = is_right
    return results


def table(before: Measures, after: Measures, change: str) -> Table:
    """A row for each measure: the means, and the difference with its interval."""
    shown = Table("", "questions", "before", "after", "difference, 95 % interval", title=change)
    for name, values in before.items():
        first, second = (sum(each.values()) / len(each) for each in (values, after[name]))
        gain = difference(after[name], values)
        shown.add_row(name, str(len(values)), f"{first:.1f}", f"{second:.1f}", str(gain))
    return shown


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InvalidSet as invalid:
        sys.exit(f"The folder is no labelled set: {invalid}")
