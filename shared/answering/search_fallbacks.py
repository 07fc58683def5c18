"""Fallbacks of a search with too few matches: semantic search, no time range, the whole org."""

from dataclasses import dataclass, field, replace

from shared import pipeline
from shared.generation.confidence import JUDGED_MATCHES
from shared.retrieval.query.dates.calendar import TimeRange
from shared.retrieval.query.types import Route, Rule, SearchMode, SearchScope
from shared.retrieval.types import SearchArea, SearchRequest
from shared.services import Services
from shared.types import (
    Confidence,
    Filters,
    Match,
    Mode,
    Principal,
    Query,
    ResultKind,
    SearchResult,
    SimilarTo,
)


@dataclass(slots=True)
class Search:
    """A search in progress, with its current parameters and the results so far."""

    services: Services
    caller: Principal
    request: SearchRequest
    area: SearchArea
    route: Route
    subject: SimilarTo | None
    kind: ResultKind
    scope: SearchScope = field(init=False)
    match_mode: Mode = field(init=False)
    time_range: TimeRange | None = field(init=False)
    rules: list[Rule] = field(init=False)
    results: list[SearchResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scope, self.match_mode = self.route.scope, self.route.match_mode
        self.time_range, self.rules = self.route.time_range, list(self.route.rules)

    @property
    def result(self) -> SearchResult:
        return self.results[-1]

    def run(self) -> None:
        if self.subject is None:
            query, judged = self.query(), self._confidence_query() if self.request.is_judged else None
            same = judged and (judged.text, judged.filters) == (query.text, query.filters)
            result = pipeline.search(self.services, self.caller, query, judged=judged if same else None)
        else:
            result = pipeline.similar(self.services, self.caller, self.subject, self.query(), self.kind)
        self.results.append(result)

    def judged_matches(self) -> tuple[Match, ...]:
        """The matches of the confidence query in the scope of the last search. Raises a RagError."""
        if self.result.judged or not self.result.matches:
            return self.result.judged
        # The result stays the last of the results.
        self.results.insert(0, pipeline.search(self.services, self.caller, self._confidence_query()))
        return self.results[0].matches

    def _confidence_query(self) -> Query:
        filters = narrow_filters(self.request.filters, self.area, self.scope)
        return pipeline.confidence_query(self.request.text, filters, self.request.rerank)

    def query(self) -> Query:
        """The query of the current parameters."""
        request, route = self.request, self.route
        return Query(
            route.text,
            request.top_k,
            narrow_filters(request.filters, self.area, self.scope, self.time_range),
            self.match_mode,
            route.rerank,
            half_life_days=route.half_life_days if self.time_range is None else None,
            words=route.words,
            prefer=route.prefer,
            graph=route.graph,
        )

    def add_rule(self, name: str, reason: str) -> None:
        self.rules.append(Rule(name, reason))


def extend(search: Search) -> None:
    """Repeat the search with other parameters where it found too little. Raises a RagError."""
    _search_by_meaning(search)
    _search_without_time_range(search)
    _search_whole_org(search)


def _search_by_meaning(search: Search) -> None:
    if search.route.identifies and search.result.vector:
        search.add_rule("identifier_not_found", "No document has this identifier: semantic search as well.")
    if search.route.mode is SearchMode.FAST and not search.result.matches:
        search.match_mode = Mode.SEMANTIC
        search.add_rule("nothing_by_word", "No document has these words: semantic search.")
        search.run()


def _search_without_time_range(search: Search) -> None:
    if (time_range := search.time_range) is None:
        return
    may_drop = search.request.is_judged or not search.result.matches
    if not may_drop or (reason := _low_recall(search)) is None:
        return
    search.time_range = None
    search.add_rule(
        "time_range_dropped", f"With the time “{time_range.text}” {reason}: the search has no time range."
    )
    search.run()


def _search_whole_org(search: Search) -> None:
    if not search.route.falls_back or search.scope is SearchScope.ORG:
        return
    if (reason := _low_recall(search)) is None:
        return
    search.scope = SearchScope.ORG
    search.add_rule("org_fallback", f"In the workspace {reason}: the whole organization was searched.")
    search.run()


def _low_recall(search: Search) -> str | None:
    """Why the matches do not suffice; None if they do. Matches without similarities suffice."""
    matches = search.result.matches
    if not matches:
        return "nothing was found"
    if all(match.similarity is None for match in matches):
        return None
    matches = matches[:JUDGED_MATCHES]
    judgement = pipeline.judge_matches(search.services, search.caller, matches, search.request.text)
    return "confidence is low" if judgement.confidence is Confidence.LOW else None


def narrow_filters(
    filters: Filters, area: SearchArea, scope: SearchScope, time_range: TimeRange | None = None
) -> Filters:
    """The filters, limited to the area and the time range; the scope org ignores the workspace."""
    collections = () if scope is SearchScope.ORG or area.collection_id is None else (area.collection_id,)
    filters = replace(filters, org_id=area.org_id, collection_ids=collections)
    return replace(filters, date_from=time_range.after, date_to=time_range.before) if time_range else filters
