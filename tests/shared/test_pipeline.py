"""Searching by word, by both, by name, and in a better order: the real database, the real local model, and
real HTTP servers in place of paid embeddings and rerankers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from shared import pipeline
from shared.config import Settings
from shared.errors import InvalidRequest
from shared.generation.cited_documents import cite
from shared.generation.confidence import CALIBRATIONS, Calibration, judge
from shared.generation.confidence_features import ConfidenceFeatures
from shared.generation.extractive.answer import extract
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.models import query_embedding_cache
from shared.pipeline import judge_draft
from shared.services import Services
from shared.types import Confidence, Judgement, Match, Mode, Query, SearchResult
from tests.conftest import People
from tests.ingestion import ingest
from tests.shared.examples import closed_after_test
from tests.shared.examples import match as example
from tests.stand_in_server import Reply, StandIn

LOCAL = "all-MiniLM-L6-v2"
TEXTS = {
    "Kiln": "The kiln may become 1,280 degrees hot. After that it cools for a whole day.",
    "Outage": "The outage INC-4821 was caused by an expired certificate on the gateway.",
    "Minutes": "We spoke about incidents in general and about number 4821 in the price list.",
    "Holidays": "Employees take thirty days of leave a year, and the office is closed in August.",
}
Made = Callable[..., Services]


@pytest.fixture(autouse=True)
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search embeds its question."""
    monkeypatch.setattr(query_embedding_cache, "CACHE_SECONDS", 0)


@pytest.fixture
def made(settings: Settings) -> Made:
    def make(**changes: object) -> Services:
        return closed_after_test(Services(settings.model_copy(update=changes)))

    return make


Ask = Callable[..., SearchResult]


@pytest.fixture(scope="module")
def ask(services: Services, shared_people: People) -> Ask:
    """Search as a member of an org that has only the four documents."""
    return search_of(services, shared_people)


@pytest.fixture
def ask_new(services: Services, people: People) -> Ask:
    """The same in an org of the test's own, for a test that adds documents."""
    return search_of(services, people)


def search_of(services: Services, people: People) -> Ask:
    for title, text in TEXTS.items():
        put(services, people, title, text)

    def search(text: str, mode: Mode = Mode.HYBRID, by: Services = services, **more: Any) -> SearchResult:
        return pipeline.search(by, people.ann.principal, Query(text, mode=mode, **more))

    return search


def put(services: Services, people: People, title: str, text: str, **fields: Any) -> None:
    document = NewDocument(title, text, lang="en", **fields)
    ingest(services.database, services.embedder, people.ann.principal, document)


def titles(result: SearchResult) -> list[str]:
    return [match.title for match in result.matches]


@dataclass(frozen=True)
class HostedModels:
    """What a deployment is given to use a stand-in."""

    service: StandIn

    def embeddings(self) -> dict[str, object]:
        return {
            "openai_api_key": SecretStr("sk-none"),
            "rag_embedding_url": f"{self.service.url}/v1",
            # The stored chunks are the local model's.
            "rag_embedding_model": LOCAL,
        }

    def reranker(self, **more: object) -> dict[str, object]:
        return {
            "rag_rerank_provider": "cohere",
            "rag_rerank_api_key": SecretStr("key"),
            "rag_rerank_url": f"{self.service.url}/v2/rerank",
            **more,
        }


def relevance(*scores: float) -> Reply:
    listed = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return Reply(json={"results": listed})


def test_an_identifier_is_found_without_an_embedding_or_a_reranker(ask: Ask, made: Made, service: StandIn):
    models = HostedModels(service)
    remote = made(**models.embeddings(), **models.reranker(rag_rerank_enabled=True))
    for text in ("INC-4821", "“INC-4821”?"):
        assert titles(ask(text, by=remote))[0] == "Outage"
    assert service.requests == []


def test_an_identifier_without_matches_is_embedded_and_searched_by_both_legs(
    ask: Ask, made: Made, service: StandIn
):
    """Though something holds its parts."""
    vector = [1.0] + [0.0] * 383
    data = [{"object": "embedding", "index": 0, "embedding": vector}]
    service.replies(Reply(json={"object": "list", "data": data, "model": "m", "usage": {}}))
    result = ask("KILN-4821", by=made(**HostedModels(service).embeddings()))
    assert len(service.requests) == 1
    assert len(result.matches) == len(TEXTS)


@pytest.mark.parametrize(("enabled", "asked", "calls"), [(True, None, 1), (False, None, 0), (True, False, 0)])
def test_the_settings_are_the_query_s_defaults(
    ask: Ask, made: Made, service: StandIn, enabled: bool, asked: bool | None, calls: int
):
    service.replies(relevance(0.1, 0.2, 0.3, 0.4))
    by = made(**HostedModels(service).reranker(rag_rerank_enabled=enabled))
    assert not ask("kiln ovens", by=by, rerank=asked).rerank_failed
    assert len(service.requests) == calls


def test_a_reranker_gets_the_passage_and_the_caller_the_neighbours(
    ask_new: Ask, made: Made, services: Services, people: People, service: StandIn
):
    text = " ".join(f"A train whistles in hall {number}, which is long and dark." for number in range(80))
    put(services, people, "Whistles", text)
    service.replies(Reply(status=400, json={"message": "no"}))
    narrow = ask_new("whistle in hall 40", top_k=1).matches[0]
    by = made(**HostedModels(service).reranker())
    results = ask_new("whistle in hall 40", by=by, rerank=True, neighbours=1, top_k=1)
    read = service.requests[-1].json["documents"][0]
    assert read == f"{narrow.title}\n{narrow.text}"
    assert narrow.text in results.matches[0].text
    assert len(results.matches[0].text) > len(narrow.text)
    assert results.matches[0].text == text[slice(*results.matches[0].span)]
    wide = ask_new("whistle in hall 40", top_k=1, neighbours=1).matches[0]
    assert (wide.chunk_id, wide.text) == (narrow.chunk_id, results.matches[0].text)


def test_a_reranker_overrides_recency(ask: Ask, made: Made, service: StandIn):
    by = made(**HostedModels(service).reranker(rag_rerank_enabled=True))
    assert ask("kiln ovens", by=by, half_life_days=30.0).reranked_by is None
    with pytest.raises(InvalidRequest, match="ignores dates"):
        ask("kiln ovens", by=by, half_life_days=30.0, rerank=True)
    with pytest.raises(InvalidRequest):
        ask("kiln ovens", Mode.SEMANTIC, half_life_days=0.0)


def test_a_calibration_that_cannot_be_read_is_the_built_in_one(
    people: People, settings: Settings, caplog: pytest.LogCaptureFixture
):
    gone = {"supabase_url": "http://127.0.0.1:9", "supabase_jwt_issuer": settings.issuer}
    services = closed_after_test(Services(settings.model_copy(update=gone)))

    def calibration() -> Calibration | None:
        return services.calibration(people.ann.principal, services.embedder.model, is_reranked=False)

    assert calibration() == CALIBRATIONS["all-MiniLM-L6-v2"]
    assert "the calibration of confidence could not be read" in caplog.text
    caplog.clear()
    # No second call within the minute.
    assert calibration() == CALIBRATIONS["all-MiniLM-L6-v2"]
    assert caplog.text == ""


def test_a_judgement_says_if_the_answer_s_matches_lack_the_best_passage(
    services: Services, shared_people: People
):
    question = "When was the kiln K-7 fired?"
    best = example("The kiln K-7 was fired in 2019.", similarity=0.9)
    other = example("Clay is stored in the cellar.", "cellar", 0.3)
    # Of two chunks that overlap, a search with neighbours shows the common text once.
    trimmed = example("K-7 was fired in 2019.", start=9, chunk_id=best.chunk_id)
    whole = example("The kiln K-7 was fired in 2019. Then it cooled.", chunk_id="wider")

    def judged(*matches: Match) -> Judgement:
        caller = shared_people.ann.principal
        return pipeline.judge_matches(services, caller, [best, other], question, matches=matches)

    lacking, complete = judged(other), judged(other, whole)
    assert lacking.because == (*complete.because, "The best passage is not among those of this response.")
    assert judged(trimmed) == complete
    assert lacking.confidence is complete.confidence


def test_names_in_the_matches_of_the_answer_are_not_missing(services: Services, shared_people: People):
    judged = [example("The kiln was fired in 2019.")]

    def missing(*matches: Match) -> tuple[str, ...]:
        caller = shared_people.ann.principal
        question = "When was the kiln K-9 fired?"
        return pipeline.judge_matches(services, caller, judged, question, matches=matches).missing

    assert missing(*judged) == ("K-9",)
    assert missing(*judged, example("The kiln K-9 is new.", "new")) == ()


def test_an_extracted_answer_on_another_year_is_medium_at_most():
    passage = example("In 2023 the fair cost 900 euros.", "The fair")
    high = judge(ConfidenceFeatures(1.0, 1.0), [passage], CALIBRATIONS[LOCAL])
    assert high.confidence is Confidence.HIGH
    other = "The sentences quoted do not mention 2024."
    for year, level, because in ((2024, Confidence.MEDIUM, other), (2023, Confidence.HIGH, high.because[-1])):
        question = f"What did the fair cost in {year}?"
        draft = extract(question, [passage], cite([passage]), lambda texts, _: [[1.0] for _ in texts])
        judgement = judge_draft(high, draft, question, [passage])
        assert (judgement.confidence, judgement.because[-1]) == (level, because)
