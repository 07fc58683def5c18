"""rag-search over HTTP, on the real stack: the contract's words, and every way to say them wrongly."""

import re
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from functions import rag_search
from shared.api.dependencies import services_dependency
from shared.ingestion.synchronous_ingestion import NewDocument
from shared.services import Services
from tests.actors import Actor, hit_arguments
from tests.conftest import People
from tests.functions.app_server import json_of
from tests.ingestion import ingest

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
            asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": ",".join(own)}
            url = f"{people.ann.stack.url}{path}"
            preflight = httpx.options(url, headers=origin | asked)
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
