"""knowledge over HTTP, on the real stack: namespaces of texts, and retrieval from them."""

from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr

from functions import knowledge
from shared.config import Settings
from shared.text.normalize import clean
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import app_with, json_of
from tests.functions.knowledge_client import (
    PREFIX,
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
from tests.stand_in_server import StandIn

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
