"""Import time of each function and its largest packages: compared with FastAPI and httpx alone.

With the packages of a deployment only: the folder that `make package` builds for Lambda. Each import runs in
a new interpreter, alternately, with warm disk caches. The minimum of all rounds counts: other load only adds
time.
"""

import re
import subprocess
import sys
from pathlib import Path

from bench.bench_stack import BenchStack
from bench.figures import Figure
from local.tools import lambda_package

ROUNDS = 20
BASELINE = "fastapi, httpx"
TIME_IMPORT = "import time; t = time.perf_counter(); import {}; print((time.perf_counter() - t) * 1000)"
LARGEST = 6
# A handler that is imported there makes its clients at once; no request is sent yet.
LAMBDA_ENVIRONMENT = {
    "AWS_LAMBDA_FUNCTION_NAME": "rag",
    "SUPABASE_URL": "http://127.0.0.1:9",
    "SUPABASE_ANON_KEY": "none",
    "OPENAI_API_KEY": "none",
}
# A line of -X importtime: own and cumulative microseconds, two spaces a level, the module.
LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| ( *)(\S+)")


def measure(_: BenchStack) -> list[Figure]:
    lambda_package.build()
    functions = sorted(path.stem for path in (lambda_package.FOLDER / "functions").glob("[a-z]*.py"))
    candidates = [BASELINE, *(f"functions.{name}" for name in functions)]
    timings: dict[str, list[float]] = {candidate: [] for candidate in candidates}
    for turn in range(-1, ROUNDS):
        for candidate in candidates:
            milliseconds = float(python("-c", TIME_IMPORT.format(candidate)).stdout)
            if turn >= 0:
                timings[candidate].append(milliseconds)
    base = min(timings.pop(BASELINE))
    times = {candidate: min(milliseconds) for candidate, milliseconds in timings.items()}
    slowest = max(times, key=lambda candidate: times[candidate])
    return [
        *(
            Figure(f"import {candidate}", taken, "ms", base, "<= 1.25", largest(candidate))
            for candidate, taken in times.items()
        ),
        Figure(f"slowest import, {slowest}", times[slowest], "ms", goal="<= 500"),
        start_time("functions.rag_search"),
    ]


def start_time(function: str) -> Figure:
    """What Lambda waits for before the first request: the import, and all that the function then makes."""
    times = [
        float(python("-c", TIME_IMPORT.format(function), **LAMBDA_ENVIRONMENT).stdout) for _ in range(ROUNDS)
    ]
    return Figure(f"start {function} on Lambda, model clients included", min(times), "ms", goal="<= 600")


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees the standard library and the folder."""
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        env={"PYTHONPATH": str(lambda_package.FOLDER), **variables},
        cwd=Path("/"),
        capture_output=True,
        text=True,
        check=True,
    )


def largest(module: str) -> str:
    """The packages that cost most, each with what it alone brought along."""
    totals: dict[str, int] = {}
    for line in python("-X", "importtime", "-c", f"import {module}").stderr.splitlines():
        if rows := LINE.match(line):
            name = rows[4].partition(".")[0]
            totals[name] = totals.get(name, 0) + int(rows[1])
    top = sorted(totals.items(), key=lambda item: -item[1])[:LARGEST]
    return "of its own time " + ", ".join(f"{name} {own / 1000:.0f} ms" for name, own in top)
