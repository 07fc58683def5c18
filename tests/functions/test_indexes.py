"""The index contract over HTTP, as KAITO's clients use it: documents, and questions about them."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from functions import index_query
from shared.api.contracts.shared_fields import LOCATION
from shared.config import Settings
from tests.actors import Actor, vector
from tests.conftest import People
from tests.functions.app_server import app_with, json_of
from tests.stand_in_server import Reply, StandIn

KETTLE = "The kettle switches off at 100 degrees. It holds 1.7 litres."
TOASTER = "The toaster browns bread in two minutes. It has two slots."
NAMES = ["Überblick 索引 📚 %2F", "documents", "a/documents", "x" * 255]
Row = dict[str, Any]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def path(name: str, rest: str = "") -> str:
    return f"/indexes/{quote(name, safe='')}{rest}"


def index(actor: Actor, *texts: str, name: str = "rag_index", **metadata: Any) -> list[Row]:
    documents = [{"text": text, "metadata": metadata} for text in texts]
    response = actor.post("/index", {"index_name": name, "documents": documents})
    assert response.status_code == 200, response.text
    rows: list[Row] = response.json()
    return rows


def listed(actor: Actor, query: str = "", name: str = "rag_index") -> Row:
    return json_of(actor.request("GET", path(name, f"/documents{query}")))


def changed(actor: Actor, *documents: Row, name: str = "rag_index") -> Row:
    return json_of(actor.post(path(name, "/documents"), {"documents": documents}))


def retrieve(actor: Actor, query: str, name: str = "rag_index", **more: Any) -> list[Row]:
    body = json_of(actor.post("/retrieve", {"index_name": name, "query": query, **more}))
    results: list[Row] = body["results"]
    return results


def detail(response: Any, status: int) -> Any:
    assert response.status_code == status, response.text
    assert set(response.json()) == {"detail"}
    return response.json()["detail"]


def test_indexed_documents_are_searchable_at_once(people: People):
    first, second = index(people.ann, KETTLE, TOASTER, author="kaito")
    assert first == {
        "doc_id": digest(KETTLE), "text": KETTLE, "hash_value": digest(KETTLE),
        "metadata": {"author": "kaito"}, "is_truncated": False,
    }  # fmt: skip
    assert second["doc_id"] == digest(TOASTER)
    best = retrieve(people.ann, "When does the kettle switch off?")[0]
    assert set(best) == {"doc_id", "node_id", "text", "score", "metadata", *LOCATION}
    assert (best["doc_id"], best["metadata"]) == (digest(KETTLE), {"author": "kaito"})


def test_the_id_is_the_first_key_of_compact_json(people: People):
    """Clients look for it there with a substring."""
    (row,) = index(people.ann, KETTLE)
    listing = people.ann.request("GET", path("rag_index", "/documents")).text
    assert f'"documents":[{{"doc_id":"{row["doc_id"]}"' in listing
    update = {"documents": [{"doc_id": row["doc_id"], "text": TOASTER}]}
    answer = people.ann.post(path("rag_index", "/documents"), update).text
    assert answer.startswith(f'{{"updated_documents":[{{"doc_id":"{row["doc_id"]}"')
    request = {"index_name": "rag_index", "documents": [{"text": KETTLE}]}
    assert people.ann.post("/index", request).text.startswith(f'[{{"doc_id":"{digest(KETTLE)}"')


def test_an_identical_text_is_the_same_document(people: People):
    index(people.ann, KETTLE, author="first")
    (second,) = index(people.ann, KETTLE, author="second")
    assert (second["doc_id"], second["metadata"]) == (digest(KETTLE), {"author": "first"})
    assert listed(people.ann)["total_items"] == 1
    (spaced,) = index(people.ann, f"{KETTLE} ")
    assert spaced["doc_id"] == digest(f"{KETTLE} ")


def test_a_text_is_indexed_again_after_its_document_changed(people: People):
    index(people.ann, KETTLE)
    changed(people.ann, {"doc_id": digest(KETTLE), "text": TOASTER})
    (back,) = index(people.ann, KETTLE)
    assert (back["doc_id"], back["text"]) == (digest(KETTLE), KETTLE)
    assert [row["text"] for row in listed(people.ann)["documents"]] == [KETTLE]


def test_an_empty_list_of_documents_creates_no_index(people: People):
    assert index(people.ann, name="empty") == []
    assert people.ann.request("GET", "/indexes").json() == []
    index(people.ann, KETTLE)
    assert index(people.ann) == []
    assert listed(people.ann)["total_items"] == 1


def test_indexes_are_listed_by_name_and_deleted_with_their_contents(people: People):
    index(people.ann, KETTLE, name="b")
    index(people.ann, KETTLE, name="a")
    assert people.ann.request("GET", "/indexes").json() == ["a", "b"]
    response = people.ann.request("DELETE", path("a"))
    assert (response.status_code, response.json()) == (200, {"message": "Successfully deleted index a."})
    assert people.ann.request("GET", "/indexes").json() == ["b"]
    assert detail(people.ann.request("DELETE", path("a")), 404) == "No such index: 'a' exists."
    assert retrieve(people.ann, "kettle", "b") != []


def test_any_index_name_makes_the_round_trip(subtests: pytest.Subtests, people: People):
    ann = people.ann
    for name in NAMES:
        with subtests.test(name=name):
            (row,) = index(ann, KETTLE, name=name)
            assert ann.request("GET", "/indexes").json() == [name]
            assert listed(ann, name=name)["documents"][0]["doc_id"] == row["doc_id"]
            answer = changed(ann, {"doc_id": row["doc_id"], "text": TOASTER}, name=name)
            assert len(answer["updated_documents"]) == 1
            assert retrieve(ann, "toaster", name)[0]["text"] == TOASTER
            gone = ann.post(path(name, "/documents/delete"), {"doc_ids": [row["doc_id"]]})
            assert gone.json() == {"deleted_doc_ids": [row["doc_id"]], "not_found_doc_ids": []}
            deleted = ann.request("DELETE", path(name)).json()
            assert deleted["message"] == f"Successfully deleted index {name}."


def test_a_list_is_paged_truncated_and_filtered(people: People):
    for number in range(7):
        index(people.ann, f"Document {number} of seven.", number=number, even=number % 2 == 0)
    page = listed(people.ann, "?limit=3&offset=2&max_text_length=10")
    assert (page["count"], page["total_items"]) == (3, 7)
    assert [(row["text"], row["is_truncated"]) for row in page["documents"]] == [
        (f"Document {number}", True) for number in (2, 3, 4)
    ]
    (whole,) = listed(people.ann, "?limit=1&max_text_length=20")["documents"]
    assert (whole["text"], whole["is_truncated"]) == ("Document 0 of seven.", False)
    assert listed(people.ann, "?offset=7")["count"] == 0
    even = listed(people.ann, f"?metadata_filter={quote(json.dumps({'even': True}))}")
    assert (even["count"], even["total_items"]) == (4, 4)
    both = listed(people.ann, f"?metadata_filter={quote(json.dumps({'even': True, 'number': 2}))}")
    assert [row["metadata"]["number"] for row in both["documents"]] == [2]
    # Typed: the text "2" is not the number.
    assert listed(people.ann, f"?metadata_filter={quote(json.dumps({'number': '2'}))}")["count"] == 0


def test_a_page_has_ten_documents_of_at_most_a_thousand_characters(people: People):
    index(people.ann, *(f"Document {number} {'x' * 1200}" for number in range(12)))
    page = listed(people.ann)
    assert (page["count"], page["total_items"]) == (10, 12)
    assert {(len(row["text"]), row["is_truncated"]) for row in page["documents"]} == {(1000, True)}


def test_a_filter_that_is_not_an_object_is_refused(people: People):
    index(people.ann, KETTLE)
    for text in ["author", "[]", '"author"', "{", "null", "1", '{"a": NaN}', ""]:
        answer = people.ann.request("GET", path("rag_index", f"/documents?metadata_filter={quote(text)}"))
        assert detail(answer, 400) == "Invalid metadata filter format. Must be a valid JSON string.", text


def test_changed_unchanged_and_missing_documents_are_reported_separately(people: People):
    index(people.ann, KETTLE, TOASTER, author="a")
    other = "The kettle holds two litres."
    answer = changed(
        people.ann,
        {"doc_id": digest(KETTLE), "text": other, "hash_value": "theirs", "metadata": {"author": "b"}},
        {"doc_id": digest(TOASTER), "text": TOASTER, "metadata": {"author": "a"}},
        {"doc_id": "nobody", "text": "x"},
        {"text": "without an id"},
    )
    assert [row["doc_id"] for row in answer["updated_documents"]] == [digest(KETTLE)]
    assert [row["doc_id"] for row in answer["unchanged_documents"]] == [digest(TOASTER)]
    assert [row["doc_id"] for row in answer["not_found_documents"]] == ["nobody", ""]
    assert retrieve(people.ann, "two litres")[0]["doc_id"] == digest(KETTLE)
    assert retrieve(people.ann, "two litres")[0]["metadata"] == {"author": "b"}
    assert KETTLE not in [row["text"] for row in retrieve(people.ann, KETTLE)]
    # The last of two changes of a document applies.
    answer = changed(people.ann, *({"doc_id": digest(KETTLE), "text": text} for text in ("One.", "Two.")))
    assert [row["text"] for row in answer["updated_documents"]] == ["Two."]


def test_a_value_of_another_type_is_a_change(people: People):
    """Which Python would take for the same."""
    values: list[tuple[str, Any, Any]] = [("a", 1, True), ("b", False, 0), ("c", [1], [True])]
    for name, before, after in values:
        index(people.ann, KETTLE, name=name, flag=before)
        change = {"doc_id": digest(KETTLE), "text": KETTLE, "metadata": {"flag": after}}
        assert len(changed(people.ann, change, name=name)["updated_documents"]) == 1, after
        query = quote(json.dumps({"flag": after}))
        assert listed(people.ann, f"?metadata_filter={query}", name)["count"] == 1


def test_an_unknown_index_is_404_with_upstream_s_message(shared_people: People):
    for method, rest, body in (
        ("GET", "/documents", None),
        ("POST", "/documents", {"documents": []}),
        ("POST", "/documents/delete", {"doc_ids": []}),
        ("DELETE", "", None),
    ):
        answer = shared_people.ann.request(method, path('it\'s "x"', rest), body)
        assert detail(answer, 404) == "No such index: 'it's \"x\"' exists.", (method, rest)
    for route in ["/query", "/retrieve"]:
        answer = shared_people.ann.post(route, {"index_name": "nowhere", "query": "x"})
        assert detail(answer, 404) == "No such index: 'nowhere' exists."


BAD_LANGUAGES: list[Row] = [{}, *({"language": name} for name in ("klingon", None, ["python"]))]
BAD_DOCUMENTS: list[tuple[Row, int]] = [
    ({}, 422), ({"text": None}, 422), ({"text": 7}, 422), ({"text": ""}, 400), ({"text": " \n "}, 400),
    ({"text": "x", "metadata": []}, 422), ({"text": "x", "metadata": {"a": "y" * 10_000}}, 422),
    *(({"text": "def a(): pass", "metadata": {"split_type": "code", **bad}}, 400) for bad in BAD_LANGUAGES),
]  # fmt: skip


def test_one_invalid_document_rejects_the_whole_request(subtests: pytest.Subtests, people: People):
    for document, status in BAD_DOCUMENTS:
        with subtests.test(document=document):
            body = {"index_name": "rag_index", "documents": [{"text": KETTLE}, document]}
            detail_of_fault = detail(people.ann.post("/index", body), status)
            if status == 400:
                assert detail_of_fault.startswith("documents.1: ")
            else:
                assert detail_of_fault[0]["loc"][:3] == ["body", "documents", 1]
            assert people.ann.request("GET", "/indexes").json() == []


def test_documents_of_another_contract_are_listed_changed_and_deleted_by_id(people: People):
    name = "handbook"
    document_id = people.ann.put([vector(1)], collection=name)
    assert [row["doc_id"] for row in listed(people.ann, name=name)["documents"]] == [document_id]
    # Its id as it is shown, and no other way to write it.
    other = changed(people.ann, {"doc_id": document_id.upper(), "text": TOASTER}, name=name)
    assert len(other["not_found_documents"]) == 1
    request = {"doc_ids": [document_id.upper()]}
    gone = people.ann.post(path(name, "/documents/delete"), request)
    assert gone.json()["not_found_doc_ids"] == [document_id.upper()]
    update = changed(people.ann, {"doc_id": document_id, "text": TOASTER}, name=name)
    assert len(update["updated_documents"]) == 1
    assert retrieve(people.ann, "toaster", name)[0]["doc_id"] == document_id
    gone = people.ann.post(path(name, "/documents/delete"), {"doc_ids": [document_id]})
    assert gone.json()["deleted_doc_ids"] == [document_id]


QUESTION = "At how many degrees does the kettle switch off?"
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "At 100 degrees."}}]}


def ask(actor: Actor, **more: Any) -> Any:
    return actor.post("/query", {"index_name": "rag_index", "query": QUESTION, **more})


def retrieved(actor: Actor, query: str = QUESTION, **more: Any) -> Any:
    return actor.post("/retrieve", {"index_name": "rag_index", "query": query, **more})


@contextmanager
def with_model(settings: Settings, api: StandIn) -> Iterator[TestClient]:
    """The function of a deployment that has a gateway."""
    changes = {"rag_llm_api_key": "sk-model", "rag_llm_url": api.url}
    with app_with(index_query.app, settings, **changes) as client:
        yield client


def test_an_answer_comes_from_the_retrieved_nodes(people: People):
    index(people.ann, KETTLE, TOASTER, author="kaito")
    body = ask(people.ann).json()
    assert set(body) == {"response", "source_nodes", "metadata", "confidence_detail"}
    assert "The kettle switches off at 100 degrees." in body["response"]
    best = body["source_nodes"][0]
    # The contract's fields come first.
    assert list(best) == ["doc_id", "node_id", "text", "score", "metadata", *LOCATION]
    assert (best["doc_id"], best["text"]) == (digest(KETTLE), KETTLE)
    assert body["metadata"] == {node["node_id"]: {"author": "kaito"} for node in body["source_nodes"]}
    scores = [node["score"] for node in body["source_nodes"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_the_model_gets_the_parameters_and_the_context(people: People, settings: Settings, gateway: StandIn):
    index(people.ann, KETTLE)
    gateway.replies(Reply(json=ANSWER))
    request = {"temperature": 0.7, "max_tokens": 2048, "top_p": 0.5, "seed": 7, "stop": ["END"], "unknown": 1}
    with with_model(settings, gateway) as client:
        body = {"index_name": "rag_index", "query": QUESTION, "llm_params": request}
        answer = client.post("/query", json=body, headers=people.ann.headers())
    assert answer.json()["response"] == "At 100 degrees."
    (query,) = gateway.requests
    del request["unknown"]
    assert "unknown" not in query.json
    assert {name: query.json[name] for name in request} == request
    assert KETTLE in query.json["messages"][-1]["content"]


def test_retrieval_filters_nodes_by_metadata(people: People):
    index(people.ann, KETTLE, author="a", year=2025)
    index(people.ann, TOASTER, author="b", year=2025)
    body = retrieved(people.ann, metadata_filter={"author": "b", "year": 2025}).json()
    assert set(body) == {"query", "results", "count"}
    assert (body["query"], body["count"]) == (QUESTION, 1)
    assert body["results"][0]["doc_id"] == digest(TOASTER)
    assert retrieved(people.ann, metadata_filter=None).json()["count"] == 2
    # No operators: an object is a value, and a key may begin with $.
    assert retrieved(people.ann, metadata_filter={"year": {"$gte": 2000}}).json()["count"] == 0
    special: dict[str, Any] = {"year": {"$gte": 2000}, "$or": [1]}
    index(people.ann, TOASTER + " Warm.", **special)
    for key, value in special.items():
        (result,) = retrieved(people.ann, metadata_filter={key: value}).json()["results"]
        assert result["metadata"]["year"] == {"$gte": 2000}
    assert retrieved(people.ann, metadata_filter={"author": "c"}).json() == {
        "query": QUESTION, "results": [], "count": 0,
    }  # fmt: skip


def test_retrieval_returns_up_to_three_hundred_nodes(people: People):
    people.ann.put([vector(number) for number in range(310)], collection="rag_index")
    assert retrieved(people.ann).json()["count"] == 5
    body = retrieved(people.ann, max_node_count=300).json()
    assert body["count"] == 300
    assert len({node["node_id"] for node in body["results"]}) == 300
