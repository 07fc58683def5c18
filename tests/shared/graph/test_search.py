"""Searches with the graph: real database, real model, documents whose graph is known."""

from dataclasses import replace

import pytest

from shared import pipeline
from shared.config import Settings
from shared.services import Services
from shared.types import Mode, Query, SearchResult
from tests.conftest import People
from tests.functions.app_server import services_with
from tests.graph_documents import QUESTION, TEAM, NamedText, put, put_all
from tests.hosted_reranker import MODEL, hosted_reranker

LEGS = [Mode.SEMANTIC, Mode.KEYWORD, Mode.HYBRID, Mode.HIERARCHICAL]
GRAPH_QUERY = Query(QUESTION, top_k=3)


def titles(result: SearchResult) -> list[str]:
    return [match.title for match in result.matches]


@pytest.fixture(scope="module")
def graph_people(services: Services, shared_people: People) -> People:
    """People of whom ann's org knows this; for tests that only read."""
    put_all(services, shared_people.ann)
    return shared_people


@pytest.mark.parametrize("query", [replace(GRAPH_QUERY, mode=mode, graph=True) for mode in LEGS] + [
    replace(GRAPH_QUERY, mode=Mode.GRAPH), replace(GRAPH_QUERY, mode=Mode.GRAPH, graph=True)
], ids=lambda query: f"{query.mode}{'+' if query.graph else ''}")  # fmt: skip
def test_a_connected_document_is_found_with_its_explanation(
    services: Services, graph_people: People, query: Query
):
    result = pipeline.search(services, graph_people.ann.principal, query)
    brought = {match.title for match in result.matches if match.graph_sourced}
    legs = replace(query, mode=Mode.HYBRID if query.mode is Mode.GRAPH else query.mode, graph=False)
    assert brought == set(titles(result)) - set(
        titles(pipeline.search(services, graph_people.ann.principal, legs))
    )
    # By meaning alone everything is a little like the question: the graph has less to add.
    assert brought >= {"Billing Service"} | ({TEAM} if query.mode is not Mode.SEMANTIC else set())
    scores = [match.score for match in result.matches]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert result.graph
    edges = {(edge.source, edge.type, edge.target): edge for edge in result.graph.edges}
    owned = edges["billing_service", "OWNED_BY", "kestrel"]
    assert owned.confidence == pytest.approx(0.9)
    assert set(owned.evidence) <= set(result.graph.evidence)
    entities = {entity.id: entity for entity in result.graph.entities}
    assert (entities["kestrel"].name, entities["kestrel"].kind) == (TEAM, "team")
    assert [result.id for result in entities.values() if result.is_seed] == ["billing_service"]
    assert {end for edge in result.graph.edges for end in (edge.source, edge.target)} <= set(entities)
    assert (result.graph_ms > 0, result.graph.complete) == (True, True)


def test_a_reranker_also_orders_graph_results(settings: Settings, graph_people: People):
    query = replace(GRAPH_QUERY, mode=Mode.GRAPH, rerank=True, top_k=8)
    with hosted_reranker(f"{TEAM}\n") as reranker, services_with(settings, **reranker) as services:
        result = pipeline.search(services, graph_people.ann.principal, query)
    assert result.reranked_by == MODEL
    assert titles(result)[0] == TEAM
    assert result.graph
    assert result.graph.is_seeded


def test_a_name_alone_is_searched_by_keyword_with_its_graph(services: Services, people: People):
    ticket = NamedText(
        "INC-4821 was caused by Ledger.",
        {"INC-4821": "identifier", "Ledger": "service"},
        [("INC-4821", "CAUSED_BY", "Ledger")],
    )
    put(services, people.ann, "Duplicate invoices", ticket)
    put(services, people.ann, "Ledger", NamedText("It keeps what was paid."))
    result = pipeline.search(services, people.ann.principal, Query("INC-4821", mode=Mode.GRAPH))
    assert titles(result) == ["Duplicate invoices", "Ledger"]
    assert result.considered == 0
    assert result.graph
    assert [edge.type for edge in result.graph.edges] == ["CAUSED_BY"]
