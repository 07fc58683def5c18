"""Measured figures: their records in bench/results.jsonl (one object per line), and tables of them."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

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
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
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


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


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

    other_lines = [line for line in _lines(str(RESULTS)) if not is_replaced(json.loads(line))]
    own = [
        json.dumps({"part": part, **_rounded(figure), "holds": figure.holds, "machine": about})
        for figure in figures
    ]
    RESULTS.write_text("\n".join([*other_lines, *own]) + "\n")


def _rounded(figure: Figure) -> dict[str, Any]:
    fields = asdict(figure)
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in fields.items()
    }


def results(part: str) -> list[dict[str, Any]]:
    """The latest results of a part."""
    return [result for result in map(json.loads, _lines(str(RESULTS))) if result["part"] == part]


def values(part: str) -> dict[str, float]:
    """The latest values of a part, by the names of their figures."""
    return {result["name"]: result["value"] for result in results(part)}


def markdown(part: str) -> list[str]:
    """The results of a part as docs/benchmarks.md shows them, a row a figure."""
    rows = []
    for result in results(part):
        figure = Figure(**{name: result[name] for name in ("name", "value", "unit", "baseline", "goal")})
        beside = "" if figure.baseline is None else f"{figure.baseline:g} {figure.unit}".strip()
        ratio = "" if figure.baseline is None else f"{figure.compared:.2f}"
        verdict = {True: "holds", False: "**falls short**", None: ""}[figure.holds]
        value = f"{figure.value:g} {figure.unit}".strip()
        cells = (figure.name, value, beside, ratio, figure.goal or "", verdict)
        rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return rows


def print_table(part: str, figures: list[Figure], console: Console) -> None:
    grid = Table(
        "figure", "value", "baseline", "ratio", "goal", "", title=part, title_justify="left", box=None
    )
    for figure in figures:
        ratio = "" if figure.baseline is None else f"{figure.compared:.2f}"
        baseline = "" if figure.baseline is None else f"{figure.baseline:.4g} {figure.unit}"
        verdict = {True: "[green]holds[/]", False: "[red]falls short[/]", None: ""}[figure.holds]
        value = f"{figure.value:.4g} {figure.unit}"
        grid.add_row(figure.name, value, baseline, ratio, figure.goal or "", verdict)
    console.print(grid)
    for figure in figures:
        if figure.note:
            console.print(f"  {figure.name}: {figure.note}", style="dim", highlight=False)
