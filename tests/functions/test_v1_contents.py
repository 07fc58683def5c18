"""/v1/contents over HTTP, on the real stack."""

import pytest

from shared.pipeline import Pipeline
from tests.actors import NOBODYS
from tests.conftest import People
from tests.functions.searching import OUTAGE, Row, Workspace, put, refused, workspace

LONG = " ".join(
    f"Sentence number {number} is about kettles and how they boil water." for number in range(120)
)


@pytest.fixture
def home(core: Pipeline, people: People) -> Workspace:
    return workspace(core, people.ann)


def test_what_a_search_found_is_read_by_its_ids(home: Workspace):
    best = home.search("what was the root cause of the billing outage?")["results"][0]
    body = home.contents(best["documentId"], best["chunkId"])
    assert set(body) == {"documents", "chunks", "missing", "requestId"}
    (document,) = body["documents"]
    assert document["id"] == best["documentId"]
    assert (document["title"], document["type"], document["source"]) == (
        "Billing outage",
        "incident",
        "notion",
    )
    assert document["metadata"]["labels"] == ["incident", "billing"]
    assert (document["body"], document["chunks"], document["graph"]) == (None, None, None)
    assert document["truncated"] is False
    (chunk,) = body["chunks"]
    assert chunk == {
        "id": best["chunkId"], "documentId": best["documentId"], "text": OUTAGE,
        "span": {"start": 0, "end": len(OUTAGE)},
    }  # fmt: skip
    assert body["missing"] == []


def test_chunks_and_the_raw_text_come_where_they_are_wanted(home: Workspace):
    long = home.put("Kettles", LONG)
    body = home.contents(long, expand={"chunks": True}, includeRaw=True)
    (document,) = body["documents"]
    assert document["body"] == LONG
    assert len(document["chunks"]) > 1
    for chunk in document["chunks"]:
        span = chunk["span"]
        assert LONG[span["start"] : span["end"]] == chunk["text"]
    starts = [chunk["span"]["start"] for chunk in document["chunks"]]
    assert starts == sorted(starts)


@pytest.mark.parametrize("include", [["relationships"], ["entities", "evidence"], None])
def test_the_graph_is_empty_until_there_is_one(home: Workspace, include: list[str] | None):
    graph = {"hops": 1} if include is None else {"hops": 2, "include": include}
    (document,) = home.contents(home.documents["Canteen"], expand={"graph": graph})["documents"]
    assert document["graph"] == {"entities": [], "relationships": [], "evidence": []}


def test_what_is_not_there_is_missing_as_it_was_asked_for(home: Workspace, people: People, core: Pipeline):
    foreign = put(core, people.bob, "theirs", "Secret", "Nobody of Acme may read this sentence at all.")
    asked = [home.documents["Canteen"], foreign, f"chnk_{NOBODYS}", "doc_garbage"]
    body = home.contents(*asked)
    assert [document["id"] for document in body["documents"]] == [home.documents["Canteen"]]
    assert body["missing"] == asked[1:]


def test_ids_go_with_and_without_their_prefix_and_come_once(home: Workspace):
    known = home.documents["Canteen"]
    references = [{"kind": "document", "id": found} for found in (known, known[4:], known[4:].upper())]
    answer = home.actor.post("/v1/contents", {"workspaceId": home.id[3:], "ids": references})
    assert [document["id"] for document in answer.json()["documents"]] == [known]


def test_documents_of_the_org_s_other_workspaces_come_unless_the_scope_is_the_workspace(
    home: Workspace, people: People, core: Pipeline
):
    elsewhere = put(
        core, people.alf, "sales", "Discounts", "A discount of 15 percent needs the head of sales."
    )
    assert [document["id"] for document in home.contents(elsewhere)["documents"]] == [elsewhere]
    strict = home.contents(elsewhere, scope="workspace")
    assert (strict["documents"], strict["missing"]) == ([], [elsewhere])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ids": []}, "ids"),
        ({"ids": [{"kind": "document", "id": NOBODYS}] * 101}, "ids"),
        ({"ids": [{"kind": "folder", "id": NOBODYS}]}, "ids.0.kind"),
        ({"ids": [{"kind": "document"}]}, "ids.0.id"),
        ({"ids": "doc_1"}, "ids"),
        ({}, "ids"),
        ({"ids": [{"kind": "chunk", "id": NOBODYS}], "expand": {"graph": {"hops": 3}}}, "expand.graph.hops"),
        ({"ids": [{"kind": "chunk", "id": NOBODYS}], "expand": {"graph": {"hops": -1}}}, "expand.graph.hops"),
        (
            {"ids": [{"kind": "chunk", "id": NOBODYS}], "expand": {"graph": {"include": ["all"]}}},
            "expand.graph.include.0",
        ),
        ({"ids": [{"kind": "chunk", "id": NOBODYS}], "includeRaw": "yes"}, "includeRaw"),
    ],
)
def test_what_is_out_of_range_is_named(home: Workspace, body: Row, field: str):
    answer = home.actor.post("/v1/contents", {"workspaceId": home.id, **body})
    refused(answer, 400, "INVALID_ARGUMENT", field)


def test_without_a_workspace_nothing_is_read(home: Workspace):
    ids = [{"kind": "document", "id": home.documents["Canteen"]}]
    refused(home.actor.post("/v1/contents", {"ids": ids}), 400, "INVALID_ARGUMENT", "workspaceId")
    answer = home.actor.post("/v1/contents", {"ids": ids, "workspaceId": NOBODYS})
    refused(answer, 404, "NOT_FOUND")
