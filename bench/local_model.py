"""Passages of 128 tokens that the local model embeds in a second of processor time, and that of a question.

With --baseline, in turns with the model of another checkout: python -m bench.local_model --baseline CHECKOUT.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from rich.console import Console

from bench import figures
from bench.figures import Figure
from local import ROOT

ROUNDS = 3
# With the modules of a checkout; prints passages a second, and milliseconds of a question.
SCRIPT = """
import time
from bench.synthetic_text import Prose
from shared.models.embeddings import local_embedder
model, prose = local_embedder(), Prose(set())
def passage(number):
    words = " ".join(prose.document(number).chunks).split()[:128]
    while model.count_tokens(" ".join(words)) > 128:
        words.pop()
    return " ".join(words)
passages = [passage(number) for number in range(64)]
questions = [prose.question(number) for number in range(20)]
model.embed(passages[:8]); model.embed(questions[:1])
started = time.process_time()
model.embed(passages, background=True)
of_passages, started = time.process_time() - started, time.process_time()
for question in questions:
    model.embed([question])
print(len(passages) / of_passages, 1000 * (time.process_time() - started) / len(questions))
"""


def measure(console: Console, baseline: Path | None = None) -> list[Figure]:
    checkouts = [ROOT, baseline] if baseline else [ROOT]
    runs: dict[Path, list[tuple[float, float]]] = {checkout: [] for checkout in checkouts}
    for turn in range(ROUNDS):
        for checkout in checkouts[::-1] if turn % 2 else checkouts:
            runs[checkout].append(run(checkout))
    passages, questions = (
        [median(values[number] for values in runs[checkout]) for checkout in checkouts] for number in (0, 1)
    )
    console.print(f"passages a second {passages}, milliseconds of a question {questions}")
    beside = (passages[1], questions[1]) if baseline else (None, None)
    return [
        Figure(
            "passages a second of processor time",
            passages[0],
            "1/s",
            beside[0],
            ">= 1.5" if baseline else None,
        ),
        Figure("a question", questions[0], "ms", beside[1]),
    ]


def run(checkout: Path) -> tuple[float, float]:
    """Passages a second, and milliseconds of a question, in a new process."""
    process = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=True,
    )
    passages, question = map(float, process.stdout.split())
    return passages, question


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.local_model", description=__doc__)
    parser.add_argument("--baseline", type=Path, help="a checkout to compare with")
    options = parser.parse_args()
    console, machine = Console(), figures.machine()
    measured = measure(console, options.baseline)
    figures.record("embed", machine, measured)
    figures.print_table("embed", measured, console)


if __name__ == "__main__":
    main()
