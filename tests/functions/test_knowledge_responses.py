"""Responses of the knowledge API: without denied keys, counted, audited."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from functions import knowledge, metrics
from shared.config import Settings
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import app_with
from tests.functions.knowledge_client import QUESTION, REFUNDS, SHIPPING, ask, at, delete, ingest, retrieve
from tests.sql.schema_changes import schema_change
from tests.stand_in_server import Reply, StandIn


def test_denied_metadata_is_in_no_response(people: People, settings: Settings):
    secret = {"internal_ingest_id": "HIDDEN-1", "pipeline_stage": "HIDDEN-2", "uri": "https://hidden.example"}
    metadata = {**secret, "topic": "refunds", "deep": {"pipeline_stage": "shown"}}
    document = {"text": REFUNDS, "metadata": metadata, "source": "HIDDEN-3"}
    ingest(people.ann, {**document, "title": "t"})
    assert "HIDDEN-1" in json.dumps(retrieve(people.ann))
    denied = {"knowledge": frozenset({*secret, "source"}), "memory": frozenset({"x"})}
    with app_with(knowledge.app, settings, rag_metadata_denylists=denied) as app:
        headers = people.ann.headers()
        # Nor does it become a title.
        upload = {"documents": [document]}
        assert app.post(at("support", "documents"), json=upload, headers=headers).status_code == 201
        answers = cited_answers(app, headers)
    for response in answers:
        assert response.status_code == 200
        assert "HIDDEN" not in response.text.upper()
        assert '"refunds"' in response.text
        assert "shown" in response.text


def cited_answers(app: TestClient, headers: dict[str, str]) -> list[Any]:
    """The list of documents, and the passages and the answer of a question with their citations."""
    bodies = (("retrieve", {"query": QUESTION}), ("query", {"question": QUESTION}))
    return [
        app.get(at("support", "documents"), headers=headers),
        *(
            app.post(at("support", route), json={**body, "include_citations": True}, headers=headers)
            for route, body in bodies
        ),
    ]


HIDDEN: list[tuple[str, dict[str, Any]]] = [
    ("title", {"metadata": {"title": "HIDDEN"}}), ("title", {"title": "HIDDEN"}),
    ("source", {"source": "HIDDEN"}), ("source", {"metadata": {"source": "HIDDEN"}}),
    ("url", {"metadata": {"url": "https://acme.example/HIDDEN"}}),
]  # fmt: skip


@pytest.mark.parametrize(("denied", "document"), HIDDEN)
def test_a_title_or_uri_from_a_denied_key_is_in_no_response(
    people: People, settings: Settings, denied: str, document: dict[str, Any]
):
    ingest(people.ann, {"text": REFUNDS, **document})
    changes: dict[str, Any] = {"rag_metadata_denylists": {"knowledge": frozenset({denied})}}
    with StandIn() as model:
        model.replies(Reply(json={"choices": [{"message": {"role": "assistant", "content": "30 days."}}]}))
        changes |= {"rag_llm_api_key": "sk-model", "rag_llm_url": model.url}
        with app_with(knowledge.app, settings, **changes) as app:
            answers = cited_answers(app, people.ann.headers())
        assert len(model.requests) == 1
        assert b"HIDDEN" not in model.requests[0].body
    assert [response.status_code for response in answers] == [200] * 3
    assert [response for response in answers if "HIDDEN" in response.text] == []


def test_a_denied_author_and_date_are_in_no_answer_and_count_as_missing(people: People, settings: Settings):
    ingest(people.ann, {"text": REFUNDS, "metadata": {"author": "Irma Halvorsen", "date": "2031-12-01"}})
    headers, denied = people.ann.headers(), {"knowledge": frozenset({"author", "date"})}
    question = {"question": f"Did Halvorsen write this on 2031-12-01: {QUESTION}"}
    path = at("support", "query")
    with app_with(knowledge.app, settings) as app:
        allowed = app.post(path, json=question, headers=headers).json()
    with app_with(knowledge.app, settings, rag_metadata_denylists=denied) as app:
        answer = app.post(path, json=question, headers=headers).json()
    assert "(2031-12-01)" in allowed["answer"]
    assert not [reason for reason in allowed["confidence_detail"]["because"] if "mentions" in reason]
    assert "(2031-12-01)" not in answer["answer"]
    reasons = answer["confidence_detail"]["because"]
    assert any("mentions 2031-12-01, Halvorsen." in reason for reason in reasons)


def test_the_same_text_without_a_name_is_the_same_document(people: People):
    """A request whose answer was lost can be made again."""
    first = ingest(people.ann, {"text": REFUNDS}, {"text": REFUNDS, "metadata": {"a": 1}})
    assert ingest(people.ann, {"text": REFUNDS}, {"text": REFUNDS, "metadata": {"a": 1}}) == first
    assert len(set(first)) == 2


def test_the_same_text_from_two_sources_is_two_documents(people: People):
    names = ingest(people.ann, *({"text": REFUNDS, "source": source} for source in ("a.md", "b.md")))
    assert len(set(names)) == 2
    cited = [chunk["citations"][0]["source"] for chunk in retrieve(people.ann, include_citations=True)]
    assert sorted(cited) == ["a.md", "b.md"]


def test_metrics_are_correct_across_instances(people: People, settings: Settings):
    def read() -> dict[str, float]:
        with app_with(metrics.app, settings, rag_metrics_token="t" * 16) as app:
            text = app.get("/metrics", headers={"Authorization": f"Bearer {'t' * 16}"}).text
        by_name = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith("gateway_knowledge"):
                    labels = {name: value for name, value in sample.labels.items() if name != "le"}
                    expected = {"provider": "rag", "store_type": "pgvector"}
                    assert labels == expected or set(labels) == {"provider", "kind"}
                    label = sample.labels.get("le", sample.labels.get("kind", ""))
                    by_name[f"{sample.name}/{label}"] = sample.value
        return by_name

    before = read()
    names = ingest(people.ann, *({"text": f"{REFUNDS} {n}"} for n in range(3)))
    best = retrieve(people.ann, top_k=2)[0]["score"]
    retrieve(people.ann, namespace="nowhere")
    question = "What is our refund policy from purchase?"
    usage = {"prompt_tokens": 70, "completion_tokens": 9, "total_tokens": 79}
    choices = [{"index": 0, "message": {"role": "assistant", "content": "30 days"}, "finish_reason": "stop"}]
    with StandIn() as gateway:
        gateway.replies(Reply({"id": "x", "choices": choices, "usage": usage, "object": "chat.completion",
                               "created": 1, "model": "m"}))  # fmt: skip
        changes: dict[str, Any] = {"rag_llm_api_key": SecretStr("k"), "rag_llm_url": gateway.url}
        with app_with(knowledge.app, settings, **changes) as app:
            body = {"question": question}
            answer = app.post(at("support", "query"), json=body, headers=people.ann.headers())
    assert answer.json()["answer"] == "30 days"
    delete(people.ann, names[0])
    delete(people.ann, names[0])
    after = read()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown["gateway_knowledge_documents_ingested_total/"] == 3
    assert grown["gateway_knowledge_documents_deleted_total/"] == 1
    assert grown["gateway_knowledge_chunks_retrieved_total/"] == 2
    assert grown["gateway_knowledge_retrieval_score_count/"] == 1
    assert grown["gateway_knowledge_retrieval_score_sum/"] == pytest.approx(best, abs=1e-5)
    for bound in range(1, 10):
        assert grown[f"gateway_knowledge_retrieval_score_bucket/{bound / 10}"] == (best <= bound / 10)
    assert grown["gateway_knowledge_query_tokens_total/prompt"] == 70
    assert grown["gateway_knowledge_query_tokens_total/completion"] == 9


def test_events_have_counts_and_no_texts(people: People):
    names = ingest(people.ann, {"text": REFUNDS, "source": "faq.md"}, {"text": SHIPPING})
    best = retrieve(people.alf, top_k=1)[0]["score"]
    ask(people.ann)
    delete(people.ann, names[0])
    retrieve(people.ann, namespace="nowhere")
    events = people.ada.request("GET", "/api/v1/events").json()["data"]
    rows = [(e["event"], e["user_id"], e["document_count"], e["chunk_count"]) for e in reversed(events)]
    assert rows == [
        ("knowledge.ingest", people.ann.id, 2, 0),
        ("knowledge.retrieve", people.alf.id, 1, 1),
        ("knowledge.query", people.ann.id, 2, 2),
        ("knowledge.delete", people.ann.id, 1, 0),
        ("knowledge.retrieve", people.ann.id, 0, 0),
    ]
    assert events[3]["top_score"] == pytest.approx(best, abs=1e-5)
    assert [e["collection_id"] is None for e in events] == [True, False, False, False, False]
    for text in ("refund", "Shipping", "return an item", "faq", *names):
        assert text not in json.dumps(events)


def test_a_lost_event_fails_no_request(
    people: People, world: World, caplog: pytest.LogCaptureFixture, settings: Settings
):
    plant, restore = "rag.audit_events rename to elsewhere", "rag.elsewhere rename to audit_events"
    with (
        schema_change(world, f"alter table {plant}", f"alter table {restore}"),
        app_with(knowledge.app, settings) as app,
    ):
        body = {"documents": [{"text": REFUNDS}]}
        answer = app.post(at("support", "documents"), json=body, headers=people.ann.headers())
        response = app.post(at("support", "retrieve"), json={"query": "x"}, headers=people.ann.headers())
    assert (answer.status_code, response.status_code) == (201, 200)
    assert [record.message for record in caplog.records if "audit event" in record.message] == [
        f"the audit event knowledge.{event} was not recorded (SQL 42P01)" for event in ("ingest", "retrieve")
    ]
