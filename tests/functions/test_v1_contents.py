"""/v1/contents over HTTP, on the real stack."""

from typing import Any

import pytest

from shared.services import Services
from tests.conftest import People
from tests.functions.search_workspace import OUTAGE, Row, Workspace, put

LONG = " ".join(
    f"Sentence number {number} is about kettles and how they boil water." for number in range(120)
)


def test_search_results_are_read_by_their_ids(home: Workspace):
    best = home.search("what was the root cause of the billing outage?")["results"][0]
    body = home.contents(best["documentId"], best["chunkId"])
    assert set(body) == {"documents", "chunks", "missing", "requestId"}
    (document,) = body["documents"]
    assert document["id"] == best["documentId"]
    assert (document["title"], document["type"]) == ("Billing outage", "incident")
    assert document["source"] == "notion"
    assert document["metadata"]["labels"] == ["incident", "billing"]
    assert (document["body"], document["chunks"], document["graph"]) == (None, None, None)
    assert document["truncated"] is False
    (chunk,) = body["chunks"]
    assert chunk == {
        "id": best["chunkId"], "documentId": best["documentId"], "text": OUTAGE,
        "span": {"start": 0, "end": len(OUTAGE)},
    }  # fmt: skip
    assert body["missing"] == []


def test_chunks_and_raw_text_are_returned_on_request(own_home: Workspace):
    long = own_home.put("Kettles", LONG)
    body = own_home.contents(long, expand={"chunks": True}, includeRaw=True)
    (document,) = body["documents"]
    assert document["body"] == LONG
    assert len(document["chunks"]) > 1
    for chunk in document["chunks"]:
        span = chunk["span"]
        assert LONG[span["start"] : span["end"]] == chunk["text"]
    starts = [chunk["span"]["start"] for chunk in document["chunks"]]
    assert starts == sorted(starts)


OWNED = {"type": "OWNED_BY", "from": "billing_service", "to": "kestrel", "confidence": 0.9}


def graph_of(graph_workspace: Workspace, title: str, **graph: Any) -> Row:
    document_id = graph_workspace.documents[title]
    (document,) = graph_workspace.contents(document_id, expand={"graph": graph})["documents"]
    assert document["truncated"] is False
    row: Row = document["graph"]
    return row


def test_a_document_has_its_entities_and_relations(subtests: pytest.Subtests, graph_workspace: Workspace):
    for hops in [0, 2]:
        with subtests.test(hops=hops):
            graph = graph_of(graph_workspace, "Billing Service", hops=hops)
            assert graph["entities"][:2] == ["billing_service", "kestrel"]
            assert graph["relationships"] == [OWNED]
            (chunk,) = graph_workspace.contents(*graph["evidence"])["chunks"]
            assert chunk["documentId"] == graph_workspace.documents["Billing Service"]


def test_only_the_requested_parts_of_the_graph_are_returned(graph_workspace: Workspace):
    for include in [["relationships"], ["entities", "evidence"], []]:
        graph = graph_of(graph_workspace, "Billing Service", include=include)
        assert {name for name, part in graph.items() if part} == set(include)


def test_ids_work_with_and_without_a_prefix_and_are_deduplicated(home: Workspace):
    known = home.documents["Canteen"]
    references = [{"kind": "document", "id": entry} for entry in (known, known[4:], known[4:].upper())]
    answer = home.actor.post("/v1/contents", {"workspaceId": home.id[3:], "ids": references})
    assert [document["id"] for document in answer.json()["documents"]] == [known]


def test_other_workspaces_of_the_org_are_included_unless_the_scope_is_the_workspace(
    own_home: Workspace, people: People, services: Services
):
    text = "A discount of 15 percent needs the head of sales."
    elsewhere = put(services, people.alf, "sales", "Discounts", text)
    assert [document["id"] for document in own_home.contents(elsewhere)["documents"]] == [elsewhere]
    strict = own_home.contents(elsewhere, scope="workspace")
    assert (strict["documents"], strict["missing"]) == ([], [elsewhere])
