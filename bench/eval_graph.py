"""Effect of the graph on labelled sets: called by bench/evaluate.py.

For every set: mode graph and the search API's router beside hybrid search, with documents ranked by their
best of thirty chunks. For a set with published rankings also hybrid search with entities, and the small
corpus of these rankings. Means go to bench/results/graph.jsonl; differences have the paired bootstrap's
interval.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rich.console import Console

from bench.figures import Figure, replace_lines
from bench.labelled_sets import IngestedSet, judged
from bench.ranking import Difference, Run, difference
from shared import pipeline
from shared.answering.routed_search import retrieve
from shared.calibration.labelled_sets import LabelledSet
from shared.retrieval.types import SearchArea, SearchRequest
from shared.types import Match, Mode, Query

PART = "graph_quality"
RESULTS = Path(__file__).parent / "results" / "graph.jsonl"
CHUNKS = 30
HYBRID, GRAPH, ENHANCED, AUTO = "hybrid", "graph", "hybrid, enhanced", "auto"
METHODS = (HYBRID, GRAPH, ENHANCED, AUTO)
SMALL, WHOLE = "small", "whole"
MEASURES = ("Recall@5", "Recall@8", "All@8")
RANKED = "nDCG@10"
# The goals: mode graph over the small corpus, its gain over hybrid search in these sets, and the share of its
# gain that the router keeps.
AT_LEAST = {"Recall@5": 95, "All@8": 93}
GAINS = {"multihop_2wiki_101": 25, "workplace_two_steps": 8}
GAIN_KEPT = 0.9


@dataclass(frozen=True)
class SearchOutcome:
    """`graph`: whether the graph was asked, `named`: whether it knew a name of the question."""

    matches: Sequence[Match]
    graph: bool = False
    named: bool = False


Search = Callable[[str], SearchOutcome]


@dataclass
class GraphRun(Run):
    """Also which questions asked the graph, and which named what it knows."""

    graph: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)


Runs = Mapping[str, GraphRun]


@dataclass(frozen=True)
class CorpusRuns:
    """A set's corpus, by each way to search it, and whose rankings of it are published."""

    name: str
    corpus: str
    documents: int
    chunks: int
    runs: Runs
    published: Runs


def measure(
    ingested: IngestedSet, labelled_set: LabelledSet, limit: int, console: Console
) -> list[CorpusRuns]:
    methods = METHODS if labelled_set.published else (HYBRID, GRAPH, AUTO)
    whole = _run_searches(ingested, labelled_set, limit, methods, WHOLE, console)
    matches = [CorpusRuns(labelled_set.name, WHOLE, len(labelled_set.documents), ingested.chunks, whole, {})]
    if ingested.small is not None:
        small = _run_searches(ingested.small, labelled_set, limit, METHODS, SMALL, console)
        of_others = published(labelled_set, limit)
        matches.append(
            CorpusRuns(
                labelled_set.name, SMALL, len(ingested.small.names), ingested.small.chunks, small, of_others
            )
        )
    return matches


def _run_searches(
    ingested: IngestedSet,
    labelled_set: LabelledSet,
    limit: int,
    methods: Sequence[str],
    corpus: str,
    console: Console,
) -> dict[str, GraphRun]:
    """Each question by every way in turn."""
    runs = {method: GraphRun() for method in methods}
    searches = {method: search_of(ingested, method) for method in methods}
    for question in judged(labelled_set, limit):
        for method, search in searches.items():
            started = perf_counter()
            matches = search(question.text)
            runs[method].seconds.append(perf_counter() - started)
            runs[method].mark(
                question.id, ingested.ranking(matches.matches), labelled_set.relevant[question.id]
            )
            runs[method].graph |= {question.id} if matches.graph else set()
            runs[method].named |= {question.id} if matches.named else set()
    for method, run in runs.items():
        console.print(
            f"{labelled_set.name}, {corpus}, {method}: {run.means((*MEASURES, RANKED))}, "
            f"{len(run.graph)} asked the graph, {len(run.named)} named what it knows",
            highlight=False,
        )
    return runs


def search_of(ingested: IngestedSet, method: str) -> Search:
    """As the search API's router has it, or as the caller of the search states. Nothing is reranked."""

    def routed(text: str) -> SearchOutcome:
        request = SearchRequest(text, top_k=CHUNKS, rerank=False, with_highlights=False)
        chunks = retrieve(ingested.services, ingested.reader, request, area=SearchArea(ingested.org_id, None))
        return SearchOutcome(chunks.matches, chunks.route.graph, chunks.graph.is_seeded)

    def summary(text: str) -> SearchOutcome:
        mode = Mode.GRAPH if method == GRAPH else Mode.HYBRID
        query = Query(text, CHUNKS, mode=mode, rerank=False, graph=method == ENHANCED)
        result = pipeline.search(ingested.services, ingested.reader, query)
        request = result.graph is not None
        return SearchOutcome(result.matches, request, result.graph is not None and result.graph.is_seeded)

    return routed if method == AUTO else summary


def published(labelled_set: LabelledSet, limit: int) -> dict[str, GraphRun]:
    runs: dict[str, GraphRun] = {}
    for who, rankings in labelled_set.published.items():
        runs[who] = GraphRun()
        for question in judged(labelled_set, limit):
            ranking = rankings.get(question.id, ())
            # What comes again takes up a place, and counts once.
            once = [entry if entry not in ranking[:place] else "" for place, entry in enumerate(ranking)]
            runs[who].mark(question.id, once, labelled_set.relevant[question.id])
    return runs


def goals(measured: Sequence[CorpusRuns]) -> list[Figure]:
    return [figure for one in measured for figure in (*_gain_figures(one), *_router_figures(one))]


def _gain_figures(one: CorpusRuns) -> list[Figure]:
    """Of a corpus that is searched by the graph as such."""
    if GRAPH not in one.runs:
        return []
    graph, about = one.runs[GRAPH], f"{one.name}, {one.corpus}"
    figures = []
    if one.corpus == SMALL and one.name in GAINS:
        figures = [
            Figure(f"graph {name}, {about}", graph.mean(name), "", None, f">= {least}")
            for name, least in AT_LEAST.items()
        ]
    gain = compare(graph, one.runs[HYBRID], MEASURES[0])
    goal = f">= {GAINS[one.name]}" if one.name in GAINS and one.corpus == WHOLE else None
    figures.append(Figure(f"graph less hybrid, {MEASURES[0]}, {about}", gain.mean, "", None, goal, str(gain)))
    if gain.low > 0:
        auto_share = compare(one.runs[AUTO], one.runs[HYBRID], MEASURES[0]).mean / gain.mean
        name = f"auto's share of the gain, {MEASURES[0]}, {about}"
        figures.append(Figure(name, auto_share, "", None, f">= {GAIN_KEPT}"))
    return figures


def _router_figures(one: CorpusRuns) -> list[Figure]:
    """Whether the router's choice loses anything: as long as the interval holds 0, not surely."""
    about = f"{one.name}, {one.corpus}"
    figures = []
    for name in (RANKED, MEASURES[0]):
        lost = compare(one.runs[AUTO], one.runs[HYBRID], name)
        note = f"{lost}; {len(one.runs[AUTO].graph)} of {len(one.runs[AUTO].by_question)} asked the graph"
        figures.append(
            Figure(f"auto less hybrid, {name}, {about}: at most", lost.high, "", None, ">= 0", note)
        )
    return figures


def compare(ours: Run, theirs: Run, name: str) -> Difference:
    return difference(ours.of(name), theirs.of(name))


def lines(one: CorpusRuns) -> list[dict[str, Any]]:
    """The record of a corpus, a line for each mode."""
    about = {"set": one.name, "corpus": one.corpus, "documents": one.documents, "chunks": one.chunks}
    return [
        {
            **about,
            "questions": len(run.by_question),
            "search": method,
            **{name: round(run.mean(name), 2) for name in (*MEASURES, RANKED)},
            "graph_less_it": _difference_text(one, GRAPH, method, MEASURES[0]),
            "auto_less_it": _difference_text(one, AUTO, method, RANKED) if method in one.runs else None,
            "graph": len(run.graph),
            "named": len(run.named),
            "p50_ms": round(1000 * median(run.seconds), 1) if run.seconds else None,
        }
        for method, run in {**one.runs, **one.published}.items()
    ]


def _difference_text(one: CorpusRuns, ours: str, method: str, name: str) -> str | None:
    """By how much that way is better; None where it was not measured, or is that one."""
    if method == ours or ours not in one.runs:
        return None
    return str(compare(one.runs[ours], {**one.runs, **one.published}[method], name))


def write(measured: Sequence[CorpusRuns], path: Path = RESULTS) -> None:
    """Replaces the earlier lines of the same sets."""
    sets = {one.name for one in measured}
    replace_lines(path, (line for one in measured for line in lines(one)), lambda line: line["set"] in sets)
