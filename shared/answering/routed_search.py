"""Routed search: the router plans it, and too few matches extend it.

locate -> moderate -> route -> search -> extend -> moderate
"""

import time
from collections.abc import Sequence

from shared.answering.search_fallbacks import Search, extend
from shared.errors import ContentFlagged
from shared.graph.graph_of_rows import restrict_to_chunks
from shared.models.moderation import Moderator, require_moderator
from shared.retrieval.chunk_search import widen
from shared.retrieval.concatenated_context import concatenate
from shared.retrieval.highlight import highlight
from shared.retrieval.query.document_families import KINDS, Family
from shared.retrieval.query.inferred_route import route
from shared.retrieval.query.types import Route, RouterInput, SearchMode
from shared.retrieval.types import NO_FILTERS, NO_GRAPH, RoutedResult, SearchArea, SearchRequest
from shared.retrieval.workspace_lookup import locate
from shared.services import Services
from shared.tracing import current, milliseconds_since, step
from shared.types import Graph, Match, Principal, ResultKind, SearchResult, SimilarTo

# The half-life of the score of documents, for questions without a time.
HALF_LIFE_DAYS = 365.0
# Source types that `contributions` counts separately.
OBSERVATIONS = frozenset({"observation", *KINDS[Family.INCIDENTS]})
SUMMARIES = frozenset(KINDS[Family.SUMMARIES])


def retrieve(
    services: Services,
    caller: Principal,
    request: SearchRequest,
    subject: SimilarTo | None = None,
    kind: ResultKind = ResultKind.CHUNKS,
    area: SearchArea | None = None,
) -> RoutedResult:
    """The matches of the request's text, or those similar to the subject, whose text the request has.

    `kind`: chunks, or documents by their best chunk. `area`: an area that is already known. Raises NotFound
    for a workspace or org that the caller cannot see, ContentFlagged, or another RagError.
    """
    started = time.perf_counter()
    with step("locate"):
        area = area or locate(services.database, caller, request.workspace, request.org)
    moderator = require_moderator(services.moderator) if request.is_moderated else None
    if moderator and moderator.flagged([request.text])[0]:
        raise ContentFlagged
    with step("route"):
        plan = _plan(services, request, area, is_question=subject is None)
    search = Search(services, caller, request, area, plan, subject, kind)
    search.run()
    extend(search)
    matches, graph = search.result.matches, search.result.graph
    judged = search.judged_matches() if request.is_judged else ()
    if request.neighbours:
        with step("match"):
            matches = widen(services.database, caller, matches, request.neighbours)
    if graph is not None:
        _add_graph_rules(search, graph)
    if moderator and matches:
        flagged = _flagged(moderator, (*judged, *matches))
        count = len(matches)
        matches, judged = (
            tuple(match for match in each if match.chunk_id not in flagged) for each in (matches, judged)
        )
        if not matches:
            judged = ()
        if removed := count - len(matches):
            search.add_rule("moderation", f"Moderation removed {removed} of the results.")
    if moderator and graph is not None:
        # The graph may only show moderated text.
        graph = restrict_to_chunks(graph, {match.chunk_id for match in matches})
    return _routed_result(search, matches, judged, graph, started)


def _flagged(moderator: Moderator, matches: Sequence[Match]) -> set[str]:
    """The chunks whose text or title is harmful. Of a chunk that occurs twice the last text counts."""
    texts = {match.chunk_id: f"{match.title}\n{match.text}" for match in matches}
    flags = moderator.flagged([*texts.values()])
    return {chunk_id for chunk_id, flag in zip(texts, flags, strict=True) if flag}


def _plan(services: Services, request: SearchRequest, area: SearchArea, *, is_question: bool) -> Route:
    reranks = services.settings.rag_rerank_enabled if request.rerank is None else request.rerank
    router_input = RouterInput(
        request.text,
        request.mode,
        request.scope,
        expands=request.expands,
        has_filters=request.filters != NO_FILTERS,
        has_workspace=area.collection_id is not None,
        # Without a reranker the order remains that of the search, which knows dates.
        reranks=reranks and services.reranker is not None,
        is_question=is_question,
    )
    return route(router_input, services.clock(), HALF_LIFE_DAYS)


def _add_graph_rules(search: Search, graph: Graph) -> None:
    if graph.is_seeded:
        search.add_rule("graph", "Names of the question lead to further documents.")
    elif search.route.mode is SearchMode.GRAPH:
        search.add_rule(
            "graph_knows_none", "No document has a name of the question: the graph starts at the best result."
        )
    if not graph.complete:
        search.add_rule("graph_cut_short", "The graph was too large to search completely in time.")


def contributions(matches: Sequence[Match]) -> dict[str, float]:
    """The share of each kind of text in the total score; all 0 without matches."""
    shares = dict.fromkeys(("chunks", "observations", "summaries"), 0.0)
    total = sum(match.score for match in matches)
    for match in matches:
        kind = "summaries" if match.source_type in SUMMARIES else "chunks"
        kind = "observations" if match.source_type in OBSERVATIONS else kind
        shares[kind] += match.score / total if total else 1 / len(matches)
    return {kind: round(share, 4) for kind, share in shares.items()}


def _routed_result(
    search: Search,
    matches: tuple[Match, ...],
    judged: tuple[Match, ...],
    graph: Graph | None,
    started: float,
) -> RoutedResult:
    stages = _stages(search.results)
    is_embedded = stages["embed"] > 0 or any(
        match.similarity is not None for result in search.results for match in result.matches
    )
    request, text = search.request, search.route.text
    highlights = [highlight(match, text) if request.with_highlights else None for match in matches]
    budget = search.services.settings.rag_context_tokens
    return RoutedResult(
        search.query(),
        matches,
        judged,
        tuple(highlights),
        concatenate(matches, budget) if request.with_context else None,
        search.route,
        search.scope,
        tuple(search.rules),
        search.time_range,
        search.services.embedder.model if is_embedded else None,
        contributions(matches),
        stages,
        milliseconds_since(started),
        graph or NO_GRAPH,
        search.result.vector if text == request.text else None,
    )


def _stages(results: Sequence[SearchResult]) -> dict[str, float]:
    """Milliseconds of the current request by stage. `vector`, `lexical` and `graph` are the database's own,
    `hydrate` is the rest of the database calls."""
    trace = current.get()
    times = trace.milliseconds() if trace else {}
    of_database = {
        "lexical": sum(result.lexical_ms for result in results),
        "vector": sum(result.vector_ms for result in results),
        "graph": sum(result.graph_ms for result in results),
    }
    stages = {
        "route": times.get("locate", 0.0) + times.get("route", 0.0),
        "embed": times.get("embed", 0.0),
        **of_database,
        "rerank": times.get("rerank", 0.0),
        "hydrate": max(0.0, times.get("match", 0.0) - sum(of_database.values())),
    }
    return {stage: round(milliseconds, 1) for stage, milliseconds in stages.items()}
