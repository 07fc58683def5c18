"""Retrieval that explains itself: the router says what is meant and how to look (routing/), the core looks,
and where a workspace has little on it, or nothing within the time that was meant, it looks further.

    locate -> moderate -> route -> search -> search further -> moderate
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shared import pipeline
from shared.errors import ContentFlagged
from shared.graph.query_result import restrict_to_chunks
from shared.models.moderation import require_moderator
from shared.observability.tracing import current, milliseconds_since, step
from shared.retrieval.context_text import concatenated
from shared.retrieval.highlight import highlight
from shared.retrieval.match import holds
from shared.retrieval.query.dates.extract import TimeRange
from shared.retrieval.query.document_kinds import KINDS, Family
from shared.retrieval.query.expansion import expand
from shared.retrieval.query.router import low_recall, route
from shared.retrieval.query.types import Route, RouterInput, Rule, SearchMode, SearchScope
from shared.retrieval.types import NO_FILTERS, NO_GRAPH, Place, RoutedResult, SearchRequest
from shared.retrieval.workspace import locate
from shared.services import Services
from shared.types import Filters, Graph, Match, Mode, Principal, Query, Result, SearchResult, SimilarTo

# Kinds of documents that are counted apart from plain chunks.
OBSERVATIONS = frozenset({"observation", *KINDS[Family.INCIDENTS]})
SUMMARIES = frozenset(KINDS[Family.SUMMARIES])


@dataclass(slots=True)
class _Search:
    """A search in progress: how it looks by now, and what the databases's legs took so far."""

    core: Services
    caller: Principal
    wanted: SearchRequest
    place: Place
    route: Route
    reach: SearchScope
    mode: Mode
    time_range: TimeRange | None
    rules: list[Rule]
    subject: SimilarTo | None
    result: Result
    vector_ms: float = 0.0
    lexical_ms: float = 0.0
    graph_ms: float = 0.0
    embeds: bool = False
    found: SearchResult = field(default_factory=lambda: SearchResult((), None, 0))

    def look(self) -> None:
        query = self.query()
        if self.subject is None:
            found = pipeline.search(self.core, self.caller, query)
        else:
            found = pipeline.similar(self.core, self.caller, self.subject, query, self.result)
        self.embeds = self.embeds or any(match.similarity is not None for match in found.matches)
        self.found = found
        self.vector_ms += found.vector_ms
        self.lexical_ms += found.lexical_ms
        self.graph_ms += found.graph_ms

    def query(self) -> Query:
        wanted, way = self.wanted, self.route
        return Query(
            way.text,
            wanted.top_k,
            narrowed(wanted.filters, self.place, self.reach, self.time_range),
            self.mode,
            way.rerank,
            wanted.neighbours,
            way.half_life_days if self.time_range is None else None,
            words=way.words,
            prefer=way.prefer,
            compares=wanted.compares,
            graph=way.graph,
        )

    def because(self, rule: str, because: str) -> None:
        self.rules.append(Rule(rule, because))


def retrieve(
    core: Services,
    caller: Principal,
    wanted: SearchRequest,
    subject: SimilarTo | None = None,
    result: Result = Result.CHUNKS,
    place: Place | None = None,
) -> RoutedResult:
    """What answers the text; or, for a subject whose text that is, what is like it: chunks, or documents by
    their best chunk. `place`: where, if that is known already. Raises NotFound for a workspace or org that
    the caller does not see, ContentFlagged, or a RagError."""
    started = time.perf_counter()
    with step("locate"):
        place = place or locate(core.database, caller, wanted.workspace, wanted.org)
    moderator = require_moderator(core.moderator) if wanted.moderated else None
    if moderator and moderator.flagged([wanted.text])[0]:
        raise ContentFlagged
    with step("route"):
        asked = RouterInput(
            wanted.text,
            wanted.way,
            wanted.reach,
            expands=wanted.expands,
            narrowed=wanted.filters != NO_FILTERS,
            has_workspace=place.collection_id is not None,
            reranks=core.settings.rag_rerank_enabled if wanted.rerank is None else wanted.rerank,
            questions=subject is None,
        )
        half_life = core.settings.rag_recency_half_life_days or None
        way = route(asked, core.clock(), half_life, core.rewriter.expand if core.rewriter else expand)
    search = _Search(
        core,
        caller,
        wanted,
        place,
        way,
        way.reach,
        way.mode,
        way.time_range,
        list(way.rules),
        subject,
        result,
    )
    search.look()
    _look_by_meaning(search)
    _look_at_any_time(search)
    _look_in_the_org(search)
    matches, graph = search.found.matches, search.found.graph
    if graph is not None:
        _look_at_the_graph(search, graph)
    if moderator and matches:
        harmful = moderator.flagged([f"{match.title}\n{match.text}" for match in matches])
        matches = tuple(match for match, flag in zip(matches, harmful, strict=True) if not flag)
        if any(harmful):
            search.because("moderation", f"{sum(harmful)} of the results were left out.")
    if moderator and graph is not None:
        # What was not judged is not shown.
        graph = restrict_to_chunks(graph, {match.chunk_id for match in matches})
    return _retrieved(search, matches, graph, started)


def _look_at_the_graph(search: _Search, graph: Graph) -> None:
    """What it had no part in, and what it had no time for, is said."""
    if not graph.is_seeded:
        search.because(
            "graph_knows_none", "No document names what the question names: the graph had no part."
        )
    elif not graph.complete:
        search.because("graph_cut_short", "The graph is too large to be followed to its end in time.")


def _look_by_meaning(search: _Search) -> None:
    """What no document says word for word, some may mean."""
    way = search.route
    if search.mode is not Mode.KEYWORD or search.wanted.way is SearchMode.KEYWORD:
        return
    matches = search.found.matches
    if way.way is SearchMode.FAST and not matches:
        search.mode = Mode.SEMANTIC
        search.because("nothing_by_word", "No document has these words: looked for by meaning.")
        search.look()
    elif way.way is SearchMode.KEYWORD and not (matches and holds(matches[0], way.text)):
        search.mode = Mode.HYBRID
        search.because("identifier_not_found", "No document holds this name: looked for by meaning as well.")
        search.look()


def _look_in_the_org(search: _Search) -> None:
    if not search.route.falls_back or search.reach is SearchScope.ORG:
        return
    matches, medium = search.found.matches, search.core.thresholds.medium
    if (why := low_recall(matches, search.wanted.top_k, medium)) is None:
        return
    search.reach = SearchScope.ORG
    search.because("org_fallback", f"In the workspace {why}: looked in the whole organization.")
    search.look()


def _look_at_any_time(search: _Search) -> None:
    """A time that nothing is from was hardly meant."""
    said = search.time_range
    if said is None or search.found.matches:
        return
    search.time_range = None
    search.because("time_range_dropped", f"Nothing is from the time of “{said.text}”: looked at any time.")
    search.look()


def narrowed(filters: Filters, place: Place, reach: SearchScope, said: TimeRange | None = None) -> Filters:
    """The filters, within the place, as far as it reaches, and within the time that the question says."""
    inside = () if reach is SearchScope.ORG or place.collection_id is None else (place.collection_id,)
    filters = replace(filters, org_id=place.org_id, collection_ids=inside)
    return replace(filters, date_from=said.after, date_to=said.before) if said else filters


def contributions(matches: Sequence[Match]) -> dict[str, float]:
    """Of what kind of text how much of the results' score is; all 0 where there are none."""
    shares = dict.fromkeys(("chunks", "observations", "summaries"), 0.0)
    total = sum(match.score for match in matches)
    for match in matches:
        kind = "summaries" if match.source_type in SUMMARIES else "chunks"
        kind = "observations" if match.source_type in OBSERVATIONS else kind
        shares[kind] += match.score / total if total else 1 / len(matches)
    return {kind: round(found, 4) for kind, found in shares.items()}


def _retrieved(
    search: _Search, matches: tuple[Match, ...], graph: Graph | None, started: float
) -> RoutedResult:
    stages = stage_timings(search.vector_ms, search.lexical_ms, search.graph_ms)
    embedded = search.embeds or stages["embed"] > 0
    wanted, asked = search.wanted, search.route.text
    highlights = [highlight(match, asked) if wanted.highlighted else None for match in matches]
    budget = search.core.settings.rag_context_tokens
    return RoutedResult(
        matches,
        tuple(highlights),
        concatenated(matches, budget) if wanted.in_context else None,
        search.place,
        search.route,
        search.reach,
        tuple(search.rules),
        search.time_range,
        search.core.embedder.model if embedded else None,
        contributions(matches),
        stages,
        milliseconds_since(started),
        graph or NO_GRAPH,
        search.found.vector if asked == wanted.text else None,
    )


def stage_timings(vector_ms: float, lexical_ms: float, graph_ms: float) -> dict[str, float]:
    """Milliseconds of the request at hand, by stage: `vector`, `lexical` and `graph` are the database's own,
    `hydrate` is the rest of asking it."""
    trace = current.get()
    taken = trace.milliseconds() if trace else {}
    hydrate = max(0.0, taken.get("match", 0.0) - vector_ms - lexical_ms - graph_ms)
    return {
        "route": round(taken.get("locate", 0.0) + taken.get("route", 0.0), 1),
        "embed": taken.get("embed", 0.0),
        "lexical": round(lexical_ms, 1),
        "vector": round(vector_ms, 1),
        "graph": round(graph_ms, 1),
        "rerank": taken.get("rerank", 0.0),
        "hydrate": round(hydrate, 1),
    }
