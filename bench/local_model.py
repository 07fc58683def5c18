"""Passages of 128 tokens that the local model embeds in a second of processor time, and that of a question.

With --baseline, in turns with the model of another checkout: python -m bench.local_model --baseline CHECKOUT.
With --models, the local models in turns, by passages of 600 characters: python -m bench.local_model --models.
"""

import argparse
import os
import subprocess
import sys
from math import inf
from pathlib import Path
from statistics import median

from rich.console import Console

from bench import figures
from bench.figures import Figure
from local import ROOT
from shared.models.embeddings import LOCAL_MODELS

ROUNDS = 3
# With the modules of a checkout; prints passages a second, and milliseconds of a question.
SCRIPT = """
import time
from bench.synthetic_text import Prose
from shared.models.embeddings import local_embedder
model, prose = local_embedder(), Prose(set())
try:
    from shared.models.embedding_roles import Role
    document, question_role = (Role.DOCUMENT,), (Role.QUESTION,)
except ImportError:
    document = question_role = ()
def passage(number):
    words = " ".join(prose.document(number).chunks).split()[:128]
    while model.count_tokens(" ".join(words)) > 128:
        words.pop()
    return " ".join(words)
passages = [passage(number) for number in range(64)]
questions = [prose.question(number) for number in range(20)]
model.embed(passages[:8], *document); model.embed(questions[:1], *question_role)
started = time.process_time()
model.embed(passages, *document, background=True)
of_passages, started = time.process_time() - started, time.process_time()
for question in questions:
    model.embed([question], *question_role)
print(len(passages) / of_passages, 1000 * (time.process_time() - started) / len(questions))
"""
# Prints the seconds of the start, passages a second, milliseconds of a question, and MiB afterwards.
SCRIPT_OF_MODEL = """
import os, sys, time
import psutil
model_name, processors = sys.argv[1], int(sys.argv[2])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:processors])
started = time.perf_counter()
from shared.models.embedding_roles import Role
from shared.models.embeddings import local_embedder
model = local_embedder(model_name)
start = time.perf_counter() - started
from bench.synthetic_text import Prose
prose = Prose(set())
texts = [" ".join(prose.document(number).chunks)[:600].strip() for number in range(64)]
questions = [prose.question(number) for number in range(20)]
model.embed(texts[:8], Role.DOCUMENT); model.embed(questions[:1], Role.QUESTION)
started = time.perf_counter()
model.embed(texts, Role.DOCUMENT)
of_texts, started = time.perf_counter() - started, time.perf_counter()
for question in questions:
    model.embed([question], Role.QUESTION)
of_question = (time.perf_counter() - started) / len(questions)
print(start, len(texts) / of_texts, 1000 * of_question, psutil.Process().memory_info().rss / 2**20)
"""


def compare_models(console: Console) -> None:
    """The best of some rounds, for the local models in turns, with one processor and with two."""
    runs = [(model, processors) for processors in (1, 2) for model in LOCAL_MODELS]
    best = dict.fromkeys(runs, (inf, 0.0, inf, inf))
    for _ in range(ROUNDS):
        for model, processors in runs:
            start, passages, question, memory = execute(ROOT, SCRIPT_OF_MODEL, model, str(processors))
            former = best[model, processors]
            best[model, processors] = (
                min(start, former[0]),
                max(passages, former[1]),
                min(question, former[2]),
                min(memory, former[3]),
            )
    lines = [
        "| model | processors | start, s | passages/s | a question, ms | memory, MiB |",
        "|---|---|---|---|---|---|",
        *(
            f"| {model} | {processors} | {start:.1f} | {passages:.1f} | {question:.1f} | {memory:.0f} |"
            for (model, processors), (start, passages, question, memory) in best.items()
        ),
    ]
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


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
    passages, question = execute(checkout, SCRIPT)
    return passages, question


def execute(checkout: Path, script: str, *arguments: str) -> list[float]:
    """The numbers that the script prints in a new process, with the modules of the checkout."""
    # An inherited path may contain packages that are not in the environment.
    path = os.pathsep.join([str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in process.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.local_model", description=__doc__)
    parser.add_argument("--baseline", type=Path, help="a checkout to compare with")
    parser.add_argument("--models", action="store_true", help="compare the local models")
    options = parser.parse_args()
    if options.models:
        compare_models(Console())
        return
    console, machine = Console(), figures.machine()
    measured = measure(console, options.baseline)
    figures.record("embed", machine, measured)
    figures.print_table("embed", measured, console)


if __name__ == "__main__":
    main()
