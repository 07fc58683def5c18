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

GRAPH_QUERY = Query(QUESTION, top_k=3)


def titles(result: SearchResult) -> list[str]:
    return [match.title for match in result.matches]


@pytest.fixture(scope="module")
def graph_people(services: Services, shared_people: People) -> People:
    """People of whom ann's org knows this; for tests that only read."""
    put_all(services, shared_people.ann)
    return shared_people


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
