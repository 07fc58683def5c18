"""Erasure of an org and of a user: which rows go, which stay, and the report."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from local.errors import CommandError
from local.operations.org_data.database import connected, require_session
from local.operations.org_data.erase_command import NO_USER, erase
from local.stack import Stack
from shared.config import Settings
from tests.actors import Actor, World, hit_arguments, key_arguments, vector, webhook_arguments
from tests.conftest import People
from tests.isolation.test_idempotency_keys import store_answer
from tests.local.command_line import run_local
from tests.local.operations.org_data.test_archive import victim_org
from tests.snapshot_client import snapshot_client
from tests.sql.conversations.test_chat_sessions import save_session
from tests.sql.operations.test_api_metrics import measure
from tests.sql.operations.test_audit_events import note
from verify.actors import Actors
from verify.victim_objects import record_of

OF_USER = {
    "api_keys", "api_metrics", "audit_events", "chunks", "collections", "deliveries",
    "document_terms", "documents",
    "jobs", "members", "messages", "org_calls", "originals",
    "rate_limits", "request_counts", "request_records", "sessions",
    "sources", "stored_responses",
}  # fmt: skip


def tables_with(world: World, id: str) -> set[str]:
    """The tables of schema rag in which a row contains the id, in whichever column."""
    tables = world.sql("select tablename from pg_tables where schemaname = 'rag'")
    return {
        table
        for (table,) in tables
        if world.sql(f"select 1 from rag.{table} as present where present::text like %s limit 1", f"%{id}%")
    }


@pytest.fixture
def ann(people: People, world: World) -> Actor:
    """With rows in each table that names a user."""
    ann, org = people.ann, people.acme.id
    assert people.ada.rpc("rag_create_webhook", webhook_arguments(org_id=org)).status_code == 200
    ann.put([vector(1)], collection="shared")
    ann.put([vector(2)], collection="shared", private=True)
    for home in ({"name": "uploads"}, {"name": "own", "private": True}):
        (collection,) = ann.rpc("rag_create_collection", {"org_id": org, **home}).json()
        body = {"collection_id": collection["id"], "content": f"The kiln of {home['name']} is hot."}
        assert ann.request("POST", "/api/v1/documents/text", body).status_code == 202
    for arguments in (hit_arguments(), hit_arguments(bucket="api", function="chat")):
        assert ann.rpc("rag_check_rate_limit", arguments).status_code == 200
    assert ann.rpc("rag_create_key", key_arguments()).status_code == 200
    save_session(ann)
    measure(ann, "rag_query_requests_total", 1, "success")
    note(ann)
    store_answer(ann, org)
    world.sql("update rag.orgs set record_days = 30 where id = %s", org)
    assert ann.rpc("rag_record_request", {"record": record_of(org, "What is a kiln?")}).json() is True
    # Ann was an admin.
    world.sql(
        "insert into rag.sources (org_id, collection_id, user_id, kind, address, interval_seconds, "
        "max_items) "
        "select org_id, id, %s, 'website', 'https://docs.example/', 86400, 10 "
        "from rag.collections where org_id = %s and name = 'uploads'",
        ann.id, org,
    )  # fmt: skip
    return ann


def erased(stack: Stack, *arguments: str) -> dict[str, Any]:
    """The report of the command."""
    result = run_local(stack.folder, "erase", *arguments)
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_an_erased_org_leaves_no_row_and_no_other_row_changes(stack: Stack):
    with victim_org(stack) as other, victim_org(stack) as org:
        with psycopg.connect(stack.database_url()) as connection:
            states = rows_of_org(other)
            report = erase(connection, "org", org.org_id)
            connection.commit()
        assert {"documents", "chunks", "messages", "api_keys", "request_records", "audit_events"} <= set(
            report.removed
        )
        assert report.objects_in_storage > 0
        assert org.sql("select id from rag.documents where org_id = %s", org.org_id) == []
        assert rows_of_org(other) == states
        again = erased(stack, "--org", org.org_id)
        assert again["removed"] == {"object_removals": report.objects_in_storage}


TABLES_OF_ORG = (
    "documents", "chunks", "document_terms", "messages", "api_keys", "members", "audit_events",
)  # fmt: skip


def rows_of_org(actors: Actors) -> list[tuple[object, ...]]:
    return [
        row
        for table in TABLES_OF_ORG
        for row in actors.sql(f"select * from rag.{table} where org_id = %s order by 1, 2, 3", actors.org_id)
    ]


def test_no_row_contains_the_id_of_an_erased_user(stack: Stack, ann: Actor, world: World):
    assert tables_with(world, ann.id) >= OF_USER
    shared = "select id, content from rag.documents where owner_id is null order by id"
    before = world.sql(shared)
    world.sql("delete from auth.users where id = %s", ann.id)
    report = erased(stack, "--user", ann.id)
    assert tables_with(world, ann.id) == set()
    assert world.sql(shared) == before
    assert {"documents", "chunks", "api_metrics"} <= set(report["removed"])
    assert {"documents", "audit_events", "sources"} <= set(report["anonymized"])
    again = erased(stack, "--user", ann.id)
    assert (again["removed"], again["anonymized"]) == ({}, {})


def test_no_row_contains_the_id_of_an_erased_org(stack: Stack, ann: Actor, people: People, world: World):
    assert tables_with(world, people.acme.id)
    erased(stack, "--org", people.acme.id)
    assert tables_with(world, people.acme.id) == set()


def test_the_report_counts_the_snapshots_that_stay(
    stack: Stack, settings: Settings, people: People, world: World, tmp_path: Path
):
    url = f"file://{tmp_path}/snapshots"
    with snapshot_client(settings, world, url) as snapshots:
        people.ada.put([vector(1)], collection="handbook")
        snapshots.persist(people.ada, "handbook")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    other = str(uuid4())
    assert erased(stack, "--org", other)["files_of_snapshots"] is None
    assert erased(stack, "--org", other, "--snapshots", url)["files_of_snapshots"] == 0
    report = erased(stack, "--org", people.acme.id, "--snapshots", url)
    assert report["files_of_snapshots"] == len(files)


def test_a_role_under_row_security_is_refused(stack: Stack):
    url = stack.database_url("authenticator")
    result = run_local(stack.folder, "erase", "--org", NO_USER, "--database", url)
    assert "row security applies to this role" in result.stderr
    assert "snapshots" not in result.stderr, "the note follows a report"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("host=a,b port=5432,6543", "has the port 6543 of the pooler in transaction mode"),
        ("postgresql://postgres:planted#7f3x", "is not the URL of a database"),
        ("postgresql://postgres:planted-7f3x@db.example:x/postgres", "is not the URL of a database"),
        ("postgresql://postgres:pa@planted-7f3x@db.example/postgres", "is not the URL of a database"),
        ("planted-7f3x", "is not the URL of a database"),
    ],
)
def test_a_url_is_refused_without_its_password(url: str, message: str):
    with pytest.raises(CommandError, match=message) as raised, connected(url):
        pass
    assert "7f3x" not in str(raised.value)


def test_the_pooler_of_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGPORT", "6543")
    with pytest.raises(CommandError, match="has the port 6543 of the pooler"):
        require_session("postgresql://127.0.0.1/postgres")
