"""Quality of search methods on a labelled set, with the reranker of the environment."""

import io
from contextlib import closing
from pathlib import Path

import pytest
from rich.console import Console

from bench import eval_quality
from bench.figures import read_lines
from bench.labelled_sets import IngestedSet
from local.seed_demo import make_services
from local.stack import Stack
from shared.calibration.labelled_sets import Item, LabelledSet
from shared.services import Services
from tests.bench.ingested_sets import ingested
from tests.conftest import People
from tests.hosted_reranker import MODEL, hosted_reranker

# Hybrid search finds the manual, and the judgements want the accident report.
TEXTS = {
    "manual": "The kiln may become 1,280 degrees hot. After that the kiln cools for a whole day.",
    "accident": "A potter burnt a hand at the oven on Monday.",
    "canteen": "The canteen serves lentil soup on Tuesdays.",
}
SET = LabelledSet(
    "pottery",
    [Item(name, text, name) for name, text in TEXTS.items()],
    [Item("q1", "How hot does the kiln become?")],
    {"q1": {"accident": 1}},
)
RERANKED = f"hybrid, reranked by {MODEL}"


def measure(services: Services, people: People) -> tuple[IngestedSet, eval_quality.Runs]:
    own = ingested(services, people, SET)
    return own, eval_quality.measure(own, SET, 10, Console(file=io.StringIO()))


def test_the_reranker_of_the_environment_is_measured_beside_hybrid_search(
    stack: Stack, people: People, monkeypatch: pytest.MonkeyPatch
):
    with hosted_reranker("potter burnt") as reranker:
        for name, value in reranker.items():
            monkeypatch.setenv(name.upper(), value)
        with closing(make_services(stack)) as services:
            own, runs = measure(services, people)
    assert list(runs) == [*eval_quality.METHODS, RERANKED]
    hybrid, reranked = runs["hybrid"].mean("nDCG@10"), runs[RERANKED].mean("nDCG@10")
    assert hybrid < reranked == 100
    assert RERANKED in [line["search"] for line in eval_quality.lines(own, SET, runs)]
    (figure,) = [figure for figure in eval_quality.goals({"pottery": runs}) if MODEL in figure.name]
    assert figure.name == f"{RERANKED} less hybrid, mean of the sets"
    assert figure.value == pytest.approx(100 - hybrid)
    assert figure.holds


def test_without_a_reranker_nothing_is_reranked(services: Services, people: People):
    _, runs = measure(services, people)
    assert list(runs) == list(eval_quality.METHODS)
    assert not [figure for figure in eval_quality.goals({"pottery": runs}) if "reranked" in figure.name]


def test_a_failed_reranker_ends_the_measurement(
    stack: Stack, people: People, monkeypatch: pytest.MonkeyPatch
):
    with hosted_reranker("potter burnt") as reranker:
        for name, value in reranker.items():
            monkeypatch.setenv(name.upper(), value)
    with closing(make_services(stack)) as services, pytest.raises(RuntimeError, match="the reranker failed"):
        measure(services, people)


def test_results_of_another_reranker_remain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(eval_quality, "RESULTS", tmp_path / "quality.jsonl")
    former = {"set": "pottery", "search": "hybrid, reranked by another", "nDCG@10": 1}
    eval_quality.write([former, {"set": "pottery", "search": "hybrid", "nDCG@10": 2}])
    eval_quality.write([{"set": "pottery", "search": "hybrid", "nDCG@10": 3}])
    assert read_lines(eval_quality.RESULTS) == [former, {"set": "pottery", "search": "hybrid", "nDCG@10": 3}]
