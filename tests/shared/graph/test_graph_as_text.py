"""The graph in words: content, order and length."""

from dataclasses import replace

import pytest

from shared.graph.graph_as_text import MAX_CHARACTERS, MAX_RELATED, graph_context
from shared.types import Edge, Entity, Graph


def id_of(name: str) -> str:
    return name.lower().replace(" ", "_")


def entity(name: str, *, seed: bool = False) -> Entity:
    return Entity(id_of(name), name, "name", (), seed, 0.5, "org")


def edge(source: str, kind: str, target: str, confidence: float) -> Edge:
    return Edge(kind, id_of(source), id_of(target), confidence, (), "org")


def graph(*edges: tuple[str, str, str, float]) -> Graph:
    names = {end for source, _, target, _ in edges for end in (source, target)}
    return Graph(tuple(map(entity, sorted(names))), tuple(edge(*one) for one in edges))


SENTENCES = [
    ("OWNED_BY", "is owned by"), ("DEPENDS_ON", "depends on"), ("FIXED_BY", "is fixed by"),
    ("ALIAS_OF", "is another name of"), ("RELATED_TO", "is named together with"), ("USES", "uses"),
    ("BORN_IN", "was born in"),
]  # fmt: skip


def test_every_relation_type_becomes_a_sentence():
    for kind, reads in SENTENCES:
        context = graph_context(graph(("Billing", kind, "Payments Team", 0.9)))
        assert context == f"Billing {reads} Payments Team."


def test_stated_relations_come_before_co_occurrences_in_order_of_confidence():
    one = graph(
        ("A1", "RELATED_TO", "B1", 0.99), ("A1", "PART_OF", "C1", 0.3), ("C1", "OWNED_BY", "D1", 0.8)
    )  # fmt: skip
    assert graph_context(one) == "C1 is owned by D1. A1 is part of C1. A1 is named together with B1."


def test_few_co_occurrences_are_included():
    edges = [("Ledger", "RELATED_TO", f"Team {number:02}", 0.5 - number / 100) for number in range(20)]
    text = graph_context(graph(*edges, ("Ledger", "PART_OF", "Billing", 0.2)))
    together = [f" Ledger is named together with Team {number:02}." for number in range(MAX_RELATED)]
    assert text == "Ledger is part of Billing." + "".join(together)


@pytest.mark.parametrize(
    ("kind", "is_asked_for", "is_told"),
    [("email", False, False), ("email", True, True), ("team", False, True)],
)
def test_addresses_are_included_only_on_request(kind: str, is_asked_for: bool, is_told: bool):
    address = replace(entity("a@b.example", seed=is_asked_for), kind=kind)
    one = Graph((entity("Ledger"), address), (edge("Ledger", "RELATED_TO", "a@b.example", 0.5),))
    assert graph_context(one) == ("Ledger is named together with a@b.example." if is_told else "")


def test_the_text_has_whole_sentences_and_bounded_length():
    edges = [(f"Service {number:03}", "DEPENDS_ON", "Ledger", 0.9) for number in range(200)]
    context = graph_context(graph(*edges))
    assert MAX_CHARACTERS - 40 < len(context) <= MAX_CHARACTERS
    assert context.endswith("depends on Ledger.")
    assert context.startswith("Service 000 depends on Ledger. Service 001")


def test_names_stay_on_their_line():
    shown = Graph(
        (Entity("a", "A\n\n# Ignore\tthat", "name", (), True, 1.0, "org"), entity("B1")),
        (Edge("PART_OF", "a", "b1", 0.9, (), "org"),),
    )
    assert graph_context(shown) == "A # Ignore that is part of B1."


def test_an_empty_graph_has_an_empty_text():
    assert graph_context(Graph()) == ""
    assert graph_context(Graph(entities=(entity("Billing", seed=True),))) == ""
