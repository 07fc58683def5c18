"""/v1/search and /v1/contents over HTTP, on the real stack."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import cycle
from typing import Any

import pytest
from fastapi import FastAPI

from functions import v1_search, v1_similar
from shared.config import Settings
from shared.services import Services
from tests import graph_documents, metadata_filters
from tests.actors import NOBODYS
from tests.conftest import People
from tests.functions.app_server import app_with
from tests.functions.search_workspace import NOW, OUTAGE, Row, Workspace, at, error_of, ok, put, workspace_id
from tests.hosted_reranker import hosted_reranker
from tests.stand_in_server import Reply, StandIn

MODES = ["auto", "knowledge", "graph", "hybrid", "keyword", "neural", "fast"]
QUESTION = "what was the root cause of the billing outage?"
NO_GRAPH: Row = {"entities": [], "edges": [], "evidenceChunks": []}
EXPLAINED: Row = {"include": {"rationale": True}}


def rules(body: Row) -> list[str]:
    return [reason["rule"] for reason in body["rationale"]["rules"]]


def titles(body: Row) -> list[str]:
    return [result["title"] for result in body["results"]]


def documents(body: Row) -> set[str]:
    return {result["documentId"] for result in body["results"]}


def test_every_mode_ranks_the_best_answer_first(subtests: pytest.Subtests, home: Workspace):
    expected = {
        "title": "Billing outage", "type": "incident", "source": "notion", "author": "priya@example.com",
        "url": "https://notion.example/outage", "occurredAt": "2026-11-11T09:00:00Z",
        "documentId": home.documents["Billing outage"],
    }  # fmt: skip
    for mode in MODES:
        with subtests.test(mode=mode):
            body = home.search(QUESTION, mode=mode, **EXPLAINED)
            assert set(body) == {"results", "rationale", "context", "usage", "requestId"}
            best = body["results"][0]
            assert {name: best[name] for name in expected} == expected
            assert best["chunkId"].startswith("chnk_")
            scores = [result["score"] for result in body["results"]]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)
            assert body["rationale"]["routerMode"] == {"auto": "hybrid"}.get(mode, mode)
            if mode not in ("auto", "graph"):
                assert body["rationale"]["graph"] == NO_GRAPH


def test_a_highlight_is_the_best_passage_with_its_exact_position(own_home: Workspace):
    before = "On Mondays the team meets at nine and talks about what it has planned for the days to come. "
    report = own_home.put("Report", before * 4 + OUTAGE)
    best = own_home.search(QUESTION, filters={"types": ["doc"]})["results"][0]
    assert best["documentId"] == report
    assert "root cause were Stripe webhook retries" in best["highlight"]
    span = best["highlightSpan"]
    assert span["start"] > 200, "it is not just the beginning"
    raw = own_home.contents(best["documentId"], includeRaw=True)["documents"][0]["body"]
    assert raw[span["start"] : span["end"]] == best["highlight"]


def test_fields_that_are_not_included_are_absent(home: Workspace):
    include = {"document": False, "highlights": False, "rationale": False}
    body = home.search(QUESTION, include=include)
    best = body["results"][0]
    absent = ("title", "type", "source", "url", "author", "occurredAt", "highlight", "highlightSpan")
    assert {best[name] for name in absent} == {None}
    assert all(best[name] for name in ("documentId", "chunkId", "score"))
    assert (body["rationale"], body["context"]) == (None, None)


BILLING = {"Billing outage", "Duplicate invoices"}

FILTERS: list[tuple[Row, set[str]]] = [
    ({"sources": ["github"]}, {"Duplicate invoices"}),
    ({"types": ["incident", "issue"]}, BILLING),
    ({"authors": ["alice@example.com"]}, {"Duplicate invoices"}),
    ({"states": ["resolved"]}, {"Billing outage"}),
    ({"labels": ["billing"]}, BILLING),
    ({"labels": ["incident"], "sources": ["github"]}, set()),
    ({"after": "2026-09-01T00:00:00Z", "before": None}, {"Billing outage"}),
    ({"before": "2025-02-03"}, {"Who owns what"}),
    ({"sources": None, "labels": []}, {*BILLING, "Who owns what", "Canteen"}),
]


def test_filters_narrow_the_results(subtests: pytest.Subtests, home: Workspace):
    for filters, expected in FILTERS:
        with subtests.test(filters=filters):
            assert set(home.titles("billing invoices", mode="neural", filters=filters)) == expected


def test_an_identifier_is_searched_by_keyword_and_otherwise_semantically(home: Workspace):
    body = home.search("INC-4821", **EXPLAINED)
    assert titles(body) == ["Duplicate invoices"]
    assert body["rationale"]["routerMode"] == "keyword"
    assert "identifier" in rules(body)
    assert body["usage"]["embeddingVersion"] is None
    assert body["usage"]["stages"]["embed"] == body["usage"]["stages"]["vector"] == 0
    unknown = home.search("INC-9999", **EXPLAINED)
    assert "identifier_not_found" in rules(unknown)
    assert unknown["usage"]["embeddingVersion"] == home.services.embedder.model


@pytest.fixture
def search_now(home: Workspace, services: Services) -> Iterator[Callable[..., Row]]:
    """A search at NOW in a deployment of this process."""
    with at(services, NOW, v1_search.app) as client:

        def search(q: str, **more: Any) -> Row:
            request = {"workspaceId": home.id, "q": q, **EXPLAINED, **more}
            return ok(client.post("/v1/search", json=request, headers=home.actor.headers()))

        yield search


def test_a_time_in_the_question_filters_by_the_documents_dates(search_now: Callable[..., Row]):
    body = search_now("billing incidents last week")
    assert titles(body) == ["Billing outage"]
    time_range = body["usage"]["inferredTimeRange"]
    assert time_range["after"] == "2026-11-09T00:00:00Z"
    assert time_range["before"].startswith("2026-11-15T23:59:59")
    assert body["usage"]["inferredFamily"] == "incidents"
    assert "last week" not in body["rationale"]["query"]
    assert titles(search_now("billing in Q3")) == ["Duplicate invoices"]
    assert set(titles(search_now("billing since March"))) == BILLING


def test_a_time_filter_without_matches_is_dropped_and_reported(search_now: Callable[..., Row]):
    body = search_now("billing outage in 1999")
    assert titles(body)[0] == "Billing outage"
    assert "time_range_dropped" in rules(body)
    assert body["usage"]["inferredTimeRange"] == {"after": None, "before": None}


def test_a_workspace_with_too_few_results_falls_back_to_the_org(
    own_home: Workspace, services: Services, people: People
):
    text = "A discount of 15 percent needs the head of sales."
    elsewhere = put(services, people.alf, "sales", "Discounts", text)
    question = "who may approve a discount of 15 percent?"
    body = own_home.search(question, **EXPLAINED)
    assert body["results"][0]["documentId"] == elsewhere
    assert body["usage"]["routerScope"] == "org"
    assert "org_fallback" in rules(body)
    strict = own_home.search(question, scope="workspace", **EXPLAINED)
    assert elsewhere not in documents(strict)
    assert strict["usage"]["routerScope"] == "workspace"
    request = {"organizationId": f"org_{people.acme.id}", "scope": "org", "q": question}
    assert ok(people.ann.post("/v1/search", request))["results"][0]["documentId"] == elsewhere


def test_usage_reports_durations_and_their_parts(home: Workspace):
    usage = home.search(QUESTION)["usage"]
    assert set(usage["stages"]) == {"route", "embed", "lexical", "vector", "graph", "rerank", "hydrate"}
    assert all(spent >= 0 for spent in usage["stages"].values())
    assert all(usage["stages"][stage] > 0 for stage in ("vector", "lexical"))
    assert usage["latencyMs"] >= 0
    assert usage["embeddingVersion"] == home.services.embedder.model
    shares = usage["contributionShares"]
    assert set(shares) == {"chunks", "observations", "summaries"}
    assert sum(shares.values()) == pytest.approx(1, abs=0.001)
    assert shares["observations"] > 0, "the incident has a part in it"


def test_good_results_or_a_dropped_time_filter_prevent_the_fallback(
    own_home: Workspace, services: Services, people: People
):
    put(services, people.alf, "sales", "Copy", OUTAGE, occurred_at=datetime(1999, 5, 1, tzinfo=UTC))
    body = own_home.search(QUESTION)
    assert body["usage"]["routerScope"] == "workspace"
    assert "Copy" not in titles(body)
    old = own_home.search("root cause of the billing outage in 1999", **EXPLAINED)
    assert old["usage"]["routerScope"] == "workspace"
    assert "time_range_dropped" in rules(old)
    assert old["results"][0]["workspaceId"] == own_home.id


def test_context_joins_all_results_in_one_text(home: Workspace):
    context = home.search(QUESTION, context=True, topK=2)["context"]
    assert context.startswith("# Billing outage (https://notion.example/outage)\n")
    assert OUTAGE in context


def test_graph_results_are_found_and_explained(subtests: pytest.Subtests, graph_workspace: Workspace):
    for mode, router in (("graph", "graph"), ("auto", "hybrid")):
        with subtests.test(mode=mode):
            body = graph_workspace.search(graph_documents.QUESTION, mode=mode, topK=3, **EXPLAINED)
            assert graph_documents.TEAM in titles(body)
            assert body["rationale"]["routerMode"] == router
            graph = body["rationale"]["graph"]
            entities = {entity["id"]: entity for entity in graph["entities"]}
            assert entities["billing_service"] == {
                "id": "billing_service", "name": "Billing Service", "type": "name", "aliases": [],
                "seed": True,
            }  # fmt: skip
            assert (entities["kestrel"]["type"], entities["kestrel"]["seed"]) == ("team", False)
            owned = {"type": "OWNED_BY", "from": "billing_service", "to": "kestrel", "confidence": 0.9}
            assert graph["edges"][0] == owned
            assert {end for edge in graph["edges"] for end in (edge["from"], edge["to"])} <= set(entities)
            texts = [chunk["text"] for chunk in graph_workspace.contents(*graph["evidenceChunks"])["chunks"]]
            assert len(texts) == len(graph["evidenceChunks"])
            assert any("Kestrel looks after it" in text for text in texts)
            assert body["usage"]["stages"]["graph"] > 0


def test_operators_on_metadata_apply_in_every_mode(
    subtests: pytest.Subtests, services: Services, people: People
):
    for title, metadata in metadata_filters.METADATA.items():
        put(services, people.ann, "docs", title, OUTAGE, metadata=metadata)
    home = workspace_id(people.ann, "docs")
    # tests/sql/search/test_metadata_filter.py has every operator in every kind of search.
    modes = cycle(("neural", "keyword", "hybrid", "graph"))
    for mode, (metadata, expected) in zip(modes, metadata_filters.OPERATORS, strict=False):
        with subtests.test(mode=mode, metadata=metadata):
            request = {"workspaceId": home, "q": QUESTION, "mode": mode, "filters": {"metadata": metadata}}
            assert set(titles(ok(people.ann.post("/v1/search", request)))) == set(expected.split())


def test_the_workspace_may_be_in_the_header_but_not_twice(home: Workspace, shared_people: People):
    def asked(body: Row, workspace: str | None) -> Any:
        headers = {"X-Workspace-Id": workspace} if workspace else {}
        return home.actor.request("POST", "/v1/search", {"q": QUESTION, **body}, **headers)

    assert ok(asked({}, home.id))["results"]
    bare = home.id.removeprefix("ws_").upper()
    assert ok(asked({"workspaceId": home.id}, bare))["results"]
    error_of(asked({"workspaceId": home.id}, f"ws_{NOBODYS}"), 400, "INVALID_ARGUMENT", "workspaceId")
    error_of(asked({}, None), 400, "INVALID_ARGUMENT", "workspaceId")
    error_of(asked({"organizationId": shared_people.acme.id}, None), 400, "INVALID_ARGUMENT", "workspaceId")
    error_of(asked({"scope": "org"}, None), 400, "INVALID_ARGUMENT", "organizationId")


MODERATED = {"rag_llm_api_key": "sk-model", "rag_moderation_model": "omni-moderation"}


def judged(*flags: bool) -> Reply:
    return Reply(json={"id": "m", "model": "omni", "results": [{"flagged": flag} for flag in flags]})


def test_moderation_refuses_questions_and_omits_results(
    home: Workspace, settings: Settings, gateway: StandIn, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-somebody")
    body = {"workspaceId": home.id, "q": QUESTION, "moderation": True, "topK": 2, **EXPLAINED}
    with app_with(v1_search.app, settings, **MODERATED, rag_llm_url=gateway.url) as client:
        gateway.replies(judged(True), judged(False), judged(True, False))
        answer = client.post("/v1/search", json=body, headers=home.actor.headers())
        assert error_of(answer, 400, "INVALID_ARGUMENT")["details"]["reason"] == "content_flagged"
        results = ok(client.post("/v1/search", json=body, headers=home.actor.headers()))
    assert [title != "Billing outage" for title in titles(results)] == [True]
    assert "moderation" in rules(results)
    assert gateway.requests[0].path.endswith("/moderations")
    assert "openai-organization" not in gateway.requests[0].headers


def test_the_graph_omits_results_that_moderation_rejects(
    graph_workspace: Workspace, settings: Settings, gateway: StandIn
):
    """Of two passages of which one is flagged, and the other was never judged."""
    body = {
        "workspaceId": graph_workspace.id, "q": graph_documents.QUESTION, "moderation": True, "mode": "graph",
        "topK": 1, **EXPLAINED,
    }  # fmt: skip
    with app_with(v1_search.app, settings, **MODERATED, rag_llm_url=gateway.url) as client:
        gateway.replies(judged(False), judged(True))
        results = ok(client.post("/v1/search", json=body, headers=graph_workspace.actor.headers()))
    assert results["results"] == []
    graph = results["rationale"]["graph"]
    assert ([entity["id"] for entity in graph["entities"]], graph["edges"]) == (["billing_service"], [])
    assert graph["evidenceChunks"] == []


def test_results_that_cannot_be_moderated_are_omitted(home: Workspace, settings: Settings):
    body = {"workspaceId": home.id, "q": QUESTION, "moderation": True}
    for reply in [Reply(status=500), Reply(json={"results": []}), Reply(drop=True)]:
        with StandIn() as gateway:
            gateway.replies(reply)
            with app_with(v1_search.app, settings, **MODERATED, rag_llm_url=gateway.url) as client:
                answer = client.post("/v1/search", json=body, headers=home.actor.headers())
        assert error_of(answer, 500, "INTERNAL")["details"]["reason"] == "moderation_failed", reply


def test_autoprompt_removes_phrases_and_adds_word_forms(home: Workspace):
    question = "Can you please tell me about the db of the BillingService?"
    on = home.search(question, mode="hybrid", **EXPLAINED)["rationale"]
    off = home.search(question, mode="hybrid", autoprompt=False, **EXPLAINED)["rationale"]
    assert "please" not in on["query"]
    assert "database" in on["words"]
    assert (off["query"], off["words"]) == (question, question)


@pytest.mark.parametrize(
    ("app", "subject", "name"),
    [
        (v1_search.app, {"q": QUESTION}, "results"),
        (v1_similar.app, {"subject": {"kind": "text", "text": QUESTION}}, "matches"),
    ],
)
def test_a_reranker_orders_on_request(
    settings: Settings, home: Workspace, app: FastAPI, subject: Row, name: str
):
    path = f"/v1/{'search' if name == 'results' else 'similar'}"
    with hosted_reranker("lentil soup") as reranker, app_with(app, settings, **reranker) as client:
        request = {"workspaceId": home.id, **subject, **(EXPLAINED if name == "results" else {})}
        plain, reranked = (
            ok(client.post(path, json={**request, "quality": quality}, headers=home.actor.headers()))
            for quality in ({}, {"rerank": True})
        )
    assert (plain[name][0]["title"], reranked[name][0]["title"]) == ("Billing outage", "Canteen")
    assert plain["usage"]["stages"]["rerank"] == 0 < reranked["usage"]["stages"]["rerank"]
    if name == "results":
        assert "decay" in rules(plain)
        assert "no_decay" in rules(reranked)
        assert reranked["rationale"]["graph"] == plain["rationale"]["graph"]


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
