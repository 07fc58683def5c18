"""The playground in Chromium: first paint, size, and the time from the click to the first word, compared with
plain fetch."""

import json
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from bench.bench_stack import BenchStack, serve_app
from bench.figures import Figure
from local import ROOT
from local.errors import CommandError

SCRIPT = Path(__file__).with_suffix(".mjs")
QUESTION = "How often must loggers be calibrated?"
ROUNDS = 20
MAX_BYTES = 150_000


def measure(bench: BenchStack) -> list[Figure]:
    with ExitStack() as stack:
        model = stack.enter_context(serve_app(bench, "bench.served_model:app", {}))
        gateway = {"RAG_LLM_API_KEY": "none", "RAG_LLM_URL": f"{model.url}/v1"}
        server = stack.enter_context(serve_app(bench, "bench.served_playground:app", gateway))
        taken = run(server.url, bench.token())
    p50 = {name: median(entry) for name, entry in taken.items() if name != "bytes"}
    note = f"{ROUNDS} first visits, against a text file's"
    turns = f"{ROUNDS} in turns"
    return [
        Figure("playground, first contentful paint, p50", p50["paint"], "ms", p50["text"], note=note),
        Figure("playground, first visit", float(taken["bytes"]), "bytes", float(MAX_BYTES), "<= 1"),
        Figure(
            "playground, click to first word, p50, over fetch", p50["page"], "ms", p50["fetch"], note=turns
        ),
    ]


def run(url: str, token: str) -> dict[str, Any]:
    """The script's measurements. Raises CalledProcessError unless all was answered, CommandError without a
    browser."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise CommandError("no Chromium on this machine")
    arguments = {"url": url, "token": token, "question": QUESTION, "rounds": ROUNDS, "browser": browser}
    process = subprocess.run(
        ["node", SCRIPT], input=json.dumps(arguments), stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    taken: dict[str, Any] = json.loads(process.stdout)
    return taken
