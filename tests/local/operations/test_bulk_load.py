"""Bulk load: the same rows as ingestion by the API's functions, and a killed load that leaves nothing."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from local import access_tokens
from local.errors import CommandError
from local.operations.bulk_load import load
from local.stack import Stack
from shared.access.jwt_verifier import third_party_user_id
from shared.ingestion.synchronous_ingestion import NewDocument, ingest_many
from shared.services import Services
from shared.types import Principal
from tests.local.command_line import run_local
from tests.stand_in_embedders import HashEmbedder

USER, ORG = "ines@halden.example", "00000000-0000-4000-8000-00000000000a"
COLLECTION = "loaded"
TABLES = ("chunks", "document_terms", "facets", "title_entities", "mentions", "relations", "jobs")
# Rows without ids and times, which differ from load to load.
ROWS = """
select documents.external_id, to_jsonb(stored) - array['id', 'document_id', 'collection_id', 'created_at',
  'updated_at', 'due_at', 'class', 'segment', 'number']
from rag.{0} as stored join rag.documents on documents.org_id = stored.org_id and documents.id = stored.{1}
"""
EVENTS = "select event, owner_id, count(*) from rag.deliveries group by 1, 2"
SCHEMA = """
select indexdef from pg_indexes where schemaname = 'rag'
union all
select format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
from pg_constraint where connamespace = 'rag'::regnamespace and contype <> 'n'
"""


@pytest.fixture
def database(stack: Stack) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        models = "update rag.settings set other_embedding_models = %s"
        before = connection.execute("select other_embedding_models from rag.settings").fetchone()
        connection.execute(models, [[HashEmbedder.model]])
        connection.execute(
            "insert into rag.webhooks (org_id, events) values (%s, %s)",
            [ORG, ["document.processing_completed"]],
        )
        yield connection
        connection.execute(models, before)
        connection.execute("delete from rag.webhooks")
        empty(connection)


def empty(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "truncate rag.collections, rag.document_terms, rag.term_segments, rag.term_blocks, "
        "rag.deliveries cascade"
    )


def documents(count: int = 600) -> list[NewDocument]:
    """Several calls of a load, with every kind of row."""
    return [
        NewDocument(
            f"Incident {number}: the Marram gateway",
            f"The Marram gateway is owned by Ines Okafor. See INC-{number}. " * (number % 40 + 1),
            external_id=f"notes/{number}.md",
            private=number % 7 == 0,
            author="Ines Okafor",
            metadata={"number": number, "lang": "de" if number % 3 else "en"},
        )
        for number in range(count)
    ]


def claims(stack: Stack) -> dict[str, str]:
    return {"sub": stack.user_id(USER), "role": "authenticated"}


def rows(connection: psycopg.Connection[Any]) -> dict[str, list[str]]:
    queries = {table: ROWS.format(table, "document_id") for table in TABLES}
    queries |= {"documents": ROWS.format("documents", "id"), "deliveries": EVENTS}
    return {name: sorted(map(str, connection.execute(query.encode()))) for name, query in queries.items()}


def schema(connection: psycopg.Connection[Any]) -> list[str]:
    return sorted(row[0] for row in connection.execute(SCHEMA))


@pytest.mark.long
def test_a_killed_load_is_repeated_and_gives_the_rows_of_ingestion(
    stack: Stack, services: Services, database: psycopg.Connection[Any]
):
    principal = Principal(stack.user_id(USER), stack.token(USER))
    ingest_many(services.database, HashEmbedder(), principal, COLLECTION, documents())
    expected, schema_before = rows(database), schema(database)
    assert all(expected.values()), {name for name, rows in expected.items() if not rows}
    empty(database)

    with psycopg.connect(stack.database_url()) as connection:

        def killed() -> Iterator[NewDocument]:
            yield from documents(1500)
            # The calls of the first 1,000 or so have stored their documents.
            database.execute("select pg_terminate_backend(%s)", [connection.info.backend_pid])

        with pytest.raises(psycopg.OperationalError):
            load(connection, HashEmbedder(), claims(stack), COLLECTION, killed())
    assert not any(rows(database).values())
    assert schema(database) == schema_before

    with psycopg.connect(stack.database_url()) as connection:
        assert load(connection, HashEmbedder(), claims(stack), COLLECTION, documents()) == 600
        with pytest.raises(CommandError, match="has chunks already"):
            load(connection, HashEmbedder(), claims(stack), "other", documents())
    assert rows(database) == expected
    assert schema(database) == schema_before


def test_a_third_party_user_loads_by_id(stack: Stack, database: psycopg.Connection[Any], tmp_path: Path):
    file, user = tmp_path / "documents.jsonl", third_party_user_id("https://app.clerk.example", "user_2abc")
    file.write_text(json.dumps({"title": "A", "text": "b", "private": True}))
    issuers = json.dumps({"https://app.clerk.example": None})
    change = "update rag.settings set issuer = %s, third_party_issuers = %s::jsonb"
    database.execute(change, [access_tokens.issuer(stack.url), issuers])
    try:
        refused = run_local(stack.folder, "bulk-load", file, "--user", user)
        assert "You belong to no org" in refused.stderr or "no such org" in refused.stderr, refused.stderr
        database.execute("insert into rag.members (org_id, user_id) values (%s, %s)", [ORG, user])
        loaded = run_local(stack.folder, "bulk-load", file, "--user", user, "--collection", COLLECTION)
        assert loaded.stdout == "1 documents\n", loaded.stderr
        owners = database.execute("select owner_id::text, created_by::text from rag.documents").fetchall()
        assert owners == [(user, user)]
    finally:
        database.execute("delete from rag.members where user_id = %s", [user])
        database.execute(change, [None, "{}"])


def test_the_command_reads_a_folder_or_json_lines(
    stack: Stack, database: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # A time without an offset is in UTC, and not in the zone of the session.
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")

    def command(path: Path) -> str:
        result = run_local(stack.folder, "bulk-load", path, "--user", USER, "--collection", COLLECTION)
        return result.stdout + result.stderr

    lines = tmp_path / "documents.jsonl"
    for line, refusal in (
        ("[]", "line 1: it is not a JSON object"),
        ('{"title": "A"}', "line 1: text: Field required"),
        ('{"title": "A", "text": "b", "body": "c"}', "line 1: unknown key body"),
        ('{"title": "A", "text": " "}', "document 1: A document needs a title and some text"),
        ("\n".join(['{"title": "A", "text": "b", "external_id": "a"}'] * 2), "document 2 has the same"),
    ):
        lines.write_text(line)
        assert refusal in command(lines)
    lines.write_text(json.dumps({"title": "A", "text": "b", "occurred_at": "2026-05-01T09:00:00"}))
    assert command(lines) == "1 documents\n"
    times = database.execute("select occurred_at from rag.chunks").fetchall()
    assert times == [(datetime(2026, 5, 1, 9, tzinfo=UTC),)]
    empty(database)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "gateway.md").write_text("The gateway of Marram.")
    issuer = "update rag.settings set issuer = %s"
    database.execute(issuer, [access_tokens.issuer(stack.url)])
    try:
        assert command(folder) == "1 documents\n"
    finally:
        database.execute(issuer, [None])
    assert "has chunks already" in command(folder)
    rows = database.execute("select external_id, title, content from rag.documents").fetchall()
    assert rows == [("gateway.md", "gateway", "The gateway of Marram.")]
