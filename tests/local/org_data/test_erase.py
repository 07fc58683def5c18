"""Erasure of an org and of a user: which rows go, which stay, and the report."""

import json
from pathlib import Path

import psycopg

from local.org_data.erase_command import NO_USER, erase
from local.stack import Stack
from tests.local.command_line import run_local
from tests.local.org_data.test_export_and_import import victim_org
from verify.actors import Actors


def test_an_erased_org_leaves_no_row_and_no_other_row_changes(stack: Stack, tmp_path: Path):
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
        result = run_local(stack.folder, "erase", "--org", org.org_id)
        assert json.loads(result.stdout)["removed"] == {"object_removals": report.objects_in_storage}


def rows_of_org(actors: Actors) -> list[tuple[object, ...]]:
    return [
        row
        for table in ("documents", "chunks", "postings", "messages", "api_keys", "members", "audit_events")
        for row in actors.sql(f"select * from rag.{table} where org_id = %s order by 1, 2, 3", actors.org_id)
    ]


def test_an_erased_user_leaves_shared_documents_without_the_user_s_id(stack: Stack, tmp_path: Path):
    with victim_org(stack) as org:
        member = org.member.id
        shared = "select id, content from rag.documents where org_id = %s and owner_id is null order by id"
        before = org.sql(shared, org.org_id)
        org.sql(
            "update rag.documents set created_by = %s where org_id = %s and owner_id is null",
            member,
            org.org_id,
        )
        org.sql(
            "update rag.messages set details = jsonb_build_object('by', %s::text) where org_id = %s",
            member, org.org_id,
        )  # fmt: skip
        report = tmp_path / "report.json"
        result = run_local(stack.folder, "erase", "--user", member, "--report", report)
        assert result.returncode == 0, result.stderr
        erased = json.loads(report.read_text())
        assert {"documents", "sessions", "api_keys", "members", "query_embeddings"} <= set(erased["removed"])
        assert erased["anonymized"]["documents"] == len(before)
        assert org.sql(shared, org.org_id) == before
        assert org.sql(
            "select distinct created_by::text from rag.documents where org_id = %s", org.org_id
        ) == [(NO_USER,)]
        assert not org.sql("select 1 from rag.documents where owner_id = %s", member)
        again = json.loads(run_local(stack.folder, "erase", "--user", member).stdout)
        assert (again["removed"], again["anonymized"]) == ({}, {})
        assert org.sql("select true from auth.users where id = %s", member)


def test_a_role_under_row_security_is_refused(stack: Stack):
    url = stack.database_url("authenticator")
    result = run_local(stack.folder, "erase", "--org", NO_USER, "--database", url)
    assert "row security applies to this role" in result.stderr
