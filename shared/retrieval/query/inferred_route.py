"""Route of a search, inferred from its question: mode, scope, words, kind of documents and time range.

Pure and deterministic: a route depends on the request and the time alone. It lists the rules that were
applied, in order.
"""

from dataclasses import replace
from datetime import datetime

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.dates.calendar import TimeRange
from shared.retrieval.query.dates.extract import remove_time, time_range
from shared.retrieval.query.document_families import KINDS, Family, family_of
from shared.retrieval.query.expansion import Expansion, expand
from shared.retrieval.query.question_intents import freshness, org_level, timeless
from shared.retrieval.query.types import Route, RouterInput, Rule, SearchMode, SearchScope
from shared.text.identifiers import identifier_in, is_unambiguous
from shared.types import Mode

MODES = {
    SearchMode.KNOWLEDGE: Mode.HYBRID,
    SearchMode.GRAPH: Mode.GRAPH,
    SearchMode.HYBRID: Mode.HYBRID,
    SearchMode.KEYWORD: Mode.KEYWORD,
    SearchMode.NEURAL: Mode.SEMANTIC,
    SearchMode.FAST: Mode.KEYWORD,
}
# Their content does not age.
TIMELESS = frozenset({Family.DOCS, Family.CODE})


def route(
    request: RouterInput,
    now: datetime,
    half_life_days: float | None,
) -> Route:
    """The request's route. `now` has a time zone."""
    rules: list[Rule] = []
    may_name = request.is_question and request.mode in (SearchMode.AUTO, SearchMode.FAST)
    identifier = identifier_in(request.text) if may_name else None
    name = identifier if identifier and is_unambiguous(identifier) else None
    is_name = name is not None
    mode, match_mode = _modes(request, is_name, rules)
    scope, falls_back = _scope(request, rules)
    fast = is_name or mode is SearchMode.FAST
    may_infer = request.mode is SearchMode.AUTO and request.is_question and not fast
    infers = may_infer and not request.has_filters
    if may_infer and request.has_filters:
        rules.append(Rule("narrowed", "The request has its own filters: kind and time are not inferred."))
    family = _family(request.text, rules) if infers else None
    time = _time(request.text, now, rules) if infers else None
    decay = _decay(request, family, time, half_life_days, rules) if infers else None
    expansion = _expand(request.text, time, rules) if request.expands and not fast else None
    return Route(
        mode=mode,
        match_mode=match_mode,
        scope=scope,
        falls_back=falls_back,
        text=expansion.text if expansion else name or request.text,
        words=expansion.words if expansion else name or request.text,
        family=family,
        prefer=KINDS[family] if family else (),
        time_range=time,
        half_life_days=decay,
        rerank=False if fast else request.reranks,
        rules=tuple(rules),
        graph=may_infer or mode is SearchMode.GRAPH,
    )


def _modes(request: RouterInput, is_name: bool, rules: list[Rule]) -> tuple[SearchMode, Mode]:
    if is_name:
        rules.append(Rule("identifier", "The question is an identifier: keyword search, unchanged."))
        return SearchMode.KEYWORD, Mode.HYBRID
    if request.mode is SearchMode.AUTO:
        rules.append(Rule("hybrid", "The question is not an identifier: semantic and keyword search."))
        return SearchMode.HYBRID, Mode.HYBRID
    rules.append(Rule("mode_given", f"The request asks for {request.mode}."))
    return request.mode, MODES[request.mode]


def _scope(request: RouterInput, rules: list[Rule]) -> tuple[SearchScope, bool]:
    if request.scope is not SearchScope.AUTO:
        rules.append(Rule("scope_given", f"The request asks for {request.scope}."))
        return request.scope, False
    if not request.has_workspace:
        rules.append(Rule("no_workspace", "The request names no workspace: the whole org is searched."))
        return SearchScope.ORG, False
    if request.mode is SearchMode.FAST:
        rules.append(Rule("workspace", "Only the workspace is searched: fast mode searches once."))
        return SearchScope.WORKSPACE, False
    if request.has_filters:
        # Filters also limit a search to its workspace.
        rules.append(Rule("workspace", "Only the workspace is searched: the request has filters."))
        return SearchScope.WORKSPACE, False
    if request.is_question and (of_org := org_level(request.text)):
        topic, word = of_org
        rules.append(Rule("org_level", f"“{word}” asks about {topic}: the whole org is searched."))
        return SearchScope.ORG, False
    rules.append(Rule("workspace", "The workspace is searched, then the whole org if too little matches."))
    return SearchScope.WORKSPACE, True


def _family(text: str, rules: list[Rule]) -> Family | None:
    if (match := family_of(text)) is None:
        return None
    family, keyword = match
    rules.append(Rule("family", f"“{keyword}” asks for {family}: these are ranked first."))
    return family


def _time(text: str, now: datetime, rules: list[Rule]) -> TimeRange | None:
    time = time_range(text, now)
    if time:
        begin, end = (moment.isoformat() if moment else "any time" for moment in (time.after, time.before))
        rules.append(Rule("time_range", f"“{time.text}” is the time from {begin} to {end}."))
    return time


def _decay(
    request: RouterInput,
    family: Family | None,
    time: TimeRange | None,
    half_life_days: float | None,
    rules: list[Rule],
) -> float | None:
    if half_life_days is None or time:
        return None
    if request.reranks:
        rules.append(Rule("no_decay", "A reranker orders the results, and ignores dates."))
        return None
    newest = freshness(request.text)
    if not newest and (word := timeless(request.text)):
        rules.append(Rule("no_decay", f"“{word}” asks for content that does not age."))
        return None
    if not newest and family in TIMELESS:
        rules.append(Rule("no_decay", f"Documents of the family {family} do not age."))
        return None
    because = f"“{newest}” asks for new documents" if newest else "The question names no time"
    effect = f"at {half_life_days:g} days a score keeps three quarters"
    rules.append(Rule("decay", f"{because}: older documents rank lower, {effect}."))
    return half_life_days


def _expand(text: str, time: TimeRange | None, rules: list[Rule]) -> Expansion:
    rest = remove_time(text, time) if time else text
    expansion = expand(rest)
    if expansion.text != text:
        rules.append(Rule("rephrased", "Filler and time expressions were removed from the question."))
    if expansion.additions:
        rules.append(Rule("expanded", f"Added to the keywords: {', '.join(expansion.additions)}."))
    # A document without a date may contain the words "last week".
    if rest != text and time and time.text.lower() not in expansion.words.lower():
        expansion = replace(expansion, words=f"{expansion.words} {time.text}"[:MAX_LENGTH])
    return expansion
