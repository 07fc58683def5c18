"""Straight in SQL as a user, past PostgREST: what the policies say when nothing stands before them."""

import json
from typing import Any

import psycopg

from tests.actors import Actor


def become(connection: psycopg.Connection[Any], actor: Actor, **claims: Any) -> None:
    """Go on as that user until the transaction ends, as PostgREST would."""
    connection.execute("set local role postgres")
    claims = {"sub": actor.id, "role": "authenticated", **claims}
    connection.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps(claims)])
    connection.execute("set local role authenticated")


def run(actor: Actor, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement with named parameters, committed."""
    with psycopg.connect(actor.stack.database_url()) as connection:
        become(connection, actor)
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []
