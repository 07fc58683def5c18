"""Fit the confidence thresholds of the embedder at hand, and report on questions that the fit did not see.

    python -m bench.eval_confidence DATASET

DATASET is a folder of two JSON-lines files: corpus.jsonl, {"id", "title", "text"} a line, and queries.jsonl,
{"id", "text", "meta": {"label": "answerable" | "out_of_corpus" | anything else}} a line. The figures in the
README are from 3,000 questions of SQuAD 2.0 (CC BY-SA, so not kept here) over 815 of its paragraphs: 1,000
answerable, 1,000 of its adversarial unanswerable ones, 1,000 about articles that are not among the 815.

The corpus goes through the real ingestion path into a stack of its own, every query through the real
search. A query's number is the contract's: the mean similarity of its five best chunks. Half of the
queries (by a hash of their id) fit two thresholds, the other half is reported:

- medium: where questions of the corpus and questions foreign to it are told apart best (Youden's J:
  largest difference between the shares let through);
- high: where at most 1 % of the foreign ones are still let through.

Questions that are on topic but not answered look the same to this rule as answerable ones; their share is
reported, not fitted: no threshold on similarity can tell them apart.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import psycopg
from rich.console import Console

from local.corpus import ORGS, CorpusFile
from local.ingest import authorise, core_of, put
from local.stack import Stack
from shared.ingest import NewDocument
from shared.policy import CONTRACT_THRESHOLDS, judge
from shared.types import Query

RESULTS = Path(__file__).parent / "results"
READER = "ines@halden.example"
ANSWERABLE, FOREIGN = "answerable", "out_of_corpus"


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def measure(stack: Stack, dataset: Path, console: Console) -> tuple[str, dict[str, dict[str, float]]]:
    """The embedder's model, and each query's mean similarity by label and id."""
    core = core_of(stack)
    documents = [
        NewDocument(
            ORGS["halden"], str(item["title"] or item["id"]), str(item["text"]), external_id=str(item["id"])
        )
        for item in read(dataset / "corpus.jsonl")
    ]
    principal = authorise(stack)
    put(core, [(CorpusFile(document, None), READER) for document in documents], principal, console)
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        connection.execute("vacuum analyze rag.chunks")
    means: dict[str, dict[str, float]] = defaultdict(dict)
    for item in read(dataset / "queries.jsonl"):
        label = str(item["meta"]["label"])  # type: ignore[index]
        found = core.search(principal(READER), Query(str(item["text"])[:500], top_k=5))
        means[label][str(item["id"])] = judge(found.matches, CONTRACT_THRESHOLDS).mean_similarity
    return core.embedder.model, means


def halves(means: dict[str, float]) -> tuple[list[float], list[float]]:
    """The half to fit on and the half to report, by a hash of the query's id."""
    fit = [value for name, value in means.items() if crc32(name.encode()) % 2 == 0]
    report = [value for name, value in means.items() if crc32(name.encode()) % 2 == 1]
    return fit, report


def share_from(values: Sequence[float], threshold: float) -> float:
    return sum(value >= threshold for value in values) / len(values)


def fit(answerable: Sequence[float], foreign: Sequence[float]) -> tuple[float, float]:
    """(high, medium), to two decimals."""
    steps = [step / 100 for step in range(101)]
    medium = max(steps, key=lambda step: share_from(answerable, step) - share_from(foreign, step))
    high = next(step for step in steps if step > medium and share_from(foreign, step) <= 0.01)
    return high, medium


def main(dataset: Path) -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="rag-eval-") as folder:
        stack = Stack(Path(folder))
        try:
            stack.up(0, durable=False)
            model, means = measure(stack, dataset, console)
        finally:
            stack.remove()
    fitted, reported = ({}, {})
    for label, values in means.items():
        fitted[label], reported[label] = halves(values)
    high, medium = fit(fitted[ANSWERABLE], fitted[FOREIGN])
    contract = CONTRACT_THRESHOLDS
    report = {
        "model": model,
        "dataset": dataset.name,
        "fitted_on": {label: len(values) for label, values in fitted.items()},
        "high": high,
        "medium": medium,
        "reported_on": {label: len(values) for label, values in reported.items()},
        "answered": {label: round(share_from(values, medium), 3) for label, values in reported.items()},
        "answered_with_high_confidence": {
            label: round(share_from(values, high), 3) for label, values in reported.items()
        },
        "answered_at_the_contracts_numbers": {
            label: round(share_from(values, contract.medium), 3) for label, values in reported.items()
        },
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"confidence_{model.replace('/', '_')}.json"
    path.write_text(json.dumps(report, indent=2) + "\n")
    console.print_json(data=report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    main(parser.parse_args().dataset)
