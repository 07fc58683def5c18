"""Export of an org with rows of every kind, and its import into another database with other ids."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import httpx
import psycopg
import pytest

from local.errors import CommandError
from local.operations.org_data.archive import Manifest, open_archive
from local.operations.org_data.export_command import export
from local.operations.org_data.import_command import import_org
from local.operations.org_data.tables import EXPORTED, NOT_EXPORTED, open_session, tables_of
from local.stack import Stack
from local.tools import migrations
from local.verify_command import deployment_of
from tests.local.command_line import run_local
from verify.actors import Actors, create_actors
from verify.victim_objects import ObjectFactory

Database = psycopg.Connection[Any]


@contextmanager
def victim_org(stack: Stack) -> Iterator[Actors]:
    """An org with a row of every kind, and with a deleted collection that still has a private document."""
    deployment = deployment_of(stack)
    with create_actors(deployment) as actors, httpx.Client(timeout=60) as client:
        objects = ObjectFactory(actors, client).create()
        # The org also has another collection of that name, which is not deleted.
        (name,), = actors.sql(
            "update rag.collections set deleted_at = now() where org_id = %s and id = %s returning name",
            actors.org_id, objects.private["collection_id"],
        )  # fmt: skip
        actors.sql(
            "insert into rag.collections (org_id, owner_id, created_by, name) values (%s, %s, %s, %s)",
            actors.org_id, actors.member.id, actors.member.id, name,
        )  # fmt: skip
        actors.sql(
            "update rag.messages set details = jsonb_build_object('chunk', %s::text) where org_id = %s",
            objects.shared["chunk_id"], actors.org_id,
        )  # fmt: skip
        actors.sql(
            "insert into rag.relations select org_id, document_id, ordinal, 'vault', 'PART_OF', 'house', "
            "collection_id, owner_id, 0.5 from rag.chunks where org_id = %s limit 1",
            actors.org_id,
        )
        actors.sql(
            "insert into rag.token_usage (org_id, day, quota, tokens, calls) "
            "values (%s, current_date, 'embedding', 5, 1)",
            actors.org_id,
        )
        yield actors


@pytest.fixture(scope="module")
def org(stack: Stack) -> Iterator[Actors]:
    with victim_org(stack) as actors:
        yield actors


@pytest.fixture
def elsewhere(stack: Stack, org: Actors) -> Iterator[Database]:
    """Another deployment, with the same users by address, under other ids."""
    name = f"elsewhere_{stack.state.database}"
    with migrations.declared_database(stack.postgres, name) as connection:
        open_session(connection)
        connection.execute(
            "update rag.settings set embedding_model = %s", [setting(org.database, "embedding_model")]
        )
        for person in org.people:
            connection.execute("insert into auth.users (email) values (%s)", [person.email])
        connection.commit()
        yield connection


def setting(connection: Database, name: str) -> Any:
    row = connection.execute(f"select {name} from rag.settings".encode()).fetchone()
    return row and row[0]


def exported(url: str, org_id: str, path: Path) -> Manifest:
    with psycopg.connect(url) as connection:
        open_session(connection)
        connection.commit()
        return export(connection, org_id, path)


def rows(connection: Database, query: str, org_id: str) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode(), [org_id]).fetchall()


def ids(connection: Database, org_id: str) -> set[str]:
    return {
        str(row[0])
        for name in ("collections", "documents", "chunks", "sessions", "messages")
        for row in rows(connection, f"select id from rag.{name} where org_id = %s", org_id)
    }


DERIVED = (
    "select documents.title, facet, sort_key from rag.facets "
    "join rag.documents on documents.org_id = facets.org_id and documents.id = facets.document_id "
    "where facets.org_id = %s order by 1, 2",
    "select documents.title, stored.embedding_model, config, chunks, length, terms, places "
    "from rag.document_terms as stored "
    "join rag.documents on documents.org_id = stored.org_id and documents.id = stored.document_id "
    "where stored.org_id = %s order by 1, 2",
    "select documents.title, entity, weight from rag.title_entities "
    "join rag.documents on documents.org_id = title_entities.org_id and documents.id = document_id "
    "where title_entities.org_id = %s order by 1, 2",
)


def test_every_table_of_an_org_is_exported_or_has_a_reason(stack: Stack):
    with psycopg.connect(stack.database_url()) as connection:
        of_an_org = {name for name, table in tables_of(connection).items() if "org_id" in table.types}
    assert of_an_org == {*EXPORTED, *NOT_EXPORTED}
    assert not {*EXPORTED} & {*NOT_EXPORTED}


def test_an_imported_org_has_equal_rows_under_other_ids(
    stack: Stack, org: Actors, elsewhere: Database, tmp_path: Path
):
    manifest = exported(stack.database_url(), org.org_id, tmp_path / "org.zip")
    assert [name for name in EXPORTED if not manifest.tables[name]["rows"]] == []
    target = str(uuid4())
    with open_archive(tmp_path / "org.zip") as archive:
        imported = import_org(elsewhere, archive, target, {}, with_members=True)
    elsewhere.commit()

    again = exported(
        elsewhere.info.dsn + f" password={elsewhere.info.password}", target, tmp_path / "again.zip"
    )
    assert again.digest == imported.manifest.digest == manifest.digest
    assert {state for _, state in imported.members} == {"added"}
    assert not ids(org.database, org.org_id) & ids(elsewhere, target)
    for query in DERIVED:
        assert rows(elsewhere, query, target) == rows(org.database, query, org.org_id)
    (chunk,) = rows(
        elsewhere,
        "select count(*) from rag.messages join rag.chunks on chunks.org_id = messages.org_id "
        "and chunks.id::text = messages.details ->> 'chunk' where messages.org_id = %s",
        target,
    )
    assert chunk[0] > 0
    members = (
        "select email, role from rag.members join auth.users on id = user_id where org_id = %s "
        "and accepted_at is {} null order by 1"
    )
    accepted = members.format("not")
    assert rows(elsewhere, accepted, target) == rows(org.database, accepted, org.org_id)
    # An archive has no invitation, and does not name its user.
    assert rows(org.database, members.format(""), org.org_id) == [(org.invited.email, "member")]
    assert rows(elsewhere, members.format(""), target) == []
    assert org.invited.email not in {user.email for user in imported.manifest.users}


@pytest.mark.parametrize("given", [None, "00000000-0000-8000-8000-000000000001"])
def test_a_third_party_user_keeps_the_id_or_gets_a_given_one(
    stack: Stack, org: Actors, elsewhere: Database, tmp_path: Path, given: str | None
):
    """Another one for the same person at another issuer."""
    ((user,),) = org.sql("select rag.third_party_user_id('https://app.clerk.example', 'user_2abc')::text")
    org.sql("insert into rag.members (org_id, user_id) values (%s, %s)", org.org_id, user)
    org.sql(
        "insert into rag.collections (org_id, owner_id, created_by, name) values (%s, %s, %s, 'clerk')",
        org.org_id, user, user,
    )  # fmt: skip
    try:
        exported(stack.database_url(), org.org_id, tmp_path / "org.zip")
    finally:
        org.sql("delete from rag.collections where owner_id = %s", user)
        org.sql("delete from rag.members where user_id = %s", user)
    with open_archive(tmp_path / "org.zip") as archive:
        import_org(elsewhere, archive, str(uuid4()), {user: given} if given else {}, with_members=True)
    for table, column in (("members", "user_id"), ("collections", "owner_id")):
        statement = f"select count(*) from rag.{table} where {column} = %s"
        assert rows(elsewhere, statement, given or user) == [(1,)], table


def test_an_archive_contains_no_secret(stack: Stack, org: Actors, tmp_path: Path):
    manifest = exported(stack.database_url(), org.org_id, tmp_path / "org.zip")
    assert all((manifest.keys, manifest.webhooks, manifest.sources))
    secrets = [
        str(secret)
        for query in (
            "select hash from rag.api_keys where org_id = %s",
            "select secret from rag.endpoints where org_id = %s",
            "select value from rag.source_credentials, jsonb_each_text(credentials) where org_id = %s",
        )
        for (secret,) in rows(org.database, query, org.org_id)
    ]
    assert secrets
    with ZipFile(tmp_path / "org.zip") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist()).decode()
    assert not [secret for secret in secrets if secret in content]


def test_a_damaged_archive_leaves_nothing(
    stack: Stack, org: Actors, elsewhere: Database, tmp_path: Path, subtests: pytest.Subtests
):
    exported(stack.database_url(), org.org_id, tmp_path / "org.zip")
    with ZipFile(tmp_path / "org.zip") as whole:
        files = {name: whole.read(name) for name in whole.namelist()}
    documents, manifest = files["documents.copy"], files["manifest.json"]
    stored = "select id from rag.documents where org_id <> %s order by 1"
    before = rows(elsewhere, stored, str(uuid4()))
    damages: dict[str, dict[str, bytes | None]] = {
        "a changed row": {"documents.copy": documents.replace(org.marker.encode(), b"another", 1)},
        "a missing row": {"documents.copy": documents.split(b"\n", 1)[1]},
        "a missing table": {"documents.copy": None},
        "a changed manifest": {"manifest.json": manifest.replace(b'"rows": 1', b'"rows": 2', 1)},
    }
    for damage, change in damages.items():
        with subtests.test(damage=damage):
            with ZipFile(tmp_path / "damaged.zip", "w") as damaged:
                for name, content in (files | change).items():
                    if content is not None:
                        damaged.writestr(name, content)
            with pytest.raises(CommandError), open_archive(tmp_path / "damaged.zip") as archive:
                import_org(elsewhere, archive, str(uuid4()), {})
            elsewhere.rollback()
            assert rows(elsewhere, stored, str(uuid4())) == before


def test_an_unsuitable_deployment_refuses_the_import(
    stack: Stack, org: Actors, elsewhere: Database, tmp_path: Path
):
    exported(stack.database_url(), org.org_id, tmp_path / "org.zip")

    def refusal(before: str, **renamed: str) -> str:
        elsewhere.execute(before.encode())
        with open_archive(tmp_path / "org.zip") as archive, pytest.raises(CommandError) as refused:
            import_org(elsewhere, archive, str(uuid4()), renamed)
        elsewhere.rollback()
        return str(refused.value)

    assert "which this deployment does not use" in refusal(
        "update rag.settings set embedding_model = 'other'"
    )
    assert "another number" in refusal("select rag.set_dimensions(embedding_model, 768) from rag.settings")
    assert org.member.email in refusal(f"delete from auth.users where email = '{org.member.email}'")
    assert "two users" in refusal("select 1", **{org.member.email: org.admin.email})
    assert "another release" in refusal("alter table rag.documents add column other text")


def test_the_commands_export_and_import(stack: Stack, org: Actors, tmp_path: Path):
    archive = tmp_path / "org.zip"
    result = run_local(stack.folder, "export", org.org_id, archive)
    assert result.returncode == 0, result.stderr
    digest = result.stdout.split("digest ")[1].split()[0]
    assert run_local(stack.folder, "export", org.org_id, archive).stderr == f"error: {archive}: File exists\n"
    assert "no org has this id" in run_local(stack.folder, "export", uuid4(), tmp_path / "none.zip").stderr
    assert not (tmp_path / "none.zip").exists()
    assert (
        "the org has rows in rag.collections"
        in run_local(stack.folder, "import", archive, "--org", org.org_id).stderr
    )

    target = str(uuid4())
    try:
        imported = run_local(stack.folder, "import", archive, "--org", target)
        assert imported.returncode == 0, imported.stderr
        assert f"digest {digest}, org {target}" in imported.stdout
        assert "create this webhook again: https://" in imported.stdout
        assert json.loads(ZipFile(archive).read("manifest.json"))["digest"] == digest
    finally:
        org.sql("delete from rag.orgs where id = %s", target)
