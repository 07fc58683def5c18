"""Quality of each search method on a labelled set: called by bench/evaluate.py.

Every question goes through the same pipeline as in the functions, up to 100 chunks, with documents ranked by
their best chunk. If RAG_RERANK_PROVIDER names a reranker, a further method has it order the best 50 chunks of
hybrid search. The baseline is BM25 (bm25s with its defaults) over whole documents. Means go to
bench/results/quality.jsonl; measures with a goal, with the paired bootstrap's interval, are figures.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

from rich.console import Console

from bench.baseline_bm25 import bm25
from bench.figures import Figure, replace_lines
from bench.labelled_sets import IngestedSet, judged
from bench.ranking import Difference, Run, difference
from shared import pipeline
from shared.calibration.labelled_sets import LabelledSet
from shared.pipeline import RERANK_CANDIDATES
from shared.types import Mode, Query

RESULTS = Path(__file__).parent / "results" / "quality.jsonl"
# About as many as callers ask for; enough for ten documents.
CHUNKS = 30
SEMANTIC, KEYWORD, HYBRID, HIERARCHICAL = "semantic", "keyword", "hybrid", "hierarchical"
BASELINE = "BM25 (bm25s)"
METHODS = (BASELINE, KEYWORD, SEMANTIC, HYBRID, HIERARCHICAL)
# The name of the reranker's model follows.
RERANKED = "hybrid, reranked by "
MEASURE = "nDCG@10"
# The goals: hybrid search in that set, keyword less BM25 in every set, and the mean gain of reranking.
AT_LEAST = {"classic_cranfield": 56}
KEYWORD_LOSS = -1
RERANK_GAIN = 2
Search = Callable[[str], list[str]]


Runs = Mapping[str, Run]


def measure(ingested: IngestedSet, labelled_set: LabelledSet, limit: int, console: Console) -> dict[str, Run]:
    """Every way to search, over at most that many questions."""
    questions = judged(labelled_set, limit)
    runs: dict[str, Run] = {}
    for method, search in searches(ingested, labelled_set).items():
        run = runs[method] = Run()
        for question in questions:
            started = perf_counter()
            ranking = search(question.text)
            run.seconds.append(perf_counter() - started)
            run.mark(question.id, ranking, labelled_set.relevant[question.id])
        means = run.means(run.by_question[questions[0].id])
        console.print(f"{labelled_set.name}, {method}: {means}", highlight=False)
    return runs


def searches(ingested: IngestedSet, labelled_set: LabelledSet) -> dict[str, Search]:
    methods = {
        BASELINE: bm25(labelled_set.documents),
        KEYWORD: pipeline_search(ingested, Mode.KEYWORD),
        SEMANTIC: pipeline_search(ingested, Mode.SEMANTIC),
        HYBRID: pipeline_search(ingested, Mode.HYBRID),
        HIERARCHICAL: pipeline_search(ingested, Mode.HIERARCHICAL),
    }
    if reranker := ingested.services.reranker:
        methods[RERANKED + reranker.model] = pipeline_search(ingested, Mode.HYBRID, rerank=True)
    return methods


def pipeline_search(ingested: IngestedSet, mode: Mode, *, rerank: bool = False) -> Search:
    def search(text: str) -> list[str]:
        query = Query(text, top_k=RERANK_CANDIDATES if rerank else CHUNKS, mode=mode, rerank=rerank)
        result = pipeline.search(ingested.services, ingested.reader, query)
        if result.rerank_failed:
            raise RuntimeError("the reranker failed, so the run would not measure it")
        return ingested.ranking(result.matches)

    return search


def goals(measured: Mapping[str, Runs]) -> list[Figure]:
    """Whether the goals hold, by set and over all of them."""
    figures = [figure for name, runs in measured.items() for figure in goals_of(name, runs)]
    methods = {method for runs in measured.values() for method in runs}
    return figures + [goal_of_reranker(measured, name) for name in methods if name.startswith(RERANKED)]


def goal_of_reranker(measured: Mapping[str, Runs], method: str) -> Figure:
    gains = {name: gain(runs, method, HYBRID) for name, runs in measured.items()}
    note = "; ".join(f"{name} {result}" for name, result in gains.items())
    mean = fmean(result.mean for result in gains.values())
    return Figure(f"{method} less hybrid, mean of the sets", mean, "", None, f">= {RERANK_GAIN}", note)


def goals_of(name: str, runs: Runs) -> list[Figure]:
    hybrid = runs[HYBRID].mean(MEASURE)
    leg = max((SEMANTIC, KEYWORD), key=lambda method: runs[method].mean(MEASURE))
    beside_leg, beside_bm25 = gain(runs, HYBRID, leg), gain(runs, KEYWORD, BASELINE)
    figures = [
        Figure(
            f"keyword less BM25, {name}: mean",
            beside_bm25.mean,
            "",
            None,
            f">= {KEYWORD_LOSS}",
            str(beside_bm25),
        ),
        Figure(f"keyword less BM25, {name}: at most", beside_bm25.high, "", None, ">= 0", str(beside_bm25)),
        Figure(f"hybrid less its better leg, {name}: mean", beside_leg.mean, "", note=f"that is {leg}"),
        Figure(
            f"hybrid less its better leg, {name}: at most", beside_leg.high, "", None, ">= 0", str(beside_leg)
        ),
    ]
    if name in AT_LEAST:
        figures.append(Figure(f"hybrid, {name}", hybrid, "", None, f">= {AT_LEAST[name]}"))
    return figures


def gain(runs: Runs, ours: str, theirs: str) -> Difference:
    return difference(runs[ours].of(MEASURE), runs[theirs].of(MEASURE))


def lines(ingested: IngestedSet, labelled_set: LabelledSet, runs: Runs) -> list[dict[str, Any]]:
    """The record of a set."""
    return [
        {
            "set": labelled_set.name,
            "documents": len(labelled_set.documents),
            "chunks": ingested.chunks,
            "questions": len(run.by_question),
            "of": sum(bool(labelled_set.relevant.get(item.id)) for item in labelled_set.questions),
            "model": ingested.services.embedder.model,
            "search": method,
            **{name: round(run.mean(name), 2) for name in next(iter(run.by_question.values()))},
            "p50_ms": round(1000 * median(run.seconds), 1),
        }
        for method, run in runs.items()
    ]


def write(measured: Sequence[Mapping[str, Any]]) -> None:
    """Replaces the earlier lines of the same sets and methods. Lines of other rerankers remain."""
    replaced = {(line["set"], line["search"]) for line in measured}
    replace_lines(RESULTS, measured, lambda line: (line["set"], line["search"]) in replaced)
