"""The resources of searches and answers, and the cost of a thousand by the reader's prices.

The part `cost` measures milliseconds and tokens with the demo's questions and models that answer at once:

    python -m bench cost

From these figures and prices this module computes the cost (docs/cost.md):

    python -m bench.cost --embedding-ms 150 --answer-ms 2500 --gb-second 0.0000166667 ...
"""

import argparse
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import httpx

from bench.bench_stack import BenchStack, Server, serve_app
from bench.figures import Figure, values
from local import ROOT
from local.demo import Question, questions

ROUNDS = 10
CALLS = ("search", "answer")
# Figures of each call, and their units.
UNITS = {"own time": "ms", "embedding tokens": "tokens", "input tokens": "tokens", "output tokens": "tokens"}
MEMORY_MIB = 1024
# Steps of the log whose time is that of an endpoint.
WAITING = ("embed", "generate")
COUNT_TOKENS = ROOT / "tests" / "shared" / "text" / "count_tokens.mjs"


def measure(bench: BenchStack) -> list[Figure]:
    """The mean of each question's requests, without the time of the models; tokens of o200k."""
    texts = bench.stack.folder / "texts.jsonl"
    with serve_app(bench, "bench.served_models:app", {"BENCH_TEXTS": str(texts)}) as models:
        environment = {
            "OPENAI_API_KEY": "none",
            "RAG_EMBEDDING_URL": f"{models.url}/v1",
            "RAG_EMBEDDING_MODEL": bench.services.embedder.model,
            "RAG_LLM_API_KEY": "none",
            "RAG_LLM_URL": f"{models.url}/v1",
        }
        with serve_app(bench, "bench.served_functions:create", environment, "--factory") as ours:
            log = bench.stack.folder / "logs" / "bench.served_functions-create.log"
            figures = []
            for call in CALLS:
                _ask(bench, ours, call, 1)
                began, written = log.stat().st_size, texts.stat().st_size
                requests = _ask(bench, ours, call, ROUNDS)
                own = _own_milliseconds(log, began)
                if len(own) != requests:
                    raise RuntimeError(f"{log} has {len(own)} of {requests} requests")
                values, answered = _tokens(texts, written, requests)
                values["own time"] = mean(own)
                note = f"mean of {requests} requests, of which {answered} called the chat model"
                figures += [
                    Figure(f"{call}, {name}", values[name], unit, note=note) for name, unit in UNITS.items()
                ]
    return figures


def _questions() -> list[Question]:
    return [question for question in questions() if not question.filters]


def _ask(bench: BenchStack, ours: Server, call: str, rounds: int) -> int:
    """Ask each question; the number of requests."""
    with httpx.Client(base_url=ours.url, timeout=60) as client:
        for _ in range(rounds):
            for question in _questions():
                headers = {"Authorization": f"Bearer {bench.stack.token(question.asker)}"}
                body = {"query_text": question.text}
                client.post(f"/api/rag/{call}", json=body, headers=headers).raise_for_status()
    return rounds * len(_questions())


def _own_milliseconds(log: Path, began: int) -> list[float]:
    """Of each logged request the time without the steps that wait for a model."""
    with log.open() as file:
        file.seek(began)
        entries = [json.loads(line) for line in file if line.startswith("{")]
    return [
        entry["ms"] - sum(entry["steps"].get(step, 0) for step in WAITING)
        for entry in entries
        if entry.get("message") == "request"
    ]


def _tokens(texts: Path, began: int, requests: int) -> tuple[dict[str, float], int]:
    """Tokens of o200k in a request, by kind, and the number of calls of the chat model."""
    with texts.open() as file:
        file.seek(began)
        entries = [json.loads(line) for line in file]
    process = subprocess.run(
        ["node", str(COUNT_TOKENS)], input=json.dumps([" ".join(entry[1:]) for entry in entries]),
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    sums = dict.fromkeys(("embedding", "input", "output"), 0)
    for (kind, *_), counts in zip(entries, json.loads(process.stdout), strict=True):
        sums[kind] += counts["o200k"]
    answered = sum(kind == "output" for kind, *_ in entries)
    return {f"{kind} tokens": total / requests for kind, total in sums.items()}, answered


@dataclass(frozen=True)
class Prices:
    """In one currency: for a GB-second and a request of the platform, and for a million tokens. `memory_gb`:
    of a function; `embedding_ms`, `answer_ms`: the time that the endpoints take."""

    gb_second: float
    request: float
    embedding: float
    input: float
    output: float
    embedding_ms: float
    answer_ms: float
    memory_gb: float = MEMORY_MIB / 1024

    def of_a_thousand(self, call: str, figures: Mapping[str, float]) -> dict[str, float]:
        """By item, for a thousand calls with the measured figures of one."""
        waiting = self.embedding_ms + (self.answer_ms if call == "answer" else 0)
        seconds = (figures["own time"] + waiting) / 1000
        million = 1e6
        return {
            "compute": 1000 * seconds * self.memory_gb * self.gb_second,
            "requests": 1000 * self.request,
            "embedding": 1000 * figures["embedding tokens"] / million * self.embedding,
            "model": 1000
            * (figures["input tokens"] * self.input + figures["output tokens"] * self.output)
            / million,
        }


def measured(call: str) -> dict[str, float]:
    """The figures of the latest measurement, by name."""
    rows = values("cost")
    return {name: rows[f"{call}, {name}"] for name in UNITS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cost", description=__doc__)
    help_texts = {
        "gb-second": "price of a GB-second", "request": "price of a request: function and gateway",
        "embedding": "price of a million tokens of the embedding model", "input": "of the chat model's input",
        "output": "of its output", "embedding-ms": "time that the embedding endpoint takes",
        "answer-ms": "time that the chat model takes",
    }  # fmt: skip
    for name, text in help_texts.items():
        parser.add_argument(f"--{name}", type=float, required=True, help=text)
    parser.add_argument("--memory-gb", type=float, default=MEMORY_MIB / 1024, help="memory of a function")
    prices = Prices(**vars(parser.parse_args()))
    for call in CALLS:
        items = prices.of_a_thousand(call, measured(call))
        listed = ", ".join(f"{name} {cost:.4f}" for name, cost in items.items())
        print(f"1,000 {call} requests: {sum(items.values()):.4f} ({listed})")


if __name__ == "__main__":
    main()
