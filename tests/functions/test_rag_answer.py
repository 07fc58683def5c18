"""rag-answer over HTTP: sufficient and insufficient context, by extraction and through a gateway."""

from datetime import datetime
from typing import Any

import pytest

from functions import rag_answer
from shared.config import Settings
from shared.generation.confidence import CALIBRATIONS
from shared.generation.refusal_texts import RAG_INSUFFICIENT
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import app_with, json_of
from tests.functions.search_workspace import Row
from tests.functions.test_rag_search import tell
from tests.sql.passages import deployed_with
from tests.stand_in_server import Reply, StandIn

CALIBRATION = CALIBRATIONS["all-MiniLM-L6-v2"]
CITATION_FIELDS = {
    "source_id", "source_type", "source_title", "source_uri", "snippet", "relevance_score", "meta",
    "page_number", "page_end", "section", "collection_name",
}  # fmt: skip
KETTLE = "The kettle switches off at 100 degrees. The kettle holds 1.7 litres of water. It weighs 900 grams."


def ask(settings: Settings, people: People, question: Row, **changes: Any) -> Row:
    """Of the function with these settings, in this process; everything behind it is real."""
    with app_with(rag_answer.app, settings, **changes) as client:
        return json_of(client.post("/api/rag/answer", json=question, headers=people.ann.headers()))


def test_sufficient_context_is_answered_with_citations(people: People, services: Services):
    origin = {"source_type": "doc", "uri": "https://acme.example/k"}
    source = tell(services, people.ann, "Kettle manual", KETTLE, **origin)
    body = json_of(people.ann.answer("At how many degrees does the kettle switch off?"))
    assert set(body) == {
        "status", "query_text", "answer", "citations", "context_used", "confidence_detail",
        "processing_time_ms",
    }  # fmt: skip
    assert body["status"] == "success"
    assert body["answer"]["confidence"] in ("high", "medium")
    assert body["answer"]["model"] == "extractive"
    assert "The kettle switches off at 100 degrees." in body["answer"]["text"]
    assert datetime.fromisoformat(body["answer"]["generated_at"]).tzinfo is not None
    assert set(body["citations"][0]) == CITATION_FIELDS
    assert body["citations"][0]["source_id"] == source
    used = body["context_used"]
    assert (used["chunks_retrieved"], used["unique_sources"]) == (1, 1)
    assert used["thresholds"] == {"high": CALIBRATION.ceiling.high, "medium": CALIBRATION.ceiling.medium}


def test_insufficient_context_is_reported_and_not_answered(people: People, services: Services):
    tell(services, people.ann, "Kettle manual", KETTLE)
    body = people.ann.answer("Who won the football world cup?").json()
    assert body["status"] == "insufficient_context"
    assert body["answer"]["text"] == RAG_INSUFFICIENT
    assert body["answer"]["confidence"] == "low"
    assert body["answer"]["model"] is None
    assert [citation["source_title"] for citation in body["citations"]] == ["Kettle manual"]
    assert body["context_used"]["avg_relevance"] < CALIBRATION.ceiling.medium


def test_an_empty_result_is_insufficient_with_relevance_zero(people: People):
    body = people.ann.answer("Is anybody there?").json()
    assert body["status"] == "insufficient_context"
    assert body["citations"] == []
    used = body["context_used"]
    assert (used["chunks_retrieved"], used["unique_sources"], used["avg_relevance"]) == (0, 0, 0.0)


def test_the_database_s_calibration_replaces_the_built_in_one(
    people: People, services: Services, settings: Settings, world: World
):
    strict = {
        "slope": 8, "intercept": -100, "high": 0.9, "medium": 0.5, "ceiling_high": 0.4, "ceiling_medium": 0.2,
    }  # fmt: skip
    tell(services, people.ann, "Kettle", KETTLE)
    with deployed_with(world, calibrations={"all-MiniLM-L6-v2": strict}):
        body = ask(settings, people, {"query_text": "When does the kettle switch off?"})
    assert body["status"] == "insufficient_context"
    assert body["confidence_detail"]["thresholds"] == {"high": 0.9, "medium": 0.5}
    assert body["context_used"]["thresholds"] == {"high": 0.4, "medium": 0.2}


def test_the_contract_s_settings_alone_decide_the_level(
    people: People, services: Services, settings: Settings, subtests: pytest.Subtests
):
    """By the mean similarity of the chunks that the request retrieved, whatever else was found."""
    tell(services, people.ann, "Kettle manual", KETTLE)
    for number in range(10):
        tell(services, people.ann, f"Garden {number}", f"Roses of bed {number} bloom in June.")
    question = {"query_text": "Does the kettle K-900 switch off at 100 degrees?", "top_k": 1}
    plain = ask(settings, people, question)
    # The response rounds it.
    mean = plain["context_used"]["avg_relevance"] - 0.00001
    assert 0.3 < mean < 0.9
    cases = (
        ({"rag_confidence_high_threshold": mean}, "high", {"high": mean, "medium": min(0.6, mean)}),
        ({"rag_confidence_high_threshold": mean + 0.001, "rag_confidence_medium_threshold": mean},
            "medium", {"high": mean + 0.001, "medium": mean}),
        ({"rag_confidence_medium_threshold": 0.95}, "low", {"high": 0.95, "medium": 0.95}),
    )  # fmt: skip
    for given, level, thresholds in cases:
        with subtests.test(given=given):
            body = ask(settings, people, question, **given)
            assert body["answer"]["confidence"] == body["confidence_detail"]["level"] == level
            assert body["context_used"]["thresholds"] == pytest.approx(thresholds)
            assert "None of the passages judged mentions K-900." in body["confidence_detail"]["because"]


def test_relevance_is_of_the_chunks_that_the_request_retrieved(people: People, services: Services):
    tell(services, people.ann, "Kettle manual", KETTLE)
    for number in range(5):
        tell(services, people.ann, f"Note {number}", f"The garden has {number} trees.")
    question = "At how many degrees does the kettle switch off?"
    one, many = (people.ann.answer(question, top_k=top_k).json() for top_k in (1, 8))
    assert one["context_used"]["chunks_retrieved"] == 1
    assert one["context_used"]["avg_relevance"] > 2 * many["context_used"]["avg_relevance"]
    assert one["confidence_detail"]["score"] == many["confidence_detail"]["score"]


def completion(text: str | None) -> Reply:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return Reply({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


def ask_through(gateway: StandIn, settings: Settings, people: People, question: str) -> Row:
    body = {"query_text": question}
    return ask(settings, people, body, rag_llm_api_key="sk-secret", rag_llm_url=gateway.url)


def test_a_gateway_key_selects_the_model_and_its_text_is_the_answer(
    people: People, services: Services, settings: Settings, gateway: StandIn
):
    tell(services, people.ann, "Kettle manual", KETTLE)
    gateway.replies(completion("At 100 degrees, says the Kettle manual."))
    answer = ask_through(gateway, settings, people, "When does the kettle switch off?")
    assert answer["answer"]["text"] == "At 100 degrees, says the Kettle manual."
    assert answer["answer"]["model"] == "google/gemini-3.5-flash-lite"
    (request,) = gateway.requests
    assert request.json["model"] == "google/gemini-3.5-flash-lite"
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert "The kettle switches off at 100 degrees." in request.json["messages"][-1]["content"]


def test_a_model_s_abstention_is_insufficient_context(
    people: People, services: Services, settings: Settings, gateway: StandIn, subtests: pytest.Subtests
):
    tell(services, people.ann, "Kettle manual", KETTLE)
    replies = "NO_ANSWER", " NO_ANSWER.\n", "`NO_ANSWER`"
    gateway.replies(*map(completion, replies), completion("NO_ANSWER is the name of a flag of the kettle."))
    for reply in replies:
        with subtests.test(reply=reply):
            body = ask_through(gateway, settings, people, "When does the kettle switch off?")
            assert (body["status"], body["answer"]["text"]) == ("insufficient_context", RAG_INSUFFICIENT)
            assert (body["answer"]["confidence"], body["answer"]["model"]) == ("low", None)
            assert body["confidence_detail"]["because"][-1] == "The model found no answer in the passages."
    body = ask_through(gateway, settings, people, "When does the kettle switch off?")
    assert body["answer"]["text"].startswith("NO_ANSWER is")
