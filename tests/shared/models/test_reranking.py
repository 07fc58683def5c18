"""Reranking: what it makes of any reranker's scores, and which reranker the settings select."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from shared.errors import ConfigurationError, RerankFailed
from shared.models.hosted_rerankers import APIS, HostedReranker
from shared.models.reranking import Reranker, rerank, reranker_details, reranker_for
from shared.types import SearchResult
from tests.shared.examples import closed_after_test, match, settings

HOSTED = sorted(APIS)


class Table:
    """A reranker that knows the answer: the relevance of each passage by its text."""

    model = "table"

    def __init__(self, **relevance: float) -> None:
        self._relevance = relevance
        self.asked: list[tuple[str, list[str]]] = []

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        self.asked.append((query, list(passages)))
        return [self._relevance[passage.splitlines()[-1]] for passage in passages]


class Broken:
    model = "broken"

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        raise RerankFailed(log_reason="HTTP 503")


MATCHES = tuple(match(text, document=text, similarity=0.9 - place / 10) for place, text in enumerate("abcd"))


def test_matches_are_ordered_by_relevance_which_is_their_score():
    cases = {
        "in order": ((0.2, 0.9, 0.1, 0.5), "bdac", [0.9, 0.5, 0.2, 0.1]),
        "equal ones keep their order": ((0.5, 0.5, 0.7, 0.5), "cabd", [0.7, 0.5, 0.5, 0.5]),
        "clamped to 0 and 1 after ordering": ((-3.0, -1.0, 2.0, 7.0), "dcba", [1.0, 1.0, 0.0, 0.0]),
    }
    for case, (relevance, order, scores) in cases.items():
        table = Table(**dict(zip("abcd", relevance, strict=True)))
        reranking = rerank(table, "a question", SearchResult(MATCHES, None, 0))
        assert [entry.text for entry in reranking.matches] == [*order], case
        assert [entry.score for entry in reranking.matches] == scores, case
        assert (reranking.reranked_by, reranking.rerank_failed) == ("table", False)
        unchanged = {entry.chunk_id: entry.similarity for entry in MATCHES}
        assert {entry.chunk_id: entry.similarity for entry in reranking.matches} == unchanged


def test_the_reranker_gets_the_question_and_each_passage_with_its_title():
    reranker = Table(text=0.5)
    rerank(reranker, "a question", SearchResult((match("text", title="The title"),), None, 0))
    assert reranker.asked == [("a question", ["The title\ntext"])]


def test_without_matches_no_reranker_is_called():
    reranker = Table()
    reranking = rerank(reranker, "a question", SearchResult((), None, 0))
    assert (reranking.matches, reranking.reranked_by, reranking.rerank_failed) == ((), "table", False)
    assert reranker.asked == []


def test_a_failed_reranker_keeps_the_order_and_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logging.getLogger("rag"), "propagate", True)
    reranking = rerank(Broken(), "a question", SearchResult(MATCHES, None, 0))
    assert reranking.matches == MATCHES
    assert (reranking.reranked_by, reranking.rerank_failed) == (None, True)
    assert "reranking failed" in caplog.text
    assert "a question" not in caplog.text


def chosen(**fields: Any) -> Reranker | None:
    return closed_after_test(reranker_for(settings(**fields)))


def refusal(**fields: Any) -> str:
    with pytest.raises(ConfigurationError) as raised:
        chosen(**fields)
    return str(raised.value)


def test_without_a_provider_there_is_no_reranker():
    assert chosen() is None
    assert reranker_details(settings()) == {"provider": None, "model": None, "source": None}


def test_a_provider_with_a_key_uses_its_default_or_the_configured_model():
    for provider in HOSTED:
        for own, model in (({}, APIS[provider].model), ({"rag_rerank_model": "another"}, "another")):
            reranker = chosen(rag_rerank_provider=provider, rag_rerank_api_key="key-7f3x", **own)
            assert isinstance(reranker, HostedReranker)
            assert reranker.model == model


def test_a_provider_without_a_key_is_always_refused():
    for provider in HOSTED:
        for enabled in (True, False):
            message = refusal(rag_rerank_provider=provider, rag_rerank_enabled=enabled)
            assert message.startswith("RAG_RERANK_API_KEY: not set")


def test_settings_without_effect_are_refused(subtests: pytest.Subtests):
    values = {"enabled": True, "api_key": "key-7f3x", "url": "https://a.example/7f3x", "model": "7f3x"}
    for field, value in values.items():
        name = f"rag_rerank_{field}"
        with subtests.test(name=name):
            message = refusal(**{name: value})
            assert message == (
                f"{name.upper()}: set, but RAG_RERANK_PROVIDER is not; set RAG_RERANK_PROVIDER to one of "
                f"cohere, jina, voyage, mixedbread, local, or remove {name.upper()}"
            )


def test_health_names_a_provider_s_host_without_its_key():
    message = reranker_details(
        settings(rag_rerank_provider="voyage", rag_rerank_url="https://proxy.example/team-7f3x/rerank")
    )
    assert message == {"provider": "voyage", "model": "rerank-2.5", "source": "proxy.example"}


def test_no_text_of_a_reranker_shows_its_key():
    reranker = chosen(rag_rerank_provider="cohere", rag_rerank_api_key="key-7f3x")
    assert "7f3x" not in f"{reranker!r} {reranker}"
