"""Where anybody's question goes, and the rules that say so; asked on Wednesday, 15 April 2026."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shared.retrieval.query import MAX_LENGTH
from shared.retrieval.query.dates.extract import time_range, without
from shared.retrieval.query.document_kinds import KINDS, Family
from shared.retrieval.query.expansion import Expanded
from shared.retrieval.query.router import Route, RouterInput, SearchMode, SearchScope, low_recall, route
from shared.types import Mode
from tests.shared.examples import match

NOW = datetime(2026, 4, 15, 14, 30, tzinfo=UTC)
HALF_LIFE = 90.0
ASKED = RouterInput(
    "kettle", SearchMode.AUTO, SearchScope.AUTO, expands=True, narrowed=False, has_workspace=True
)


def routed(text: str, half_life_days: float | None = HALF_LIFE, **fields: object) -> Route:
    return route(replace(ASKED, text=text, **fields), NOW, half_life_days)  # type: ignore[arg-type]


def names(found: Route) -> list[str]:
    return [rule.name for rule in found.rules]


NAMES = {
    "INC-4821": "INC-4821",
    "shared/match.py": "shared/match.py",
    "ann@example.com": "ann@example.com",
    " v1.2.3 ": "v1.2.3",
    "1.2.3": "1.2.3",
    "retry_count": "retry_count",
    "INC-7?": "INC-7",
    "INC-7.": "INC-7",
    "“INC-7”": "INC-7",
    "“INC-7”?": "INC-7",
    '"INC-7?"': "INC-7",
    "'retry_count'": "retry_count",
}


def test_an_identifier_is_searched_by_keyword_unchanged(subtests: pytest.Subtests):
    for way in [SearchMode.AUTO, SearchMode.FAST]:
        for text, name in NAMES.items():
            with subtests.test(way=way, text=text):
                found = routed(text, way=way, reranks=True)
                assert (found.way, found.mode) == (SearchMode.KEYWORD, Mode.KEYWORD)
                assert (found.text, found.words) == (name, name)
                assert (found.family, found.time_range, found.half_life_days) == (None, None, None)
                assert found.rerank is False
                assert found.expanded is None
                assert names(found) == ["identifier", "workspace"]


NO_IDENTIFIERS = ["24/7", "401k", "Q3", "2024", "k8s", "Q3-2025", "2025-03-04", "kettle", "INC 7", "?"]


def test_a_number_or_a_word_with_a_number_is_not_an_identifier(subtests: pytest.Subtests):
    for text in NO_IDENTIFIERS:
        with subtests.test(text=text):
            found = routed(text)
            assert (found.way, found.mode) == (SearchMode.HYBRID, Mode.HYBRID)


def test_an_unknown_identifier_falls_back_to_the_org_except_in_fast_mode():
    assert routed("INC-4821").falls_back
    assert not routed("INC-4821", way=SearchMode.FAST).falls_back


MODES = [
    (SearchMode.KNOWLEDGE, Mode.HYBRID),
    (SearchMode.GRAPH, Mode.GRAPH),
    (SearchMode.HYBRID, Mode.HYBRID),
    (SearchMode.KEYWORD, Mode.KEYWORD),
    (SearchMode.NEURAL, Mode.SEMANTIC),
    (SearchMode.FAST, Mode.KEYWORD),
]


def test_a_given_mode_is_used_without_inference(subtests: pytest.Subtests):
    for way, mode in MODES:
        with subtests.test(way=way):
            found = routed("latest k8s incidents last week", way=way)
            assert (found.way, found.mode) == (way, mode)
            assert (found.family, found.prefer) == (None, ())
            assert (found.time_range, found.half_life_days) == (None, None)
            assert names(found)[0] == "mode_given"


RELATION_QUESTIONS = [
    "who owns the billing service?",
    "Who owns Billing?",
    "How is Billing related to Ledger?",
    "what depends on billing?",
]


def test_a_question_about_a_relation_uses_the_graph_and_stays_hybrid(subtests: pytest.Subtests):
    for text in RELATION_QUESTIONS:
        with subtests.test(text=text):
            for narrowed in (False, True):
                found = routed(text, narrowed=narrowed)
                assert (found.way, found.mode, found.graph) == (SearchMode.HYBRID, Mode.HYBRID, True)
                assert "graph" in names(found)


def test_a_question_about_no_relation_does_not_use_the_graph(subtests: pytest.Subtests):
    for text in ["kettle", "INC-4821", "how do I reset my password?", "Billing Service"]:
        with subtests.test(text=text):
            found = routed(text)
            assert not found.graph
            assert "graph" not in names(found)


def test_the_graph_is_used_only_by_its_own_explicit_mode():
    text = "who owns the billing service?"
    for way in SearchMode:
        assert routed(text, way=way).graph is (way in (SearchMode.AUTO, SearchMode.GRAPH))
    assert not routed(text, questions=False).graph, "what others are to be like asks for nothing"


def test_fast_mode_neither_expands_nor_reranks_and_searches_once():
    found = routed("please tell me about k8s", way=SearchMode.FAST, reranks=True)
    assert found.text == found.words == "please tell me about k8s"
    assert (found.rerank, found.falls_back, found.expanded) == (False, False, None)


def test_auto_is_hybrid_with_kind_time_and_expansion():
    found = routed("Can you show me k8s incidents last week?")
    assert (found.way, found.mode, found.reach, found.falls_back) == (
        SearchMode.HYBRID,
        Mode.HYBRID,
        SearchScope.WORKSPACE,
        True,
    )
    assert (found.family, found.prefer) == (Family.INCIDENTS, KINDS[Family.INCIDENTS])
    assert found.time_range
    assert found.time_range.after == datetime(2026, 4, 6, tzinfo=UTC)
    assert found.half_life_days is None
    assert (found.text, found.words) == ("k8s incidents?", "k8s incidents? kubernetes last week")
    assert names(found) == ["hybrid", "workspace", "family", "time_range", "rephrased", "expanded"]
    assert "last week" in found.rules[3].because
    assert "kubernetes" in found.rules[5].because


def test_explicit_filters_disable_inference():
    found = routed("k8s incidents last week", narrowed=True)
    assert (found.family, found.time_range, found.half_life_days) == (None, None, None)
    assert found.words == "k8s incidents last week kubernetes"
    assert names(found) == ["hybrid", "workspace", "narrowed", "expanded"]


def test_filters_keep_the_search_in_the_workspace(subtests: pytest.Subtests):
    for text in ["kettle", "INC-4821", "who owns the billing service?", "our travel policy"]:
        with subtests.test(text=text):
            found = routed(text, narrowed=True)
            assert (found.reach, found.falls_back) == (SearchScope.WORKSPACE, False)
            assert routed(text, narrowed=True, has_workspace=False).reach is SearchScope.ORG


def test_a_given_scope_is_kept_beside_filters():
    found = routed("kettle", narrowed=True, reach=SearchScope.ORG)
    assert (found.reach, found.falls_back) == (SearchScope.ORG, False)


def test_without_autoprompt_the_words_stay_and_the_time_filter_applies():
    found = routed("k8s incidents last week", expands=False)
    assert found.text == found.words == "k8s incidents last week"
    assert found.time_range


def test_time_words_are_still_searched_by_keyword():
    found = routed("billing incidents in 2024")
    assert (found.text, found.words) == ("billing incidents", "billing incidents in 2024")


def test_a_question_of_only_a_time_keeps_it():
    found = routed("last week?")
    assert found.time_range
    assert found.text == "last week?"


REMAINDERS = [
    ("incidents last week?", "incidents?"),
    ("last week's incidents", "incidents"),
    ("since March, who deployed", "who deployed"),
    ("what broke in Q3 and why", "what broke and why"),
    ("last week", "last week"),
]


def test_removed_time_words_leave_no_gap(subtests: pytest.Subtests):
    for text, rest in REMAINDERS:
        with subtests.test(text=text):
            said = time_range(text, NOW)
            assert said
            assert without(text, said) == rest


QUESTIONS_WITH_DECAY = [
    "kettle",
    "billing incidents",
    "latest documentation",
    "what is currently broken",
    "what is the kettle",
    "how do I boil water",
]


def test_older_documents_rank_lower_by_default(subtests: pytest.Subtests):
    for text in QUESTIONS_WITH_DECAY:
        with subtests.test(text=text):
            found = routed(text)
            assert found.half_life_days == HALF_LIFE
            assert "decay" in names(found)


QUESTIONS_WITHOUT_DECAY = [
    "history of billing",
    "deployment documentation",
    "where is it implemented",
    "what does SLA mean",
]


def test_recency_is_ignored_for_timeless_questions(subtests: pytest.Subtests):
    for text in QUESTIONS_WITHOUT_DECAY:
        with subtests.test(text=text):
            found = routed(text)
            assert found.half_life_days is None
            assert "no_decay" in names(found)


def test_a_reranked_search_ignores_recency():
    assert routed("kettle", reranks=True).half_life_days is None
    assert routed("kettle", reranks=True).rerank is True
    assert routed("kettle", reranks=False).half_life_days == HALF_LIFE
    assert routed("kettle", reranks=None).rerank is None


def test_without_a_half_life_recency_is_not_reported():
    found = routed("kettle", half_life_days=None)
    assert found.half_life_days is None
    assert not {"decay", "no_decay"} & set(names(found))


def test_a_question_about_the_org_is_searched_in_all_of_it():
    found = routed("who owns the billing service?")
    assert (found.reach, found.falls_back) == (SearchScope.ORG, False)
    assert names(found)[1] == "org_level"
    assert "who owns" in found.rules[1].because


def test_a_question_that_only_sounds_like_the_org_stays_in_the_workspace():
    found = routed("row-level security policy")
    assert (found.reach, found.falls_back) == (SearchScope.WORKSPACE, True)


def test_without_a_workspace_the_org_is_searched():
    found = routed("kettle", has_workspace=False)
    assert (found.reach, found.falls_back, names(found)[1]) == (SearchScope.ORG, False, "no_workspace")


def test_a_given_scope_is_used_without_a_fallback(subtests: pytest.Subtests):
    for way in SearchMode:
        for reach in [SearchScope.WORKSPACE, SearchScope.ORG]:
            with subtests.test(way=way, reach=reach):
                found = routed("who owns the billing service?", reach=reach, way=way)
                assert (found.reach, found.falls_back) == (reach, False)


def test_the_model_s_rewriting_is_used_and_reported():
    def rewritten(question: str) -> Expanded:
        return Expanded("owner of billing", f"{question} owner", ("owner",), "small/model")

    found = route(replace(ASKED, text="who runs billing"), NOW, None, rewritten)
    assert (found.text, found.words) == ("owner of billing", "who runs billing owner")
    assert names(found) == ["hybrid", "workspace", "rewritten", "expanded"]


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
        way=some.sampled_from(SearchMode),
        reach=some.sampled_from(SearchScope),
        expands=some.booleans(),
        narrowed=some.booleans(),
        has_workspace=some.booleans(),
        reranks=some.sampled_from([None, False, True]),
    ),
    some.sampled_from([None, 30.0]),
)
def test_every_question_has_one_route(asked: RouterInput, half_life_days: float | None):
    found = route(asked, NOW, half_life_days)
    assert found == route(asked, NOW, half_life_days)
    assert found.way is not SearchMode.AUTO
    assert found.reach is not SearchScope.AUTO
    assert found.rules
    assert all(rule.name and rule.because for rule in found.rules)
    assert len(set(names(found))) == len(names(found))
    assert not (found.rerank and found.half_life_days)
    assert not (found.time_range and found.half_life_days)
    assert not (asked.narrowed and found.falls_back)
    assert not found.falls_back or (asked.has_workspace and found.reach is SearchScope.WORKSPACE)
    assert bool(found.text.strip()) == bool(asked.text.strip())


SLOW = (
    "since ", "in the ", "3 ", "2024 ", "de 3 ", "Q1, ", "between march and ", "!", "hi, ", "please ", "a_b",
    " x",
    "fooBar ", "who owns ", "row level ", "2024-", "mid ", "thanks ", "a few ", "im, ", "seit, en, de, ",
    "en mars x ", "on 30 February, ",
)  # fmt: skip


def test_an_adversarial_text_is_routed_quickly(subtests: pytest.Subtests):
    for part in SLOW:
        with subtests.test(part=part):
            started = time.monotonic()
            routed(part * (MAX_LENGTH // len(part)))
            assert time.monotonic() - started < 3


def test_an_empty_result_is_insufficient():
    assert low_recall([], 10, 0.6) == "nothing was found"


def test_only_distant_matches_are_insufficient():
    assert low_recall([match(similarity=0.3), match(similarity=0.59)], 10, 0.6)
    assert low_recall([match(similarity=0.3), match(similarity=0.6)], 10, 0.6) is None


def test_only_visible_matches_count():
    assert low_recall([match(similarity=0.3), match(similarity=0.9)], 1, 0.6)


def test_keyword_matches_are_sufficient():
    assert low_recall([replace(match(), similarity=None)], 10, 0.6) is None
    assert low_recall([replace(match(), similarity=None), match(similarity=0.2)], 10, 0.6)


def test_a_similarity_query_is_not_interpreted():
    text = "Who owns the roadmap? Incidents since last week are in the k8s tickets."
    asked = RouterInput(
        text,
        SearchMode.AUTO,
        SearchScope.AUTO,
        expands=True,
        narrowed=False,
        has_workspace=True,
        questions=False,
    )
    found = route(asked, NOW, 365)
    assert (found.family, found.time_range, found.half_life_days) == (None, None, None)
    assert (found.reach, found.falls_back) == (SearchScope.WORKSPACE, True)
    assert "kubernetes" in found.words
