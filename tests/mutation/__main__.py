"""Command line that runs each planted defect against its tests."""

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from local import ROOT
from tests.databases import Run
from tests.mutation import copies, definitions
from tests.mutation.definitions import Mutant

VERDICTS = ("caught", "missed", "broken")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Outcome:
    """`detail` is the id of the test that failed, or the reason of a broken run."""

    area: str
    verdict: str
    detail: str
    seconds: float


class Record:
    """Outcomes by the mutant's name, written to a file after each."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        stored = json.loads(path.read_text()) if path and path.exists() else {}
        self.outcomes = {name: Outcome(**fields) for name, fields in stored.items()}

    def add(self, name: str, outcome: Outcome) -> None:
        self.outcomes[name] = outcome
        if self.path is not None:
            # A line for each mutant.
            rows = [
                f"{json.dumps(name)}: {json.dumps(asdict(self.outcomes[name]))}"
                for name in sorted(self.outcomes)
            ]
            self.path.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="mutants at a time; 1")
    options.add_argument("--area", action="append", default=[], metavar="NAME", help="only these areas")
    options.add_argument("--mutant", action="append", default=[], metavar="NAME", help="only these mutants")
    options.add_argument("--record", type=Path, metavar="FILE", help="JSON; the mutants it has are skipped")
    options.add_argument("--all-tests", action="store_true", help="every test, not those of the area")
    options.add_argument("--null", action="store_true", help="only the areas without a defect: all must pass")
    options.add_argument("--sample", type=int, metavar="N", help="only N mutants, drawn at random")
    options.add_argument("--seed", type=int, default=0, metavar="N", help="of the sample; 0")
    options.add_argument("--seconds", type=float, default=600, metavar="S", help="limit of a run; 600")
    options.add_argument("--suite", type=Path, default=ROOT, metavar="DIR", help="another checkout to copy")
    options.add_argument("--tests-of", type=Path, metavar="FILE", help="JSON or TOML: area to its tests")
    return options


def select(
    mutants: list[Mutant], options: argparse.Namespace, recorded: Mapping[str, Outcome]
) -> list[Mutant]:
    """The mutants that the options name and that no record has."""
    areas = set(options.area)
    mutants = [mutant for mutant in mutants if not areas or mutant.area in areas]
    if options.mutant:
        return [mutant for mutant in mutants if mutant.name in options.mutant]
    if options.sample is not None:
        sample = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))  # noqa: S311
        mutants = sorted(sample, key=lambda mutant: mutant.name)
    return [mutant for mutant in mutants if mutant.name not in recorded]


def controls_of(mutants: list[Mutant]) -> list[Mutant]:
    """For each area its tests without a defect: if one fails there, it shows nothing with a defect."""
    tests = {mutant.area: mutant.tests for mutant in mutants}
    return [Mutant(f"null {area}", area, tests[area]) for area in sorted(tests)]


def run(mutant: Mutant, texts: Mapping[str, str], options: argparse.Namespace) -> Outcome:
    started = time.monotonic()
    workers = 3 if options.all_tests else 0
    try:
        if copies.STOP.is_set():
            raise KeyboardInterrupt
        with copies.copy_with(mutant, options.suite.resolve(), texts) as folder:
            verdict, detail = copies.run_tests(folder, mutant.tests, workers, options.seconds)
    except OSError as error:
        verdict, detail = "broken", f"{type(error).__name__}: {error}"
    if not mutant.find and verdict == "caught":
        verdict, detail = "broken", f"fails without a defect: {detail}"
    elif not mutant.find and verdict == "missed":
        detail = "passes without a defect"
    return Outcome(mutant.area, verdict, detail, round(time.monotonic() - started, 1))


@contextmanager
def shared_server() -> Iterator[None]:
    """One Postgres for all mutants: a run of its own would start one, and migrate it, for each."""
    tests, lock = Run.begin()
    try:
        os.environ["RAG_TEST_SERVER"] = str(tests.start_server(18).folder)
        yield
    finally:
        tests.remove()
        lock.close()


def is_control(name: str) -> bool:
    return name.startswith("null ")


def table(outcomes: list[Outcome]) -> Table:
    """Counts of the verdicts by area."""
    shown = Table("area", "mutants", *VERDICTS, "seconds")
    for area in [*sorted({outcome.area for outcome in outcomes}), None]:
        rows = [outcome for outcome in outcomes if area in (None, outcome.area)]
        counts = [len(rows), *(sum(row.verdict == name for row in rows) for name in VERDICTS)]
        shown.add_row(area or "all", *map(str, counts), f"{sum(row.seconds for row in rows):.0f}")
    return shown


def main() -> int:
    options = parser().parse_args()
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    mutants, texts = definitions.load(options.tests_of), definitions.source_texts(options.suite)
    errors = definitions.definition_errors(mutants, options.suite, texts)
    mutant_names = {mutant.name for mutant in mutants}
    errors += [f"{name}: there is no such mutant" for name in options.mutant if name not in mutant_names]
    areas = {mutant.area for mutant in mutants}
    errors += [f"{name}: there is no such area" for name in options.area if name not in areas]
    if errors:
        console.print("\n".join(errors))
        return 2
    record = Record(options.record)
    mutants = select(mutants, options, record.outcomes)
    if options.all_tests:
        mutants = [replace(mutant, area="all tests", tests=("tests",)) for mutant in mutants]
    controls = controls_of(mutants)
    with shared_server(), ThreadPoolExecutor(max_workers=options.jobs) as pool:

        def run_all(chosen: list[Mutant]) -> None:
            runs = {pool.submit(run, mutant, texts, options): mutant.name for mutant in chosen}
            for done in as_completed(runs):
                outcome = done.result()
                record.add(runs[done], outcome)
                console.print(f"{runs[done]}: {outcome.verdict} {outcome.detail} ({outcome.seconds} s)")

        try:
            run_all([control for control in controls if control.name not in record.outcomes])
            passed = {
                control.area for control in controls if record.outcomes[control.name].verdict == "missed"
            }
            mutants = [] if options.null else [mutant for mutant in mutants if mutant.area in passed]
            run_all(mutants)
        except BaseException:
            copies.STOP.set()
            # A second Ctrl-C must not leave processes.
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            raise
    console.print(table([row for name, row in record.outcomes.items() if not is_control(name)]))
    missed = [mutant for mutant in mutants if record.outcomes[mutant.name].verdict != "caught"]
    return int(bool(missed) or len(passed) < len(controls))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
