"""knowledge over HTTP: namespaces of texts, retrieval and answers, denied keys, counts and events."""

import json
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from jose import jwt
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from functions import knowledge, metrics
from shared.config import Settings
from shared.generation.refusal_texts import INSUFFICIENT
from shared.text.normalize import clean
from tests.actors import World, client
from tests.conftest import People
from tests.functions.app_server import app_with, json_of, proxy_to
from tests.functions.knowledge_client import (
    PREFIX,
    QUESTION,
    REFUNDS,
    SHIPPING,
    Row,
    ask,
    at,
    delete,
    ids,
    ingest,
    list_page,
    retrieve,
)
from tests.sql.schema_changes import schema_change
from tests.stand_in_server import Reply, StandIn

NAMES = ["line\nend\n", "a/b/documents", "größe ✓ 日本 50%+?#&", "é" * 255]


def test_texts_are_searchable_when_the_request_returns(people: People):
    first, second = ingest(
        people.ann,
        {"text": REFUNDS, "metadata": {"topic": "refunds"}, "source": "faq.md"},
        {"text": SHIPPING, "metadata": {"topic": "shipping"}},
    )
    assert first != second
    best, *_ = retrieve(people.ann, top_k=3)
    assert set(best) == {"chunk_id", "document_id", "text", "score", "metadata", "citations"}
    assert (best["document_id"], best["text"]) == (first, REFUNDS)
    assert best["metadata"] == {"topic": "refunds", "source": "faq.md"}
    assert best["citations"] is None
    assert 0 < best["score"] <= 1
    # The whole org has it.
    assert [chunk["document_id"] for chunk in retrieve(people.alf)] == [first, second]


def test_citations_are_exact(people: People):
    text = "\r\n\r\n".join(
        f"Paragraph {n} tells of item {n}. " + "It goes on for a while. " * 20 for n in range(9)
    )
    (name,) = ingest(people.ann, {"text": text, "metadata": {"uri": "https://x.example/a"}, "source": "a.md"})
    remaining = clean(text)
    chunks = retrieve(people.ann, "item 7", include_citations=True)
    assert len(chunks) > 3
    for chunk in chunks:
        (cited,) = chunk["citations"]
        assert set(cited) == {"source", "uri", "page", "section", "span", "snippet", "metadata"}
        start, end = cited["span"]
        assert remaining[start:end] == chunk["text"]
        assert cited["snippet"] == chunk["text"][:200] != ""
        assert (cited["source"], cited["uri"], cited["page"]) == ("a.md", "https://x.example/a", None)
        assert cited["metadata"] == chunk["metadata"] == {"uri": "https://x.example/a", "source": "a.md"}
        assert chunk["document_id"] == name


def test_a_citation_names_the_page_and_the_source_of_a_text(people: People):
    def cited(**fields: Any) -> tuple[Row, Row]:
        ingest(people.ann, {"document_id": "a", "text": REFUNDS, **fields})
        (chunk,) = retrieve(people.ann, include_citations=True)
        return chunk["citations"][0], chunk["metadata"]

    for page, expected in ((7, "7"), ("iv", "iv"), (True, None), ({}, None)):
        assert cited(metadata={"page": page})[0]["page"] == expected, page
    citation, metadata = cited(title="Refunds", source=None, metadata=None)
    assert (citation["source"], metadata) == ("Refunds", {})
    citation, metadata = cited(source="a.md", metadata={"source": "crm"})
    assert (citation["source"], metadata) == ("a.md", {"source": "crm"})
    # Sources that no column takes.
    for source in ("s" * 1000, "a\u200bb"):
        citation, metadata = cited(source=source)
        assert citation["source"] == metadata["source"] == source


def test_a_namespace_name_makes_the_round_trip(subtests: pytest.Subtests, world: World):
    for namespace in NAMES:
        with subtests.test(namespace=namespace):
            ann = world.user(world.org())
            (name,) = ingest(ann, {"text": REFUNDS}, namespace=namespace)
            assert ann.request("GET", f"{PREFIX}/namespaces").json() == {"namespaces": [namespace]}
            assert ids(ann, namespace) == [name]
            assert [chunk["document_id"] for chunk in retrieve(ann, namespace=namespace)] == [name]
            assert ask(ann, namespace=namespace)["chunks"]
            assert delete(ann, name, namespace).status_code == 204
            assert ids(ann, namespace) == []


def assert_named(response: Any, *place: str | int) -> None:
    assert json_of(response, 422)["detail"][0]["loc"] == [*place]


def test_an_invalid_namespace_name_is_422(subtests: pytest.Subtests, people: People):
    for namespace in ["x" * 256, "\0", "..."]:
        with subtests.test(namespace=namespace):
            for method, rest, body in (
                ("POST", "documents", {"documents": [{"text": REFUNDS}]}), ("GET", "documents", None),
                ("POST", "retrieve", {"query": "x"}), ("DELETE", "documents/x", None),
            ):  # fmt: skip
                assert_named(people.ann.request(method, at(namespace, rest), body), "path", "namespace")


DOCUMENT_IDS = ["/a//b/", "documents", "a b ✓ %2F?#\nb", "x" * 500]


def test_a_document_s_own_id_makes_the_round_trip_and_replaces(subtests: pytest.Subtests, world: World):
    for name in DOCUMENT_IDS:
        with subtests.test(name=name):
            ann = world.user(world.org())
            assert ingest(ann, {"text": REFUNDS, "document_id": name, "metadata": {"v": 1}}) == [name]
            assert ingest(ann, {"text": SHIPPING, "document_id": name}, {"text": "Other."})[0] == name
            assert list_page(ann)["total"] == 2
            assert [row["metadata"] for row in list_page(ann)["documents"]] == [{}, {}]
            assert REFUNDS not in {chunk["text"] for chunk in retrieve(ann)}
            gone = delete(ann, name)
            assert (gone.status_code, gone.content) == (204, b"")
            second = delete(ann, name)
            assert (second.status_code, second.json()) == (404, {"detail": "Document not found"})
            assert SHIPPING not in {chunk["text"] for chunk in retrieve(ann)}
            assert list_page(ann)["total"] == 1


def test_documents_of_another_contract_are_replaced_and_deleted_by_id(people: People):
    ingest(people.ann, {"text": SHIPPING, "document_id": "shipping"})
    stored = people.ann.store({
        "document": {"org_id": people.acme.id, "collection": "support", "title": "t", "content": "Old text.",
                     "embedding_model": "all-MiniLM-L6-v2"},
        "chunks": [],
    })  # fmt: skip
    name = stored.json()[0]["document_id"]
    assert ids(people.alf) == ["shipping", name]
    assert ingest(people.alf, {"text": REFUNDS, "document_id": name}) == [name]
    assert ids(people.ann) == ["shipping", name]
    assert retrieve(people.ann)[0]["document_id"] == name
    # An id without a user is a name like any other.
    new = str(uuid4())
    assert ingest(people.ann, {"text": "New.", "document_id": new}) == [new]
    assert delete(people.ann, name).status_code == 204
    assert sorted(ids(people.ann)) == sorted(["shipping", new])


def test_a_list_has_pages_and_the_total(people: People):
    names = ingest(people.ann, *({"text": f"Text {n}.", "source": f"{n}.md"} for n in range(5)))
    page = list_page(people.alf, query="?limit=2&offset=3")
    assert page["total"] == 5
    every = [list_page(people.ann, query=f"?limit=2&offset={offset}")["documents"] for offset in (0, 2, 4)]
    assert [len(rows) for rows in every] == [2, 2, 1]
    assert {row["document_id"] for rows in every for row in rows} == set(names)
    row = next(row for rows in every for row in rows if row["document_id"] == names[3])
    assert set(row) == {"document_id", "metadata", "source", "title", "created_at", "updated_at"}
    assert (row["source"], row["metadata"], row["title"]) == ("3.md", {"source": "3.md"}, "3.md")
    assert len(list_page(people.ann)["documents"]) == 5


def test_an_unknown_namespace_is_empty_and_is_not_created(people: People, settings: Settings):
    assert list_page(people.ann, "nowhere") == {"documents": [], "total": 0}
    assert retrieve(people.ann, namespace="nowhere") == []
    assert delete(people.ann, "x", "nowhere").json() == {"detail": "Document not found"}
    with StandIn() as gateway:
        changes: dict[str, Any] = {"rag_llm_api_key": SecretStr("k"), "rag_llm_url": gateway.url}
        with app_with(knowledge.app, settings, **changes) as app:
            path, body = at("nowhere", "query"), {"question": "x"}
            answer = app.post(path, json=body, headers=people.ann.headers())
        nothing = "There is nothing in this namespace that answers this question."
        body = answer.json()
        assert (body["answer"], body["chunks"]) == (nothing, [])
        assert (body["confidence_detail"]["level"], body["confidence_detail"]["score"]) == ("low", 0.0)
        assert gateway.requests == []
    assert people.ann.request("GET", f"{PREFIX}/namespaces").json() == {"namespaces": []}


def test_filters_are_typed_equalities_that_must_all_match(people: People):
    documents = [
        {"text": REFUNDS, "document_id": "a", "metadata": {"topic": "refunds", "year": 2024, "tags": ["x"]}},
        {"text": REFUNDS + " Really.", "document_id": "b", "metadata": {"topic": "refunds", "year": "2024"}},
        {"text": SHIPPING, "document_id": "c", "metadata": {"topic": "shipping", "year": {"$gte": 1}}},
    ]
    ingest(people.ann, *documents)

    def retrieved_names(**filters: Any) -> set[str]:
        return {chunk["document_id"] for chunk in retrieve(people.ann, filters=filters)}

    assert retrieved_names() == {"a", "b", "c"}
    assert retrieved_names(topic="refunds") == {"a", "b"}
    assert retrieved_names(topic="refunds", year=2024) == {"a"}
    assert retrieved_names(year="2024") == {"b"}
    assert retrieved_names(tags=["x"]) == {"a"}
    # No operators: an object is a value.
    assert retrieved_names(year={"$gte": 1.0}) == {"c"}
    no_operators: list[dict[str, Any]] = [{"year": {"$gte": 2}}, {"topic": {"$nonsense": 1}}, {"$or": []}]
    for filters in (*no_operators, {"topic": "refund"}, {"topic": None}, {"nothing": "x"}):
        assert retrieved_names(**filters) == set(), filters
    answer = ask(people.ann, filters={"topic": "shipping"})
    assert {chunk["document_id"] for chunk in answer["chunks"]} == {"c"}


def test_a_query_returns_the_requested_number_of_chunks(people: People):
    ingest(people.ann, *({"text": f"Fact {n} about refunds."} for n in range(12)))
    for top_k in (1, 11):
        chunks = retrieve(people.ann, "refunds", top_k=top_k)
        assert len(chunks) == top_k
        scores = [chunk["score"] for chunk in chunks]
        assert scores == sorted(scores, reverse=True)
    assert len(retrieve(people.ann, "refunds")) == 10
    assert len(ask(people.ann, "refunds")["chunks"]) == 5


def test_an_empty_text_is_400_and_named(people: People):
    for text in ["", "  ", "\u200b"]:
        body = {"documents": [{"text": REFUNDS}, {"text": text}]}
        response = json_of(people.ann.request("POST", at("support", "documents"), body), 400)
        assert response == {"detail": "documents.1: A document needs a title and some text. Send both."}
    assert list_page(people.ann)["total"] == 0


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


def test_a_secret_key_of_the_project_is_refused_in_the_headers_of_keys(people: People):
    service = jwt.encode({"role": "service_role", "iss": "supabase"}, "x" * 32, "HS256")
    for name, key in product(("apikey", "X-Api-Key"), ("sb_secret_" + "x" * 32, service)):
        headers = {**people.ann.headers(), name: key}
        for path in (PREFIX + "/namespaces", "/v1/collections"):
            refused = client().get(people.ann.stack.url + path, headers=headers)
            assert refused.status_code == 401
        assert "This is a secret or service_role key of the project" in refused.text


def test_health_needs_no_credential_and_readiness_checks_the_database(people: People, settings: Settings):
    for path in ("/healthz", "/readyz"):
        response = client().get(people.ann.stack.url + path)
        assert (response.status_code, response.json()) == (200, {"status": "ok"})
    with app_with(knowledge.app, settings, supabase_url="http://127.0.0.1:9") as app:
        assert app.get("/healthz").status_code == 200
        gone = app.get("/readyz")
        assert (gone.status_code, gone.json()) == (503, {"status": "unavailable"})


def test_readiness_asks_the_database_once_in_a_while(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shared.api.health_probes.AGAIN_SECONDS", 60)
    with (
        proxy_to(settings.supabase_url) as (address, requests),
        app_with(knowledge.app, settings, supabase_url=address, supabase_jwt_issuer=settings.issuer) as app,
    ):
        assert [app.get("/readyz").status_code for _ in range(3)] == [200] * 3
    assert requests.count("/rest/v1/rpc/is_org_member") == 1


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
