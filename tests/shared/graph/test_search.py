"""Searches with the graph: real database, real model, documents whose graph is known."""

from dataclasses import replace

import pytest

from shared import pipeline
from shared.config import Settings
from shared.services import Services
from shared.types import Filters, Graph, Mode, Query, SearchResult
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


@pytest.mark.parametrize("mode", LEGS)
def test_without_the_graph_the_connected_document_is_not_found(
    services: Services, graph_people: People, mode: Mode
):
    result = pipeline.search(services, graph_people.ann.principal, replace(GRAPH_QUERY, mode=mode))
    assert TEAM not in titles(result)
    assert (result.graph, result.graph_ms) == (None, 0)
    assert not any(match.graph_sourced for match in result.matches)


def test_without_known_names_the_graph_is_empty_and_the_best_hit_stays(
    services: Services, graph_people: People
):
    asked = Query("what do people read in the evening?", top_k=5)
    hybrid = pipeline.search(services, graph_people.ann.principal, replace(asked, mode=Mode.HYBRID))
    result = pipeline.search(services, graph_people.ann.principal, replace(asked, mode=Mode.GRAPH))
    assert result.matches[0].chunk_id == hybrid.matches[0].chunk_id
    assert result.graph == Graph()


def test_a_reranker_also_orders_graph_results(settings: Settings, graph_people: People):
    query = replace(GRAPH_QUERY, mode=Mode.GRAPH, rerank=True, top_k=8)
    with hosted_reranker(f"{TEAM}\n") as reranker, services_with(settings, **reranker) as services:
        result = pipeline.search(services, graph_people.ann.principal, query)
    assert result.reranked_by == MODEL
    assert titles(result)[0] == TEAM
    assert result.graph
    assert result.graph.is_seeded


def test_neighbours_and_a_half_life_work_with_the_graph(services: Services, people: People):
    put_all(services, people.ann)
    text = [NamedText(f"The Ledger has a page {number}.", {"Ledger": "work"}) for number in range(5)]
    put(services, people.ann, "Pages", *text)
    query = Query("page 2 of the Ledger", 1, mode=Mode.GRAPH, neighbours=1, half_life_days=30.0)
    (match,) = pipeline.search(services, people.ann.principal, query).matches
    assert match.title == "Pages"
    assert len(match.text.splitlines()) == 3


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


def test_filters_apply_to_graph_results(services: Services, people: People):
    put_all(services, people.ann)
    put(services, people.ann, TEAM, NamedText("It is a bird."), source_type="profile")
    query = replace(GRAPH_QUERY, mode=Mode.GRAPH, top_k=10, filters=Filters(source_types=("profile",)))
    result = pipeline.search(services, people.ann.principal, query)
    assert {match.source_type for match in result.matches} <= {"profile"}
