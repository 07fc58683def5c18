"""Documents whose texts matter, put and searched for in SQL as their people: HTTP is tested elsewhere."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from psycopg.types.json import Jsonb

from tests.actors import MODEL, Actor, World, vector

Row = dict[str, Any]


@cache
def written(seed: int) -> list[float]:
    return vector(seed)


def document(texts: Sequence[str], **fields: Any) -> Row:
    return {
        "title": "A",
        "content": "\n".join(texts),
        "embedding_model": MODEL,
        **fields,
    }


def passages(texts: Sequence[str], vectors: Sequence[Sequence[float]] | None = None) -> list[Row]:
    """A chunk for each text; without vectors, the first ones there are."""
    chunks: list[Row] = []
    start = 0
    for number, text in enumerate(texts):
        embedding = vectors[number] if vectors else written(number)
        span = {"span_start": start, "span_end": start + len(text)}
        chunks.append({"token_count": 1, "embedding": list(embedding), **span})
        start += len(text) + 1
    return chunks


def put(
    world: World,
    actor: Actor,
    *texts: str,
    vectors: Sequence[Sequence[float]] | None = None,
    chunks: list[Row] | None = None,
    **fields: Any,
) -> str:
    """A document with a chunk for each text; its id."""
    ((document_id,),) = world.as_user(
        actor,
        "select document_id::text from public.rag_put_documents(%s, %s, org_id => %s)",
        fields.pop("collection", "default"),
        Jsonb([document(texts, chunks=passages(texts, vectors) if chunks is None else chunks, **fields)]),
        actor.org.id if actor.org else None,
    )
    return str(document_id)


def put_many(world: World, actor: Actor, texts: Sequence[str], **fields: Any) -> None:
    """A document of one chunk for each text, all in one call."""
    shared = {"title": "A", "embedding_model": MODEL, **fields}
    documents = [{**shared, "content": text, "chunks": passages([text])} for text in texts]
    world.as_user(actor, "select public.rag_put_documents('default', %s)", Jsonb(documents))


def add_to_index(world: World) -> None:
    """Add all chunks to the HNSW index, as the worker does where an org has many."""
    world.sql("update rag.chunks set in_hnsw = true")


def delete(world: World, actor: Actor, document_id: str) -> bool:
    return bool(world.as_user(actor, "select public.rag_delete_document(%s)", document_id)[0][0])


def is_json(value: object) -> bool:
    """Vectors are written as JSON too; lists of texts are arrays."""
    if isinstance(value, list):
        return any(not isinstance(item, str | None) for item in value)
    return isinstance(value, dict)


def call(world: World, actor: Actor, function: str, claims: Row | None = None, **arguments: Any) -> list[Row]:
    """The rows of an exposed function, by the names of its arguments, for a token with those claims."""
    inputs = ", ".join(f"{name} => %s" for name in arguments)
    values = [json.dumps(value) if is_json(value) else value for value in arguments.values()]
    rows = world.as_user(
        actor, f"select to_jsonb(found) from public.{function}({inputs}) as found", *values, **(claims or {})
    )
    return [row for (row,) in rows]


def untimed(rows: list[Row]) -> list[Row]:
    """The rows without how long they took, which is never the same twice."""
    return [{**row, "vector_ms": None, "lexical_ms": None} for row in rows]


def model_of(filters: Row | None) -> Row:
    return {"model": MODEL, **(filters or {})}


def search(
    world: World, actor: Actor, text: str | None = None, *, filters: Row | None = None, **arguments: Any
) -> list[Row]:
    """rag_search by word unless it is given a vector or another mode."""
    named = {"mode": "keyword", "query_text": text, "filters": model_of(filters), **arguments}
    return call(world, actor, "rag_search", **named)


def match(world: World, actor: Actor, needle: Sequence[float], top_k: int = 100, **filters: Any) -> list[Row]:
    return call(world, actor, "rag_match", query_vector=list(needle), top_k=top_k, filters=model_of(filters))


def similar(world: World, actor: Actor, *, filters: Row | None = None, **arguments: Any) -> list[Row]:
    return call(world, actor, "rag_similar", filters=model_of(filters), **arguments)


@contextmanager
def deployed_with(world: World, **settings: Any) -> Iterator[None]:
    """With these settings of the deployment, which all users share, and then as before."""

    def write(values: Sequence[Any]) -> None:
        adapted = [Jsonb(value) if isinstance(value, dict) else value for value in values]
        world.sql(f"update rag.settings set ({names}) = row({places})", *adapted)

    names = ", ".join(settings)
    places = ", ".join(["%s"] * len(settings))
    before = world.sql(f"select {names} from rag.settings")[0]
    write(list(settings.values()))
    try:
        yield
    finally:
        write(before)
