"""knowledge: its callers, their answers, and the routes without a credential."""

from functions import knowledge
from shared.config import Settings
from shared.generation.refusal_texts import INSUFFICIENT
from tests.actors import client
from tests.conftest import People
from tests.functions.app_server import app_with
from tests.functions.knowledge_client import (
    QUESTION,
    REFUNDS,
    SHIPPING,
    ask,
    at,
    ingest,
)


def test_an_answer_has_the_chunks_that_it_cites(people: People):
    ingest(people.ann, {"text": REFUNDS, "source": "faq.md"}, {"text": SHIPPING})
    answer = ask(people.ann, top_k=1, include_citations=True)
    assert set(answer) == {"answer", "chunks", "confidence_detail"}
    assert "30 days" in answer["answer"]
    assert [chunk["text"] for chunk in answer["chunks"]] == [REFUNDS]
    assert answer["chunks"][0]["citations"][0]["source"] == "faq.md"
    withheld = ask(people.ann, "Who won the cup in 1954?")
    assert withheld["answer"] == INSUFFICIENT
    assert withheld["chunks"][0]["citations"] is None


def test_a_key_works_in_either_header(people: People):
    scopes = ["documents:write", "retrievals:read", "chat:read"]
    key = people.ann.request("POST", "/api/keys", {"name": "x", "scopes": scopes}).json()["key"]
    url = people.ann.stack.url
    for headers in ({"X-Api-Key": key}, {"Authorization": f"Bearer {key}"}):
        body = {"documents": [{"text": REFUNDS, "document_id": "a"}]}
        assert client().post(url + at("s", "documents"), json=body, headers=headers).status_code == 201
        response = client().post(url + at("s", "retrieve"), json={"query": QUESTION}, headers=headers)
        assert response.json()["chunks"][0]["text"] == REFUNDS


def test_health_needs_no_credential_and_readiness_checks_the_database(people: People, settings: Settings):
    for path in ("/healthz", "/readyz"):
        response = client().get(people.ann.stack.url + path)
        assert (response.status_code, response.json()) == (200, {"status": "ok"})
    with app_with(knowledge.app, settings, supabase_url="http://127.0.0.1:9") as app:
        assert app.get("/healthz").status_code == 200
        gone = app.get("/readyz")
        assert (gone.status_code, gone.json()) == (503, {"status": "unavailable"})
