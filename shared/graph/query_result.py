"""The graph as the database tells it, and as much of it as some chunks tell."""

from collections.abc import Set
from dataclasses import replace
from typing import Any

from shared.types import Edge, Entity, Graph


def graph_of(row: dict[str, Any]) -> Graph:
    return Graph(
        tuple(map(_entity, row["entities"])),
        tuple(map(_edge, row["edges"])),
        tuple(row["evidence"]),
        row.get("complete", True),
    )


def _entity(row: dict[str, Any]) -> Entity:
    return Entity(
        row["id"],
        row["name"],
        row["kind"],
        tuple(row["aliases"]),
        row["seed"],
        row["weight"],
        row["org_id"],
    )


def _edge(row: dict[str, Any]) -> Edge:
    return Edge(
        row["type"],
        row["from"],
        row["to"],
        row["confidence"],
        tuple(row["evidence"]),
        row["org_id"],
    )


def evidence_of(graph: Graph) -> set[str]:
    """The ids of all chunks that say anything of it."""
    return {*graph.evidence, *(chunk for edge in graph.edges for chunk in edge.evidence)}


def told_by(graph: Graph, chunk_ids: Set[str]) -> Graph:
    """What these chunks say of it: the edges for which one of them is evidence, their ends, and what the
    question names, without other names."""
    edges = tuple(
        replace(edge, evidence=evidence)
        for edge in graph.edges
        if (evidence := tuple(chunk for chunk in edge.evidence if chunk in chunk_ids))
    )
    ends = {(edge.org_id, end) for edge in edges for end in (edge.source, edge.target)}
    entities = tuple(
        replace(entity, aliases=())
        for entity in graph.entities
        if entity.is_seed or (entity.org_id, entity.id) in ends
    )
    evidence = tuple(chunk for chunk in graph.evidence if chunk in chunk_ids)
    return Graph(entities, edges, evidence, graph.complete)
