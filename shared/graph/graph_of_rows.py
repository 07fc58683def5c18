"""Graph of a search's rows, and its part that some chunks support."""

from collections.abc import Set
from dataclasses import replace
from typing import Any

from shared.types import Edge, Entity, Graph


def graph_of(row: dict[str, Any]) -> Graph:
    entities = tuple(
        Entity(item["id"], item["name"], item["kind"], tuple(item["aliases"]), item["seed"], item["weight"],
               item["org_id"])
        for item in row["entities"]
    )  # fmt: skip
    edges = tuple(
        Edge(
            item["type"],
            item["from"],
            item["to"],
            item["confidence"],
            tuple(item["evidence"]),
            item["org_id"],
        )
        for item in row["edges"]
    )
    return Graph(entities, edges, tuple(row["evidence"]), row.get("complete", True))


def evidence_chunk_ids(graph: Graph) -> set[str]:
    return {*graph.evidence, *(chunk for edge in graph.edges for chunk in edge.evidence)}


def restrict_to_chunks(graph: Graph, chunk_ids: Set[str]) -> Graph:
    """The edges for which one of the chunks is evidence, their entities, and the entities of the query, all
    without aliases."""
    edges = tuple(
        replace(edge, evidence=evidence)
        for edge in graph.edges
        if (evidence := tuple(chunk for chunk in edge.evidence if chunk in chunk_ids))
    )
    connected = {(edge.org_id, end) for edge in edges for end in (edge.source, edge.target)}
    entities = tuple(
        replace(entity, aliases=())
        for entity in graph.entities
        if entity.is_seed or (entity.org_id, entity.id) in connected
    )
    evidence = tuple(chunk for chunk in graph.evidence if chunk in chunk_ids)
    return Graph(entities, edges, evidence, graph.complete)
