"""/v1/similar over HTTP, on the real stack."""

import pytest

from shared.services import Services
from tests.conftest import People
from tests.functions.search_workspace import Row, Workspace, ok, put, workspace, workspace_id

TEXT = {"kind": "text", "text": "webhook retries piled up and billing went down"}
LIKE = "Stripe webhook retries piled up in the queue once more, and the billing service was slow for an hour."
# Each mode with one of the two: the search and the grouping of its matches are apart.
MODES = {
    "auto": "chunks",
    "neural": "documents",
    "keyword": "chunks",
    "hybrid": "documents",
    "fast": "chunks",
}


@pytest.fixture(scope="module")
def shared_workspace(services: Services, shared_people: People) -> Workspace:
    """The documents of every workspace, and one that resembles one of them. No test changes them."""
    return with_similar_document(workspace(services, shared_people.ann))


def with_similar_document(home: Workspace) -> Workspace:
    home.documents["Again"] = home.put("Again", LIKE, origin="github")
    return home


def chunk_of(home: Workspace, title: str) -> str:
    graph = home.contents(home.documents[title], expand={"chunks": True})["documents"][0]
    chunk: str = graph["chunks"][0]["id"]
    return chunk


def test_the_most_similar_comes_first_and_never_the_subject(subtests: pytest.Subtests, home: Workspace):
    subjects: dict[str, Row] = {
        "text": TEXT,
        "chunk": {"kind": "chunk", "chunkId": chunk_of(home, "Billing outage")},
        "document": {"kind": "document", "documentId": home.documents["Billing outage"]},
    }
    for mode, by in MODES.items():
        for kind, subject in subjects.items():
            with subtests.test(mode=mode, by=by, kind=kind):
                body = home.similar(subject, mode=mode, by=by)
                assert set(body) == {"matches", "usage", "requestId"}
                results = [match["documentId"] for match in body["matches"]]
                if kind == "text":
                    assert set(results[:2]) == {home.documents["Billing outage"], home.documents["Again"]}
                else:
                    assert home.documents["Billing outage"] not in results
                    assert results[0] == home.documents["Again"]
                if by == "documents":
                    assert len(set(results)) == len(results)
                scores = [match["score"] for match in body["matches"]]
                assert scores == sorted(scores, reverse=True)
                best = body["matches"][0]
                assert all(best[name] for name in ("highlight", "title"))
                assert best["chunkId"].startswith("chnk_")


def test_filters_and_top_k_apply(home: Workspace):
    subject = {"kind": "document", "documentId": home.documents["Billing outage"]}
    body = home.similar(subject, filters={"sources": ["github"]}, topK=1)
    assert [match["title"] for match in body["matches"]] == ["Again"]
    assert body["usage"]["routerScope"] in ("workspace", "org")


def test_operators_on_metadata_apply_to_chunks_and_documents(
    subtests: pytest.Subtests, services: Services, people: People
):
    for title, fields in {"Old": {"year": 2019}, "New": {"year": 2024}, "Bare": {}}.items():
        put(services, people.ann, "docs", title, LIKE, metadata=fields)
    request = {"workspaceId": workspace_id(people.ann, "docs"), "subject": TEXT}
    for by in ["chunks", "documents"]:
        for operator, expected in (("$gt", {"New"}), ("$ne", {"New", "Bare"})):
            with subtests.test(by=by, operator=operator):
                filters = {"metadata": {"year": {operator: 2019}}}
                answer = people.ann.post("/v1/similar", {**request, "by": by, "filters": filters})
                assert {match["title"] for match in ok(answer)["matches"]} == expected
