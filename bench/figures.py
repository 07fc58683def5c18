"""Measured figures: their records (files with one object per line), and tables of them."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

RESULTS = Path(__file__).parent / "results.jsonl"
PACKAGES = ("fastapi", "httpx", "postgrest", "slowapi", "pydantic", "openai", "uvicorn")


@dataclass(frozen=True)
class Figure:
    """`value` in `unit`; `baseline` is what it was compared with in the same run. `goal` reads like
    "<= 1.3", over value or, where there is a baseline, over value / baseline."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    goal: str | None = None
    note: str | None = None

    @property
    def compared(self) -> float:
        return self.value if self.baseline is None else self.value / self.baseline

    @property
    def holds(self) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.goal is None:
            return None
        sign, number = self.goal.split()
        return self.compared <= float(number) if sign == "<=" else self.compared >= float(number)


def machine() -> dict[str, Any]:
    """What it was measured on."""
    processors = Path("/proc/cpuinfo")
    lines = processors.read_text().splitlines() if processors.exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "measured_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}",
        "commit": commit,
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load_average": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
    }


def record(
    part: str, about: dict[str, Any], figures: list[Figure], labelled_sets: Collection[str] = ()
) -> None:
    """Replace that part's lines in the results; where labelled sets are given, the lines of these sets."""
    names = {figure.name for figure in figures}
    of_sets = re.compile(rf", ({'|'.join(map(re.escape, labelled_sets))})\b")

    def is_replaced(result: dict[str, Any]) -> bool:
        if result["part"] != part:
            return False
        return not labelled_sets or result["name"] in names or bool(of_sets.search(result["name"]))

    own = [{"part": part, **_rounded(figure), "holds": figure.holds, "machine": about} for figure in figures]
    replace_lines(RESULTS, own, is_replaced)


def replace_lines(
    path: Path, lines: Iterable[Mapping[str, Any]], is_replaced: Callable[[dict[str, Any]], bool]
) -> None:
    """Append the lines, and remove those that they replace."""
    remaining = [line for line in read_lines(path) if not is_replaced(line)]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*remaining, *lines]))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of results; none without the file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _rounded(figure: Figure) -> dict[str, Any]:
    fields = asdict(figure)
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in fields.items()
    }


def results(part: str) -> list[dict[str, Any]]:
    """The latest results of a part."""
    return [result for result in read_lines(RESULTS) if result["part"] == part]


def values(part: str) -> dict[str, float]:
    """The latest values of a part, by the names of their figures."""
    return {result["name"]: result["value"] for result in results(part)}


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown; none without rows."""
    lines = [f"| {' | '.join(row)} |".replace("  ", " ") for row in rows]
    return (
        [f"| {' | '.join(columns)} |".replace("  ", " "), "|---" * len(columns) + "|", *lines]
        if lines
        else []
    )


VERDICTS = {True: "holds", False: "**falls short**", None: ""}


def markdown(*parts: str) -> list[str]:
    """The results of these parts as docs/benchmarks.md shows them, a row a figure."""
    names = ("name", "value", "unit", "baseline", "goal")
    return figures_table(
        [Figure(**{name: result[name] for name in names}) for part in parts for result in results(part)]
    )


def figures_table(figures: Sequence[Figure]) -> list[str]:
    rows = (
        (
            figure.name,
            f"{figure.value:g} {figure.unit}".strip(),
            "" if figure.baseline is None else f"{figure.baseline:g} {figure.unit}".strip(),
            "" if figure.baseline is None else f"{figure.compared:.2f}",
            figure.goal or "",
            VERDICTS[figure.holds],
        )
        for figure in figures
    )
    return markdown_table(("figure", "value", "beside", "ratio", "goal", ""), rows)


def print_lines(lines: Iterable[str], console: Console) -> None:
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def print_table(part: str, figures: Sequence[Figure], console: Console) -> None:
    notes = (f"  {figure.name}: {figure.note}" for figure in figures if figure.note)
    print_lines([part, *figures_table(figures), *notes], console)
