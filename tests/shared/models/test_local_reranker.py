"""The local reranker, for real: what it finds relevant, how it counts words, and that it ends in time."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.errors import RerankFailed
from shared.models.embeddings import local_model
from shared.models.local_reranker import FIRST_WORD, LocalReranker, _shared_words
from shared.models.reranking import rerank
from shared.types import SearchResult
from tests.shared.examples import match

QUESTION = "What does error code E-42 mean?"
PASSAGES = [
    "Football\nSpain won the world cup in South Africa.",
    "Errors\nCode E-41 says that the battery is low.",
    "Errors\nCode E-42 says that the probe is not connected.",
    "Warranty\nDevices are repaired for two years after the sale.",
]


@pytest.fixture(scope="module")
def reranker() -> LocalReranker:
    return LocalReranker(local_model(), timeout_seconds=60)


def test_the_answering_passage_is_first_and_the_unrelated_one_last(reranker: LocalReranker):
    results = [match(text.split("\n")[1], title=text.split("\n")[0], document=text) for text in PASSAGES]
    reranking = rerank(reranker, QUESTION, SearchResult(tuple(results), None, 0))
    assert [item.document_id for item in reranking.matches][:2] == [PASSAGES[2], PASSAGES[1]]
    assert (reranking.reranked_by, reranking.rerank_failed) == ("all-MiniLM-L6-v2-late-interaction", False)


def test_relevance_is_between_0_and_1_and_highest_for_the_question_itself(reranker: LocalReranker):
    scores = reranker.score(QUESTION, [*PASSAGES, "", "?!", "ß 🎉", "x " * 1000, QUESTION])
    assert all(0 <= score <= 1 for score in scores)
    assert max(scores) == scores[-1] > 0.8


def test_a_passage_s_relevance_does_not_depend_on_its_position(reranker: LocalReranker):
    scores = reranker.score(QUESTION, PASSAGES)
    backwards = reranker.score(QUESTION, PASSAGES[::-1])
    assert backwards[::-1] == pytest.approx(scores, abs=1e-5)


def test_any_question_is_accepted(subtests: pytest.Subtests, reranker: LocalReranker):
    for question in ("", "?", " \n", "ß", "🎉", "的", "the", "word " * 400):
        with subtests.test(question=question):
            scores = reranker.score(question, PASSAGES)
            assert len(scores) == 4
            assert all(0 <= score <= 1 for score in scores)


def test_an_empty_list_has_no_scores(reranker: LocalReranker):
    assert reranker.score(QUESTION, []) == []


def test_a_reranker_past_its_deadline_stops_and_fails():
    hurried = LocalReranker(local_model(), timeout_seconds=0.001)
    # Other processes on the machine do not change the processor time. All passages would take over ten
    # seconds of it.
    started = time.process_time()
    with pytest.raises(RerankFailed) as raised:
        hurried.score(QUESTION, ["word " * 250] * 200)
    assert raised.value.log_reason == "time-out"
    assert time.process_time() - started < 3


def test_results_are_the_same_in_several_threads(reranker: LocalReranker):
    expected = reranker.score(QUESTION, PASSAGES)
    with ThreadPoolExecutor(8) as threads:
        for scores in threads.map(lambda _: reranker.score(QUESTION, PASSAGES), range(16)):
            assert scores == pytest.approx(expected, abs=1e-5)


COMMON, RARE, RARER = FIRST_WORD + 1, FIRST_WORD + 9_000, FIRST_WORD + 20_000


def test_rare_words_count_more_than_common_ones():
    common, rare, both = _shared_words({COMMON, RARE}, [Counter([COMMON]), Counter([RARE]), Counter()])[:3]
    assert 0 < common < rare
    assert both == 0


def test_a_word_of_every_passage_counts_less_than_one_of_a_few():
    everywhere, once = RARE, RARE + 1
    passages = [Counter([everywhere, once]), Counter([everywhere, RARER]), Counter([everywhere, RARER])]
    first, second, _ = _shared_words({everywhere, once}, passages)
    assert second < first / 2


def test_repeated_words_have_diminishing_weight_and_length_is_penalised():
    once, often, long = _shared_words(
        {RARE}, [Counter([RARE]), Counter([RARE] * 9), Counter([RARE, *range(3000, 3100)])]
    )
    assert long < once < often < 1


def test_symbols_and_single_characters_are_not_words():
    assert _shared_words({101, 1012, FIRST_WORD}, [Counter([101, 1012, FIRST_WORD])]) == [0.0]
