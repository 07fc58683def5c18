"""Cost of the TypeScript SDK per call, compared with plain fetch: the same requests, alternately."""

import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from bench.bench_stack import BenchStack, serve_app
from bench.figures import Figure
from local.tools import build_typescript_sdk

SCRIPT = Path(__file__).with_suffix(".mjs")
QUESTION = "How often must loggers be calibrated?"
ROUNDS = 300


def measure(bench: BenchStack) -> list[Figure]:
    with serve_app(bench, "functions.server:create", {}, "--factory") as server:
        arguments = {
            "url": f"{server.url}/api/v1",
            "token": bench.token(),
            "query": QUESTION,
            "rounds": ROUNDS,
        }
        taken = run(arguments)
    return [figure(name, methods) for name, methods in taken.items()]


def run(arguments: dict[str, object]) -> dict[str, dict[str, list[float]]]:
    """The script's measurements. Raises CalledProcessError unless every call was answered."""
    with tempfile.TemporaryDirectory(prefix="rag-bench-sdk-") as workplace:
        folder = Path(workplace)
        build_typescript_sdk.install(folder, SCRIPT)
        process = subprocess.run(
            ["node", folder / SCRIPT.name],
            input=json.dumps(arguments),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    timings: dict[str, dict[str, list[float]]] = json.loads(process.stdout)
    return timings


def figure(name: str, methods: dict[str, list[float]]) -> Figure:
    ours, plain = median(methods["sdk"]), median(methods["plain"])
    more = median(sdk - fetch for sdk, fetch in zip(methods["sdk"], methods["plain"], strict=True))
    note = f"{ROUNDS} calls of each in turns; a pair differs by {1000 * more:.0f} µs, median"
    return Figure(f"TypeScript SDK, {name}, p50, over fetch", ours, "ms", plain, "<= 1.1", note)
