"""The route of a question, and the rules for it; asked on Wednesday, 15 April 2026."""

import time
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as some

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.dates.extract import remove_time, time_range
from shared.retrieval.query.document_families import KINDS, Family
from shared.retrieval.query.inferred_route import route
from shared.retrieval.query.types import Route, RouterInput, SearchMode, SearchScope
from shared.types import Mode

NOW = datetime(2026, 4, 15, 14, 30, tzinfo=UTC)
HALF_LIFE = 90.0
REQUEST = RouterInput(
    "kettle", SearchMode.AUTO, SearchScope.AUTO, expands=True, has_filters=False, has_workspace=True
)


def plan_for(text: str, half_life_days: float | None = HALF_LIFE, **fields: object) -> Route:
    return route(replace(REQUEST, text=text, **fields), NOW, half_life_days)  # type: ignore[arg-type]


def names(plan: Route) -> list[str]:
    return [rule.name for rule in plan.rules]


NAMES = {
    "INC-4821": "INC-4821", "shared/match.py": "shared/match.py", "ann@example.com": "ann@example.com",
    " v1.2.3 ": "v1.2.3", "1.2.3": "1.2.3", "retry_count": "retry_count", "INC-7?": "INC-7",
    "INC-7.": "INC-7", "“INC-7”": "INC-7", "“INC-7”?": "INC-7", '"INC-7?"': "INC-7",
    "'retry_count'": "retry_count",
}  # fmt: skip


def test_an_identifier_is_searched_by_keyword_unchanged():
    for mode in [SearchMode.AUTO, SearchMode.FAST]:
        for text, name in NAMES.items():
            plan = plan_for(text, mode=mode, reranks=True)
            assert (plan.mode, plan.identifies) == (SearchMode.KEYWORD, True)
            assert (plan.text, plan.words) == (name, name)
            assert (plan.family, plan.time_range, plan.half_life_days) == (None, None, None)
            assert plan.rerank is False
            assert names(plan) == ["identifier", "workspace"]


NO_IDENTIFIERS = ["24/7", "401k", "Q3", "2024", "k8s", "Q3-2025", "2025-03-04", "kettle", "INC 7", "?"]


def test_a_number_or_a_word_with_a_number_is_not_an_identifier():
    for text in NO_IDENTIFIERS:
        plan = plan_for(text)
        assert (plan.mode, plan.match_mode) == (SearchMode.HYBRID, Mode.HYBRID)


def test_an_unknown_identifier_falls_back_to_the_org_except_in_fast_mode():
    assert plan_for("INC-4821").falls_back
    assert not plan_for("INC-4821", mode=SearchMode.FAST).falls_back


MODES = [
    (SearchMode.KNOWLEDGE, Mode.HYBRID), (SearchMode.GRAPH, Mode.GRAPH), (SearchMode.HYBRID, Mode.HYBRID),
    (SearchMode.KEYWORD, Mode.KEYWORD), (SearchMode.NEURAL, Mode.SEMANTIC), (SearchMode.FAST, Mode.KEYWORD),
]  # fmt: skip


def test_a_given_mode_is_used_without_inference():
    for mode, match_mode in MODES:
        plan = plan_for("latest k8s incidents last week", mode=mode)
        assert (plan.mode, plan.match_mode) == (mode, match_mode)
        assert (plan.family, plan.prefer) == (None, ())
        assert (plan.time_range, plan.half_life_days) == (None, None)
        assert names(plan)[0] == "mode_given"


def test_a_question_uses_the_graph_and_stays_hybrid():
    for text in ["who owns the billing service?", "how do I reset my password?", "Billing Service", "kettle"]:
        for has_filters in (False, True):
            plan = plan_for(text, has_filters=has_filters)
            assert (plan.mode, plan.match_mode, plan.graph) == (SearchMode.HYBRID, Mode.HYBRID, True)


def test_the_graph_is_used_only_by_its_own_explicit_mode():
    text = "who owns the billing service?"
    for mode in SearchMode:
        assert plan_for(text, mode=mode).graph is (mode in (SearchMode.AUTO, SearchMode.GRAPH))
    assert not plan_for(text, is_question=False).graph, "what others are to be like asks for nothing"
    assert not plan_for("INC-4821").graph, "nor does an identifier"


def test_fast_mode_neither_expands_nor_reranks_and_searches_once():
    plan = plan_for("please tell me about k8s", mode=SearchMode.FAST, reranks=True)
    assert plan.text == plan.words == "please tell me about k8s"
    assert (plan.rerank, plan.falls_back) == (False, False)


def test_auto_is_hybrid_with_kind_time_and_expansion():
    plan = plan_for("Can you show me k8s incidents last week?")
    assert (plan.mode, plan.match_mode) == (SearchMode.HYBRID, Mode.HYBRID)
    assert (plan.scope, plan.falls_back) == (SearchScope.WORKSPACE, True)
    assert (plan.family, plan.prefer) == (Family.INCIDENTS, KINDS[Family.INCIDENTS])
    assert plan.time_range
    assert plan.time_range.after == datetime(2026, 4, 6, tzinfo=UTC)
    assert plan.half_life_days is None
    assert (plan.text, plan.words) == ("k8s incidents?", "k8s incidents? kubernetes last week")
    assert names(plan) == ["hybrid", "workspace", "family", "time_range", "rephrased", "expanded"]
    assert "last week" in plan.rules[3].reason
    assert "kubernetes" in plan.rules[5].reason


def test_explicit_filters_disable_inference():
    plan = plan_for("k8s incidents last week", has_filters=True)
    assert (plan.family, plan.time_range, plan.half_life_days) == (None, None, None)
    assert plan.words == "k8s incidents last week kubernetes"
    assert names(plan) == ["hybrid", "workspace", "narrowed", "expanded"]


def test_filters_keep_the_search_in_the_workspace_or_in_the_given_scope():
    for text in ("kettle", "INC-4821", "who owns the billing service?", "our travel policy"):
        plan = plan_for(text, has_filters=True)
        assert (plan.scope, plan.falls_back) == (SearchScope.WORKSPACE, False)
        assert plan_for(text, has_filters=True, has_workspace=False).scope is SearchScope.ORG
    plan = plan_for("kettle", has_filters=True, scope=SearchScope.ORG)
    assert (plan.scope, plan.falls_back) == (SearchScope.ORG, False)


def test_time_words_are_kept_for_the_keyword_search_and_without_other_words():
    unchanged, only_time = "k8s incidents last week", "last week?"
    for plan, text, words in (
        (plan_for(unchanged, expands=False), unchanged, unchanged),
        (plan_for("billing incidents in 2024"), "billing incidents", "billing incidents in 2024"),
        (plan_for(only_time), only_time, only_time),
    ):
        assert (plan.text, plan.words) == (text, words)
        assert plan.time_range


REMAINDERS = [
    ("incidents last week?", "incidents?"),
    ("last week's incidents", "incidents"),
    ("since March, who deployed", "who deployed"),
    ("what broke in Q3 and why", "what broke and why"),
    ("last week", "last week"),
]


def test_removed_time_words_leave_no_gap():
    for text, rest in REMAINDERS:
        message = time_range(text, NOW)
        assert message
        assert remove_time(text, message) == rest


def test_older_documents_rank_lower_except_for_timeless_questions():
    aging = (
        "kettle", "billing incidents", "latest documentation", "what is currently broken",
        "what is the kettle", "how do I boil water",
    )  # fmt: skip
    lasting = (
        "history of billing", "deployment documentation", "source code of the parser", "what does SLA mean",
    )  # fmt: skip
    for questions, half_life_days, rule in ((aging, HALF_LIFE, "decay"), (lasting, None, "no_decay")):
        for text in questions:
            plan = plan_for(text)
            assert plan.half_life_days == half_life_days
            assert rule in names(plan)


def test_a_reranked_search_ignores_recency():
    assert plan_for("kettle", reranks=True).half_life_days is None
    assert plan_for("kettle", reranks=True).rerank is True
    assert plan_for("kettle", reranks=False).half_life_days == HALF_LIFE
    assert plan_for("kettle", reranks=None).rerank is None
    plan = plan_for("kettle", half_life_days=None)
    assert plan.half_life_days is None
    assert not {"decay", "no_decay"} & set(names(plan)), "without a half-life there is no rule about it"


def test_a_question_about_the_org_is_searched_in_all_of_it_and_others_in_the_workspace():
    plan = plan_for("who owns the billing service?")
    assert (plan.scope, plan.falls_back) == (SearchScope.ORG, False)
    assert names(plan)[1] == "org_level"
    assert "who owns" in plan.rules[1].reason
    # It only sounds like the org.
    plan = plan_for("row-level security policy")
    assert (plan.scope, plan.falls_back) == (SearchScope.WORKSPACE, True)
    plan = plan_for("kettle", has_workspace=False)
    assert (plan.scope, plan.falls_back, names(plan)[1]) == (SearchScope.ORG, False, "no_workspace")


def test_a_given_scope_is_used_without_a_fallback():
    for mode in SearchMode:
        for scope in [SearchScope.WORKSPACE, SearchScope.ORG]:
            plan = plan_for("who owns the billing service?", scope=scope, mode=mode)
            assert (plan.scope, plan.falls_back) == (scope, False)


ANY_TEXT = some.one_of(
    some.text(),
    some.lists(
        some.sampled_from(
            ["who owns", "policy", "last week", "since", "March", "k8s", "docs", "latest", "INC-4"]
        ),
        max_size=6,
    ).map(" ".join),
)


@given(
    some.builds(
        RouterInput,
        text=ANY_TEXT,
        mode=some.sampled_from(SearchMode),
        scope=some.sampled_from(SearchScope),
        expands=some.booleans(),
        has_filters=some.booleans(),
        has_workspace=some.booleans(),
        reranks=some.sampled_from([None, False, True]),
    ),
    some.sampled_from([None, 30.0]),
)
def test_every_question_has_one_route(asked: RouterInput, half_life_days: float | None):
    plan = route(asked, NOW, half_life_days)
    assert plan == route(asked, NOW, half_life_days)
    assert plan.mode is not SearchMode.AUTO
    assert plan.scope is not SearchScope.AUTO
    assert plan.rules
    assert all(rule.name and rule.reason for rule in plan.rules)
    assert len(set(names(plan))) == len(names(plan))
    assert not (plan.rerank and plan.half_life_days)
    assert not (plan.time_range and plan.half_life_days)
    assert not (asked.has_filters and plan.falls_back)
    assert not plan.falls_back or (asked.has_workspace and plan.scope is SearchScope.WORKSPACE)
    assert bool(plan.text.strip()) == bool(asked.text.strip())


SLOW = (
    "since ", "in the ", "3 ", "2024 ", "de 3 ", "Q1, ", "between march and ", "!", "hi, ", "please ", "a_b",
    " x",
    "fooBar ", "who owns ", "row level ", "2024-", "mid ", "thanks ", "a few ", "im, ", "seit, en, de, ",
    "en mars x ", "on 30 February, ",
)  # fmt: skip


def test_an_adversarial_text_is_routed_quickly():
    for part in SLOW:
        started = time.thread_time()
        plan_for(part * (MAX_LENGTH // len(part)))
        assert time.thread_time() - started < 3


def test_a_similarity_query_is_not_interpreted():
    text = "Who owns the roadmap? Incidents since last week are in the k8s tickets."
    plan = plan_for(text, 365, is_question=False)
    assert (plan.family, plan.time_range, plan.half_life_days) == (None, None, None)
    assert (plan.scope, plan.falls_back) == (SearchScope.WORKSPACE, True)
    assert "kubernetes" in plan.words
