"""Documents put with what their chunks name and relate, and the graph of it, in SQL as their people."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.actors import Actor, World
from tests.sql import passages
from tests.sql.passages import Row, call, model_of, written


@dataclass(frozen=True)
class NamedChunk:
    """A chunk: its text, the names in it, and (subject, type, object), perhaps with a confidence."""

    text: str
    names: Sequence[Any] | None = ()
    relations: Sequence[Any] = ()

    def keys(self) -> Row:
        """What the chunk's JSON has besides its text."""
        if self.names is None:
            return {}
        return {
            "names": [named(one) for one in self.names],
            "relations": [stated(one) for one in self.relations],
        }


def named(name: Any) -> Any:
    if not isinstance(name, str):
        return name
    return {"name": name, "kind": "name", "surfaces": [name], "weight": 0.8}


def stated(relation: Any) -> Any:
    if not isinstance(relation, tuple):
        return relation
    subject, kind, object_, *confidence = relation
    return {"subject": subject, "type": kind, "object": object_, "confidence": (confidence or [0.9])[0]}


def put(
    world: World,
    actor: Actor,
    title: str,
    *text: NamedChunk | str,
    vectors: Sequence[Sequence[float]] | None = None,
    **fields: Any,
) -> str:
    """A document with that title and these chunks; its id. A text alone names nothing."""
    chunks = [one if isinstance(one, NamedChunk) else NamedChunk(one) for one in text]
    texts = [one.text for one in chunks]
    rows = passages.passages(texts, vectors)
    for row, one in zip(rows, chunks, strict=True):
        row.update(one.keys())
    return passages.put(world, actor, *texts, chunks=rows, title=title, **fields)


def chunk_ids(world: World, document_id: str) -> list[str]:
    rows = world.sql("select id::text from rag.chunks where document_id = %s order by ordinal", document_id)
    return [chunk_id for (chunk_id,) in rows]


def subjects(world: World, document_id: str) -> dict[str, float]:
    statement = "select entity, weight from rag.title_entities where document_id = %s"
    return dict(world.sql(statement, document_id))


def graph(world: World, actor: Actor, question: str, *, filters: Row | None = None, **arguments: Any) -> Row:
    """rag_graph_search, in its own mode unless told otherwise, near to nothing that is written."""
    named_arguments = {
        "query_text": question,
        "query_vector": written(999),
        "filters": model_of(filters),
        **arguments,
    }
    (row,) = call(world, actor, "rag_graph_search", **named_arguments)
    return row


def untimed(row: Row) -> Row:
    """Without how long it took, which is never the same twice."""
    return {**row, "graph_ms": None, "matches": passages.untimed(row["matches"])}


def link(world: World, actor: Actor, question: str, **filters: Any) -> dict[str, float]:
    """The entities that a question is taken to name, and how surely."""
    rows = world.as_user(
        actor,
        "select entity, weight from unnest(rag.link_entities(%s, rag.resolve_filters(%s::jsonb)))",
        question,
        json.dumps(model_of(filters)),
    )
    return dict(rows)


def ids(row: Row) -> list[str]:
    return [entity["id"] for entity in row["entities"]]


def edges(row: Row) -> set[tuple[str, str, str]]:
    return {(edge["from"], edge["type"], edge["to"]) for edge in row["edges"]}


def contents(rows: Iterable[Row]) -> list[str]:
    return [row["content"] for row in rows]
