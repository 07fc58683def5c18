"""What the graph adds to finding, on labelled sets: called by bench/evaluate.py.

Of every set: does the search API lose anything by asking the graph where its router thinks so? Of a set that
comes with published rankings, the ways to ask the graph beside hybrid search, over the small corpus, which
others have searched, and over the whole one: documents by their best chunk of thirty. Means go to
bench/results/graph.jsonl; differences are told with the paired bootstrap's interval.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

from rich.console import Console

from bench.figures import Figure
from bench.ranking import Difference, by_best_chunk, difference, measures, recalls
from bench.sets import Labelled, Library
from shared import pipeline
from shared.answering.routed_search import retrieve
from shared.retrieval.types import Place, SearchRequest
from shared.types import Match, Mode, Query

PART = "graph_quality"
RESULTS = Path(__file__).parent / "results" / "graph.jsonl"
CHUNKS = 30
HYBRID, GRAPH, ENHANCED, AUTO = "hybrid", "graph", "hybrid, enhanced", "auto"
WAYS = (HYBRID, GRAPH, ENHANCED, AUTO)
SMALL, WHOLE = "small", "whole"
MEASURES = ("Recall@5", "Recall@8", "All@8")
RANKED = "nDCG@10"
# What mode graph must reach over the small corpus, and by how much it must pass hybrid over the whole one.
AT_LEAST = {"Recall@5": 85, "Recall@8": 89, "All@8": 72}
GAIN = 12


@dataclass(frozen=True)
class Found:
    """`graph`: whether the graph was asked, `named`: whether it knew a name of the question."""

    matches: Sequence[Match]
    graph: bool = False
    named: bool = False


Search = Callable[[str], Found]


@dataclass
class Run:
    """Of one way to search: each question's measures in hundredths, the seconds it took, and which questions
    asked the graph and named what it knows."""

    by_question: dict[str, dict[str, float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    graph: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)

    def of(self, measure: str) -> dict[str, float]:
        return {question: found[measure] for question, found in self.by_question.items()}

    def mean(self, measure: str) -> float:
        return fmean(self.of(measure).values())

    def mark(self, question: str, ranking: Sequence[str], relevant: Mapping[str, int]) -> None:
        found = measures(ranking, relevant) | recalls(ranking, relevant)
        self.by_question[question] = {name: 100 * value for name, value in found.items()}


Runs = Mapping[str, Run]


@dataclass(frozen=True)
class Measured:
    """A set's corpus, by each way to search it, and whose rankings of it are published."""

    name: str
    corpus: str
    documents: int
    chunks: int
    runs: Runs
    published: Runs


def measure(library: Library, labelled: Labelled, at_most: int, console: Console) -> list[Measured]:
    whole = _asked(library, labelled, at_most, WAYS if labelled.published else (HYBRID, AUTO), WHOLE, console)
    found = [Measured(labelled.name, WHOLE, len(labelled.documents), library.chunks, whole, {})]
    if library.small is not None:
        small = _asked(library.small, labelled, at_most, WAYS, SMALL, console)
        of_others = published(labelled, at_most)
        found.append(
            Measured(labelled.name, SMALL, len(library.small.names), library.small.chunks, small, of_others)
        )
    return found


def _asked(
    library: Library, labelled: Labelled, at_most: int, ways: Sequence[str], corpus: str, console: Console
) -> dict[str, Run]:
    """Each question by every way in turn."""
    runs = {way: Run() for way in ways}
    searches = {way: search_of(library, way) for way in ways}
    for question in labelled.judged(at_most):
        for way, search in searches.items():
            started = perf_counter()
            found = search(question.text)
            runs[way].seconds.append(perf_counter() - started)
            ranking = by_best_chunk(library.names[match.document_id] for match in found.matches)
            runs[way].mark(question.id, ranking, labelled.relevant[question.id])
            runs[way].graph |= {question.id} if found.graph else set()
            runs[way].named |= {question.id} if found.named else set()
    for way, run in runs.items():
        means = ", ".join(f"{name} {run.mean(name):.1f}" for name in (*MEASURES, RANKED))
        console.print(
            f"{labelled.name}, {corpus}, {way}: {means}; {1000 * median(run.seconds):.1f} ms, "
            f"{len(run.graph)} asked the graph, {len(run.named)} named what it knows",
            highlight=False,
        )
    return runs


def search_of(library: Library, way: str) -> Search:
    """As the search API's router has it, or as the core is told. Nothing is reranked."""

    def routed(text: str) -> Found:
        wanted = SearchRequest(text, top_k=CHUNKS, rerank=False, highlighted=False)
        found = retrieve(library.core, library.reader, wanted, place=Place(library.org_id, None))
        return Found(found.matches, found.route.graph, found.graph.is_seeded)

    def told(text: str) -> Found:
        mode = Mode.GRAPH if way == GRAPH else Mode.HYBRID
        query = Query(text, CHUNKS, mode=mode, rerank=False, graph=way == ENHANCED)
        found = pipeline.search(library.core, library.reader, query)
        asked = found.graph is not None
        return Found(found.matches, asked, found.graph is not None and found.graph.is_seeded)

    return routed if way == AUTO else told


def published(labelled: Labelled, at_most: int) -> dict[str, Run]:
    runs: dict[str, Run] = {}
    for who, rankings in labelled.published.items():
        runs[who] = Run()
        for question in labelled.judged(at_most):
            ranking = rankings.get(question.id, ())
            # What comes again takes up a place, and counts once.
            once = [found if found not in ranking[:place] else "" for place, found in enumerate(ranking)]
            runs[who].mark(question.id, once, labelled.relevant[question.id])
    return runs


def goals(measured: Sequence[Measured]) -> list[Figure]:
    return [figure for one in measured for figure in (*_gained(one), *_kept(one))]


def _gained(one: Measured) -> list[Figure]:
    """Of a corpus that is searched by the graph as such."""
    if GRAPH not in one.runs:
        return []
    graph, about = one.runs[GRAPH], f"{one.name}, {one.corpus}"
    figures = []
    if one.corpus == SMALL:
        figures = [
            Figure(f"graph {name}, {about}", graph.mean(name), "", None, f">= {least}")
            for name, least in AT_LEAST.items()
        ]
    gain = beside(graph, one.runs[HYBRID], MEASURES[0])
    goal = f">= {GAIN}" if one.corpus == WHOLE else None
    figures.append(Figure(f"graph less hybrid, {MEASURES[0]}, {about}", gain.mean, "", None, goal, str(gain)))
    return figures


def _kept(one: Measured) -> list[Figure]:
    """Whether the router's choice loses anything: as long as the interval holds 0, not surely."""
    about = f"{one.name}, {one.corpus}"
    figures = []
    for name in (RANKED, MEASURES[0]):
        lost = beside(one.runs[AUTO], one.runs[HYBRID], name)
        note = f"{lost}; {len(one.runs[AUTO].graph)} of {len(one.runs[AUTO].by_question)} asked the graph"
        figures.append(
            Figure(f"auto less hybrid, {name}, {about}: at most", lost.high, "", None, ">= 0", note)
        )
    return figures


def beside(ours: Run, theirs: Run, name: str) -> Difference:
    return difference(ours.of(name), theirs.of(name))


def lines(one: Measured) -> list[dict[str, Any]]:
    """What is written down of a corpus, a line a way to search."""
    about = {"set": one.name, "corpus": one.corpus, "documents": one.documents, "chunks": one.chunks}
    return [
        {
            **about,
            "questions": len(run.by_question),
            "search": way,
            **{name: round(run.mean(name), 2) for name in (*MEASURES, RANKED)},
            "graph_less_it": _less(one, GRAPH, way, MEASURES[0]),
            "auto_less_it": _less(one, AUTO, way, RANKED) if way in one.runs else None,
            "graph": len(run.graph),
            "named": len(run.named),
            "p50_ms": round(1000 * median(run.seconds), 1) if run.seconds else None,
        }
        for way, run in {**one.runs, **one.published}.items()
    ]


def _less(one: Measured, ours: str, way: str, name: str) -> str | None:
    """By how much that way is better; None where it was not measured, or is that one."""
    if way == ours or ours not in one.runs:
        return None
    return str(beside(one.runs[ours], {**one.runs, **one.published}[way], name))


def write(measured: Sequence[Measured], path: Path = RESULTS) -> None:
    """In the place of what was there of the same sets."""
    sets = {one.name for one in measured}
    kept = [line for line in results(path) if line["set"] not in sets]
    told = [line for one in measured for line in lines(one)]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*kept, *told]))


def results(path: Path = RESULTS) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]
