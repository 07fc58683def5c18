"""Extractions in SQL, as the worker claims and processes them."""

import json
from typing import Any

import psycopg
import pytest

from tests.actors import Actor, World

Row = dict[str, Any]


CLAIM = "select * from public.rag_claim_jobs('extraction', %s, %s)"
TEXTS = ("Ann Lee wrote this.", "Bob Orr read it.", "Cyd Fox did not.")


def claim(world: World, max_items: int = 10, *, seconds: int = 60) -> list[Row]:
    names = ("job_id", "org_id", "document_id", "user_id", "as_admin", "lease", "attempts")
    rows = world.as_role("rag_worker", CLAIM, max_items, seconds)
    return [dict(zip(names, map(str, row), strict=True)) for row in rows]


def call_with_lease(
    world: World, actor: Actor, row: Row, statement: str, *parameters: Any
) -> list[tuple[Any, ...]]:
    """As the worker does in the name of that user, with the lease."""
    scopes = ["documents:read", "documents:write"]
    claims = {"org": row["org_id"], "scopes": scopes, "lease": row["lease"]}
    return world.as_user(actor, statement, *parameters, rag=claims)


def keep(world: World, actor: Actor, row: Row, first: int, chunks: list[Row]) -> bool:
    statement = "select public.rag_store_extraction(%s, %s)"
    ((is_more,),) = call_with_lease(world, actor, row, statement, first, json.dumps(chunks))
    return bool(is_more)


def fail(world: World, actor: Actor, row: Row, *arguments: Any) -> None:
    places = ", ".join(["%s"] * len(arguments))
    call_with_lease(world, actor, row, f"select public.rag_fail_job({places})", *arguments)


def names(*texts: str) -> list[Row]:
    return [{"names": [{"name": text}]} for text in texts]


def due(world: World, *documents: str, ago: str = "0") -> None:
    world.sql(
        "update rag.jobs set due_at = now() - %s::interval where id = any (%s::uuid[])", ago, list(documents),
    )  # fmt: skip


def lost(world: World, actor: Actor, row: Row) -> bool:
    """Whether that lease is useless to its holder."""
    refused = 0
    for act in (
        lambda: call_with_lease(world, actor, row, "select * from public.rag_open_extraction()"),
        lambda: keep(world, actor, row, 0, names("Eve Root")),
        lambda: fail(world, actor, row, "extraction_failed", "x", 9),
    ):
        with pytest.raises(psycopg.Error) as lost:
            act()
        refused += lost.value.sqlstate == "PT409"
    return refused == 3


def collection(world: World, actor: Actor, name: str, **config: Any) -> str:
    statement = "select id::text from public.rag_create_collection(%s, config => %s)"
    ((made,),) = world.as_user(actor, statement, name, json.dumps(config))
    return str(made)
