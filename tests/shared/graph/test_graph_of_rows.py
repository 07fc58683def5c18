"""The graph as the database tells it, and as much of it as some chunks tell."""

from shared.graph.graph_of_rows import evidence_chunk_ids, graph_of, restrict_to_chunks
from shared.types import Edge, Entity

SERVICE = {"kind": "service", "aliases": ["BillingService"], "seed": True, "weight": 1, "org_id": "org"}
TEAM = {"kind": "team", "aliases": ["Pay"], "seed": False, "weight": 0.5, "org_id": "org"}
OWNED = {"type": "OWNED_BY", "from": "billing", "to": "payments_team", "org_id": "org"}
NEAR = {"type": "RELATED_TO", "from": "billing", "to": "ledger", "org_id": "org"}
ROW = {
    "entities": [
        {"id": "billing", "name": "Billing", **SERVICE},
        {"id": "payments_team", "name": "Payments Team", **TEAM},
        {"id": "ledger", "name": "Ledger", **TEAM},
    ],
    "edges": [
        {**OWNED, "confidence": 0.9, "evidence": ["c1", "c2"]},
        {**NEAR, "confidence": 0.2, "evidence": ["c3"]},
    ],
    "evidence": ["c1", "c2", "c3"],
    "complete": False,
}


def test_entities_edges_and_evidence_are_read():
    graph = graph_of(ROW)
    assert graph.entities[0] == Entity("billing", "Billing", "service", ("BillingService",), True, 1, "org")
    assert graph.edges[0] == Edge("OWNED_BY", "billing", "payments_team", 0.9, ("c1", "c2"), "org")
    assert (graph.is_seeded, graph.complete) == (True, False)
    assert evidence_chunk_ids(graph) == {"c1", "c2", "c3"}


def test_facts_of_other_chunks_and_their_names_are_left_out():
    graph = restrict_to_chunks(graph_of(ROW), {"c2", "c9"})
    assert [(edge.type, edge.evidence) for edge in graph.edges] == [("OWNED_BY", ("c2",))]
    assert [entity.id for entity in graph.entities] == ["billing", "payments_team"]
    assert {entity.aliases for entity in graph.entities} == {()}
    assert (graph.evidence, graph.complete) == (("c2",), False)


def test_without_chunks_only_the_question_s_entities_remain():
    graph = restrict_to_chunks(graph_of(ROW), set())
    assert ([entity.id for entity in graph.entities], graph.edges, graph.evidence) == (["billing"], (), ())
