"""The router: which way a question goes, how far, in which words and over which time, and why.

Pure and deterministic: the same question at the same moment takes the same route, and every rule that had a
say stands in it, in the order in which they were asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from shared.graph.query_relations import asks_about_connection, relation_types_in
from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.dates.calendar import TimeRange
from shared.retrieval.query.dates.extract import time_range, without
from shared.retrieval.query.document_kinds import KINDS, Family, family_of
from shared.retrieval.query.expansion import RULES, Expanded, expand
from shared.retrieval.query.intents import fresh, org_level, timeless
from shared.retrieval.query.types import Route, RouterInput, Rule, SearchMode, SearchScope
from shared.text.identifiers import identifier_in
from shared.types import Match, Mode

__all__ = ["Route", "RouterInput", "Rule", "SearchMode", "SearchScope", "low_recall", "route"]

MODES = {
    SearchMode.KNOWLEDGE: Mode.HYBRID,
    SearchMode.GRAPH: Mode.GRAPH,
    SearchMode.HYBRID: Mode.HYBRID,
    SearchMode.KEYWORD: Mode.KEYWORD,
    SearchMode.NEURAL: Mode.SEMANTIC,
    SearchMode.FAST: Mode.KEYWORD,
}
# What is written in them holds until it is written anew, however long ago that was.
TIMELESS = frozenset({Family.DOCS, Family.CODE})


def route(
    request: RouterInput,
    now: datetime,
    half_life_days: float | None,
    expand: Callable[[str], Expanded] = expand,
) -> Route:
    """The question's route; `now` is aware. With a rewriter's `expand` it is as deterministic as that."""
    rules: list[Rule] = []
    name = identifier_in(request.text) if request.way in (SearchMode.AUTO, SearchMode.FAST) else None
    is_name = name is not None
    way, mode = _way(request, is_name, rules)
    reach, falls_back = _reach(request, rules)
    fast = is_name or way is SearchMode.FAST
    graph = (
        _graph(request, rules)
        if request.way is SearchMode.AUTO and request.questions and not is_name
        else False
    )
    may_infer = request.way is SearchMode.AUTO and request.questions and not fast
    infers = may_infer and not request.narrowed
    if may_infer and request.narrowed:
        rules.append(Rule("narrowed", "The request has its own filters: kind and time are not inferred."))
    family = _family(request.text, rules) if infers else None
    time = _time(request.text, now, rules) if infers else None
    decay = _decay(request, family, time, half_life_days, rules) if infers else None
    expansion = _expanded(request.text, time, expand, rules) if request.expands and not fast else None
    return Route(
        way=way,
        mode=mode,
        reach=reach,
        falls_back=falls_back,
        text=expansion.meaning if expansion else name or request.text,
        words=expansion.words if expansion else name or request.text,
        family=family,
        prefer=KINDS[family] if family else (),
        time_range=time,
        half_life_days=decay,
        rerank=False if fast else request.reranks,
        rules=tuple(rules),
        expanded=expansion,
        graph=graph or way is SearchMode.GRAPH,
    )


def _way(request: RouterInput, is_name: bool, rules: list[Rule]) -> tuple[SearchMode, Mode]:
    if is_name:
        rules.append(Rule("identifier", "The question is one name: it is looked for by word, as it is."))
        return SearchMode.KEYWORD, Mode.KEYWORD
    if request.way is SearchMode.AUTO:
        rules.append(Rule("hybrid", "The question is not a name: it is looked for by meaning and by word."))
        return SearchMode.HYBRID, Mode.HYBRID
    rules.append(Rule("mode_given", f"The request asks for {request.way}."))
    return request.way, MODES[request.way]


def _graph(request: RouterInput, rules: list[Rule]) -> bool:
    """Whether it is asked how things are connected. (Which of its words are names is the database's to say:
    it knows them, in whatever case.)"""
    types = relation_types_in(request.text)
    if not types and not asks_about_connection(request.text):
        return False
    which = f" ({', '.join(types)})" if types else ""
    because = f"The question asks how things are related{which}: what is known of its names counts as well."
    rules.append(Rule("graph", because))
    return True


def _reach(request: RouterInput, rules: list[Rule]) -> tuple[SearchScope, bool]:
    if request.reach is not SearchScope.AUTO:
        rules.append(Rule("scope_given", f"The request asks for {request.reach}."))
        return request.reach, False
    if not request.has_workspace:
        rules.append(Rule("no_workspace", "The request names no workspace: the whole org is searched."))
        return SearchScope.ORG, False
    if request.way is SearchMode.FAST:
        rules.append(Rule("workspace", "The workspace is searched, and nothing else: fast looks once."))
        return SearchScope.WORKSPACE, False
    if request.narrowed:
        # Filters say what is wanted: who gives them is not shown what lies beyond.
        rules.append(Rule("workspace", "The workspace is searched, and nothing else: the filters hold."))
        return SearchScope.WORKSPACE, False
    if request.questions and (of_org := org_level(request.text)):
        what, word = of_org
        rules.append(
            Rule("org_level", f"“{word}” asks about {what}, which is the org's: all of it is searched.")
        )
        return SearchScope.ORG, False
    rules.append(Rule("workspace", "The workspace is searched; the whole org, if it has too little."))
    return SearchScope.WORKSPACE, True


def _family(text: str, rules: list[Rule]) -> Family | None:
    evidence = family_of(text)
    if evidence is None:
        return None
    rules.append(Rule("family", f"“{evidence[1]}” asks for {evidence[0]}: they come first."))
    return evidence[0]


def _time(text: str, now: datetime, rules: list[Rule]) -> TimeRange | None:
    time = time_range(text, now)
    if time:
        begin, end = (moment.isoformat() if moment else "any time" for moment in (time.after, time.before))
        rules.append(Rule("time_range", f"“{time.text}” is from {begin} to {end}."))
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
        rules.append(Rule("no_decay", "A reranker makes the order, and knows no dates."))
        return None
    newest = fresh(request.text)
    if not newest and (word := timeless(request.text)):
        rules.append(Rule("no_decay", f"“{word}” asks for what does not age."))
        return None
    if not newest and family in TIMELESS:
        rules.append(Rule("no_decay", f"What is in {family} does not age."))
        return None
    because = f"“{newest}” asks for what is new" if newest else "Nothing is said of time"
    effect = f"at {half_life_days:g} days a score keeps three quarters"
    rules.append(Rule("decay", f"{because}: older documents are held back, {effect}."))
    return half_life_days


def _expanded(
    text: str, time: TimeRange | None, expand: Callable[[str], Expanded], rules: list[Rule]
) -> Expanded:
    rest = without(text, time) if time else text
    expanded = expand(rest)
    if expanded.by != RULES:
        rules.append(Rule("rewritten", f"{expanded.by} rewrote the question."))
    elif expanded.meaning != text:
        rules.append(Rule("rephrased", "What is not looked for was left out of the question."))
    if expanded.added:
        rules.append(Rule("expanded", f"Looked for as well: {', '.join(expanded.added)}."))
    # By word a document may be found that has no date and says "last week".
    if rest != text and time and time.text.lower() not in expanded.words.lower():
        expanded = replace(expanded, words=f"{expanded.words} {time.text}"[:MAX_LENGTH])
    return expanded


def low_recall(matches: Sequence[Match], count: int, medium: float) -> str | None:
    """Why the matches, of which the caller sees so many, are too little; None where they are enough.

    `medium` is the similarity from which on confidence is medium; where nothing was compared, by word alone,
    whatever was found is enough.
    """
    best = matches[:count]
    if not best:
        return "nothing was found"
    similarities = [match.similarity for match in best if match.similarity is not None]
    if similarities and max(similarities) < medium:
        return f"the nearest is {max(similarities):.2f} similar, and {medium:.2f} is expected"
    return None
