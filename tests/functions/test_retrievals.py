"""The platform's retrievals over HTTP, on the real stack."""

import hashlib
from functools import partial
from typing import Any

import pytest
from fastapi.testclient import TestClient

from functions import retrievals
from shared.config import Settings
from shared.services import Services
from tests import graph_documents, metadata_filters
from tests.actors import Actor, World
from tests.conftest import People
from tests.functions.app_server import app_with, json_of, platform_error
from tests.functions.search_workspace import OUTAGE, Workspace, put
from tests.hosted_reranker import MODEL, hosted_reranker

PATH = "/api/v1/retrievals"
QUESTION = "what was the root cause of the billing outage?"
Row = dict[str, Any]
MODES = ["semantic", "keyword", "hybrid", "hierarchical", "graph"]


def retrieve(actor: Actor, query: str = QUESTION, path: str = PATH, **body: Any) -> Row:
    return json_of(actor.post(path, {"query": query, **body}))


def titles(actor: Actor, query: str = QUESTION, **body: Any) -> set[str]:
    return {result["document"]["title"] for result in retrieve(actor, query, **body)["results"]}


def collection_of(home: Workspace) -> str:
    return home.id.removeprefix("ws_")


def test_every_mode_ranks_the_best_answer_first(subtests: pytest.Subtests, home: Workspace):
    for mode in MODES:
        with subtests.test(mode=mode):
            body = retrieve(home.actor, mode=mode, collection_id=collection_of(home), top_k=3)
            assert set(body) == {
                "query", "mode", "total_results", "graph_enhanced", "graph_context", "graph", "results",
                "retrieval_metadata",
            }  # fmt: skip
            assert (body["query"], body["mode"], body["total_results"]) == (
                QUESTION,
                mode,
                len(body["results"]),
            )
            how = body["retrieval_metadata"]
            assert (how["mode"], how["total_results"]) == (mode, len(body["results"]))
            assert (how["reranked_by"], how["rerank_failed"]) == (None, False)
            assert how["retrieval_time_ms"] >= 0
            # Where words alone decide nothing is compared; where the graph is asked it has a part.
            assert (how["exact"] is None) == (mode == "keyword")
            assert body["graph_enhanced"] is (mode == "graph")
            assert [result["rank"] for result in body["results"]] == list(range(1, len(body["results"]) + 1))
            scores = [result["score"] for result in body["results"]]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)
            assert body["results"][0]["document"]["title"] == "Billing outage"


def test_a_result_has_the_fields_of_the_contract_and_its_sdk(
    services: Services, people: People, world: World
):
    fields = {"category": "technical", "author": "John Doe"}
    stored = put(services, people.ann, "docs", "Deployment Guide", OUTAGE, metadata=fields).removeprefix(
        "doc_"
    )
    world.sql(
        "update rag.documents set filename = 'deploy.pdf', owner_id = %s, created_by = %s where id = %s",
        people.ann.id, people.alf.id, stored,
    )  # fmt: skip
    (best,) = retrieve(people.ann, path="/v1/retrievals")["results"]
    assert set(best) == {
        "chunk_id", "document_id", "collection_id", "collection_name", "user_id", "owner_id", "content",
        "content_hash", "chunk_index", "score", "similarity", "rank", "metadata", "document",
        "document_metadata", "chunk_metadata",
    }  # fmt: skip
    assert best["document_metadata"] == {**fields, "title": "Deployment Guide", "filename": "deploy.pdf"}
    assert best["document"] == {"id": stored, "title": "Deployment Guide", "filename": "deploy.pdf"}
    assert (best["document_id"], best["chunk_index"]) == (stored, 0)
    assert (best["user_id"], best["owner_id"]) == (people.alf.id, people.ann.id)
    assert best["content_hash"] == f"sha256:{hashlib.sha256(best['content'].encode()).hexdigest()}"
    assert best["metadata"] == {"graph_sourced": False}
    # Ids of the response work elsewhere.
    body = people.ann.request("GET", f"/api/v1/documents/{best['document_id']}").json()
    assert (body["id"], body["user_id"], body["owner_id"]) == (stored, people.alf.id, people.ann.id)
    assert people.ann.request("GET", f"/api/v1/collections/{best['collection_id']}").json()["name"] == "docs"


def test_filters_apply_in_every_mode(
    subtests: pytest.Subtests, services: Services, people: People, world: World
):
    ann = people.ann
    both = {"category": "technical", "author": "John Doe"}
    for collection, title, metadata in (
        ("docs", "Ours", {**both, "level": 1}), ("docs", "Half", {**both, "author": "Jane Doe", "level": 1}),
        ("docs", "Called", {"document_type": "technical"}), ("docs", "Read", {}),
        ("others", "Elsewhere", both),
    ):  # fmt: skip
        put(services, ann, collection, title, OUTAGE, metadata=metadata)
    world.sql(
        'update rag.documents set processing_info = \'{"document_type": "legal"}\' '
        "where org_id = %s and title in ('Read', 'Called')",
        people.acme.id,
    )
    docs = ann.rpc("rag_find_collection", {"collection": "docs"}).json()[0]["id"]
    for mode in MODES:
        find = partial(titles, ann, mode=mode)
        with subtests.test(mode=mode):
            assert find(metadata_filter=both) == {"Ours", "Elsewhere"}
            assert find(metadata_filter=both, collection_id=f"col_{docs}") == {"Ours"}
            assert find(metadata_filter={"level": 1.0, "author": "Jane Doe"}) == {"Half"}
            assert find(metadata_filter={"level": "1"}) == set()
            # As its metadata name it, and as it was parsed.
            assert find(document_type="technical") == {"Called"}
            assert find(document_type="legal") == {"Called", "Read"}
            assert find(document_type="legal", metadata_filter={"document_type": "technical"}) == {"Called"}
            assert find(document_type="sonnet") == set()
            assert len(find(collection_id=docs, metadata_filter={}, document_type=None)) == 4


def test_a_reranker_orders_on_request_and_its_failure_is_tolerated(settings: Settings, home: Workspace):
    plain = (None, "Billing outage")
    with hosted_reranker("lentil soup") as reranker:
        with app_with(retrievals.app, settings, **reranker) as client:
            assert by_reranker(client, home, rerank=True) == (MODEL, "Canteen")
            assert by_reranker(client, home) == by_reranker(client, home, rerank=False) == plain
        with app_with(retrievals.app, settings, **reranker, rag_rerank_enabled=True) as client:
            assert by_reranker(client, home) == by_reranker(client, home, rerank=None) == (MODEL, "Canteen")
            assert by_reranker(client, home, rerank=False) == plain
    broken = {**reranker, "rag_rerank_url": "http://127.0.0.1:9"}
    with app_with(retrievals.app, settings, **broken) as client:
        request = {"query": QUESTION, "rerank": True}
        answer = client.post(PATH, json=request, headers=home.actor.headers()).json()
    assert answer["retrieval_metadata"]["rerank_failed"] is True
    assert answer["results"][0]["document"]["title"] == "Billing outage"


def by_reranker(client: TestClient, home: Workspace, **body: Any) -> tuple[str | None, str]:
    """The model that ordered the results, and the title of the first."""
    request = {"query": QUESTION, **body}
    answer = client.post(PATH, json=request, headers=home.actor.headers()).json()
    return answer["retrieval_metadata"]["reranked_by"], answer["results"][0]["document"]["title"]


def test_graph_results_are_added_and_marked(subtests: pytest.Subtests, services: Services, people: People):
    graph_documents.put_all(services, people.ann)
    for mode in MODES:
        with subtests.test(mode=mode):
            body = retrieve(people.ann, graph_documents.QUESTION, mode=mode, enable_graph=True)
            assert body["graph_enhanced"] is True
            assert graph_documents.TEAM in body["graph_context"]
            entities = {entity["id"] for entity in body["graph"]["entities"]}
            assert body["graph"]["edges"]
            assert all({edge["source"], edge["target"]} <= entities for edge in body["graph"]["edges"])
            assert body["graph"]["evidence"]
            assert any(entity["seed"] for entity in body["graph"]["entities"])


def test_the_graph_is_not_used_without_names_or_without_a_request(home: Workspace):
    for body in (retrieve(home.actor), retrieve(home.actor, "why?", enable_graph=True)):
        assert (body["graph_enhanced"], body["graph_context"], body["graph"]) == (False, None, None)
        assert not any(result["metadata"]["graph_sourced"] for result in body["results"])


def test_an_invalid_operator_is_400_and_names_the_filter(subtests: pytest.Subtests, shared_people: People):
    ann = shared_people.ann
    for metadata, message in metadata_filters.REFUSED:
        with subtests.test(metadata=metadata):
            refused = platform_error(ann.post(PATH, {"query": "x", "metadata_filter": metadata}), 400)
            assert refused["code"] == "invalid_field_value"
            assert refused["details"]["field"] == "metadata_filter"
            assert message in refused["message"]


def test_the_limits_of_valid_values_are_accepted(people: People):
    longest = retrieve(people.ann, f"  {'x' * 1000}  ", top_k=100, unheard_of=True)
    assert (longest["query"], longest["total_results"]) == ("x" * 1000, 0)
