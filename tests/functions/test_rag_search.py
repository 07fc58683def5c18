"""rag-search and rag-answer over HTTP: passages, answers by extraction and by a model, errors."""

import re
from datetime import datetime
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from functions import rag_answer, rag_search
from shared.api.dependencies import services_dependency
from shared.config import Settings
from shared.generation.confidence import CALIBRATIONS
from shared.generation.refusal_texts import RAG_INSUFFICIENT
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.services import Services
from tests.actors import Actor, World, hit_arguments
from tests.conftest import People
from tests.functions.app_server import app_with, json_of
from tests.functions.search_workspace import Row
from tests.ingestion import ingest
from tests.sql.passages import deployed_with
from tests.stand_in_server import Reply, StandIn

RESULT_FIELDS = {
    "chunk_id", "source_id", "score", "snippet", "source_type", "source_title", "source_uri", "meta", "rank",
    "page_number", "page_end", "section", "collection_name",
}  # fmt: skip
ROUTES = ("/api/rag/search", "/functions/v1/rag-search")


def tell(services: Services, actor: Actor, title: str, text: str, **fields: Any) -> str:
    """A document of this user's, through the real ingestion path."""
    assert actor.org is not None
    return ingest(
        services.database,
        services.embedder,
        actor.principal,
        NewDocument(title, text, **fields),
    ).document_id


def test_both_paths_return_ranked_chunks(subtests: pytest.Subtests, people: People, services: Services):
    source = tell(
        services, people.ann, "Kettle manual", "The kettle switches off at 100 degrees. " * 12,
        source_type="doc", uri="https://acme.example/kettle", lang="en", metadata={"product": "kettle"},
    )  # fmt: skip
    tell(services, people.ann, "Holiday rules", "Everybody has 25 days of holiday a year.", source_type="faq")
    query = {"query_text": "  When does the kettle switch off? ", "top_k": 5}
    for route in ROUTES:
        with subtests.test(route=route):
            body = people.ann.post(route, query).json()
            assert body["status"] == "success"
            assert body["query_text"] == "When does the kettle switch off?"
            assert body["total_found"] == len(body["results"]) >= 2
            assert isinstance(body["processing_time_ms"], int)
            assert [result["rank"] for result in body["results"]] == list(range(1, body["total_found"] + 1))
            scores = [result["score"] for result in body["results"]]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)
            first = body["results"][0]
            assert set(first) == RESULT_FIELDS
            assert first["source_id"] == source
            assert first["source_uri"] == "https://acme.example/kettle"
            assert len(first["snippet"]) == 200
            assert first["meta"] == {
                "product": "kettle", "org_id": people.acme.id, "date": None, "lang": "en",
            }  # fmt: skip


def test_a_result_has_its_own_org_although_the_metadata_name_another(people: People, services: Services):
    tell(services, people.ann, "Only", "The only sentence.", metadata={"org_id": people.bolt.id, "page": 1})
    (row,) = people.ann.search("sentence").json()["results"]
    assert row["meta"] == {"org_id": people.acme.id, "page": 1, "date": None, "lang": None}


def test_top_k_defaults_to_eight_and_limits_the_results(people: People, services: Services):
    for number in range(10):
        tell(services, people.ann, f"Note {number}", f"Note number {number} is about tea.")
    limits: list[tuple[dict[str, Any], int]] = [
        ({}, 8), ({"top_k": 50}, 10), ({"top_k": 1}, 1), ({"top_k": None, "filters": None}, 8),
    ]  # fmt: skip
    for more, count in limits:
        assert people.ann.search("tea", **more).json()["total_found"] == count, more


def test_a_search_by_meaning_accepts_a_text_that_postgres_cannot_store(people: People, services: Services):
    tell(services, people.ann, "Only", "The only sentence.")
    assert people.ann.search("The only\0 sentence").json()["total_found"] == 1


def test_filters_by_kind_language_and_inclusive_dates(people: People, services: Services):
    from datetime import datetime

    day = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
    tell(services, people.ann, "Mail", "About the tea.", source_type="email", lang="en", occurred_at=day)
    tell(services, people.ann, "Page", "À propos du thé.", source_type="web", lang="fr")

    def titles(**filters: str) -> list[str]:
        body = json_of(people.ann.search("tea", filters=filters))
        return [result["source_title"] for result in body["results"]]

    assert titles(source_type="email") == ["Mail"]
    assert titles(lang="fr") == ["Page"]
    assert titles(date_from="2026-03-01T12:00:00Z", date_to="2026-03-01T12:00:00+00:00") == ["Mail"]
    assert titles(date_to="2026-03-01T13:00:00") == ["Mail"]
    assert titles(date_to="2026-03-01") == ["Mail"], "a bare date means the whole day"
    assert titles(date_from="2026-03-02") == []
    assert titles(org_id=people.acme.id.upper(), source_type="web") == ["Page"]
    assert titles(unknown_filter="ignored", source_type="email") == ["Mail"]


def test_an_unexpected_exception_is_a_bare_500_with_cors_headers(caplog: pytest.LogCaptureFixture):
    def broken() -> None:
        raise RuntimeError("secret detail")

    rag_search.app.dependency_overrides[services_dependency] = broken
    try:
        response = TestClient(rag_search.app).post(
            "/api/rag/search", json={"query_text": "x"}, headers={"Origin": "https://app.example"}
        )
    finally:
        rag_search.app.dependency_overrides.clear()
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert response.headers["access-control-allow-origin"] == "*"
    (line,) = [vars(record) for record in caplog.records if record.name == "rag"]
    assert line["request_id"] == response.headers["x-request-id"]
    assert line["because"].startswith("RuntimeError at test_rag_search.py:")
    assert "secret" not in response.text + str(line)


def test_the_request_id_is_echoed_or_created(people: People):
    url = f"{people.ann.stack.url}/api/rag/search"
    echoed = httpx.post(url, json={}, headers={"X-Request-Id": "abc-123"})
    response = httpx.post(url, json={})
    forged = httpx.post(url, json={}, headers={"X-Request-Id": "two words <script>"})
    assert echoed.headers["x-request-id"] == "abc-123"
    for answer in (response, forged):
        assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["x-request-id"])
        assert answer.headers["x-trace-id"] == answer.headers["x-request-id"]


def test_the_limit_is_sixty_requests_a_minute_over_both_paths(people: People):
    assert people.ann.rpc("rag_check_rate_limit", hit_arguments(amount=57)).status_code == 200
    answers = [people.ann.search("x") if number % 2 else people.ann.answer("x") for number in range(5)]
    assert [response.status_code for response in answers] == [200] * 3 + [429] * 2
    remaining = [int(response.headers["x-ratelimit-remaining"]) for response in answers]
    assert remaining == [2, 1, 0, 0, 0]
    assert {response.headers["x-ratelimit-limit"] for response in answers} == {"60"}
    refused = answers[-1]
    assert refused.json()["error"]["code"] == "rate_limited"
    assert 1 <= int(refused.headers["retry-after"]) <= 61
    assert int(refused.headers["x-ratelimit-reset"]) > 1_700_000_000
    assert people.alf.search("x").status_code == 200, "one user's spending is nobody else's"


def test_browsers_of_any_origin_call_every_contract(people: People, subtests: pytest.Subtests):
    """A preflight needs no token, and errors have the headers too."""
    origin = {"Origin": "https://app.example"}
    for path, header in (
        *((route, "x-client-info") for route in ROUTES), ("/v1/chat/completions", "x-stainless-lang"),
        *((f"/v1/{name}", "idempotency-key") for name in ("collections", "documents", "documents/text")),
    ):  # fmt: skip
        with subtests.test(path=path):
            own = {"authorization", "apikey", "content-type", header}
            requested = {
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": ",".join(own),
            }
            url = f"{people.ann.stack.url}{path}"
            preflight = httpx.options(url, headers=origin | requested)
            assert preflight.status_code == 200, preflight.text
            allowed = preflight.headers["access-control-allow-headers"].lower().split(",")
            assert own <= {name.strip() for name in allowed}
            refused = httpx.post(url, json={}, headers=origin)
            invalid = httpx.post(url, json={}, headers=people.ann.headers() | origin)
            assert [refused.status_code, invalid.status_code] == [401, 400]
            for response in (preflight, refused, invalid):
                assert response.headers["access-control-allow-origin"] == "*"
            exposed = invalid.headers["access-control-expose-headers"].lower()
            assert {"x-ratelimit-remaining", "x-request-id", "idempotency-replayed"} <= set(
                exposed.split(", ")
            )
            # An invalid request is counted.
            assert int(invalid.headers["x-ratelimit-remaining"]) < int(invalid.headers["x-ratelimit-limit"])


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


def model_of(gateway: StandIn) -> dict[str, str]:
    return {"rag_llm_api_key": "sk-secret", "rag_llm_url": gateway.url}


def test_a_model_s_abstention_is_insufficient_context(
    people: People, services: Services, settings: Settings, gateway: StandIn
):
    tell(services, people.ann, "Kettle manual", KETTLE)
    gateway.replies(*map(completion, ("`NO_ANSWER`.\n", "NO_ANSWER is the name of a flag of the kettle.")))
    body, text = (
        ask(settings, people, {"query_text": "When does the kettle switch off?"}, **model_of(gateway))
        for _ in range(2)
    )
    assert (body["status"], body["answer"]["text"]) == ("insufficient_context", RAG_INSUFFICIENT)
    assert (body["answer"]["confidence"], body["answer"]["model"]) == ("low", None)
    assert body["confidence_detail"]["because"][-1] == "The model found no answer in the passages."
    assert text["answer"]["text"].startswith("NO_ANSWER is")
    assert text["answer"]["model"] == "google/gemini-3.5-flash-lite"
