"""Secrets of webhooks and sources in Supabase Vault, for which tests/vault.sql stands in."""

import json
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import psycopg
import pytest

from local import ROOT
from local.stack import Stack
from local.tools.migrations import drop_database
from tests.actors import SECRET, Actor, World
from tests.conftest import People, _people
from tests.databases import own_database
from tests.local.operations.org_data.test_archive import exported
from tests.verify.test_run import sql_of

OTHER = f"whsec_{'B' * 43}="
KEYS = {"access_key_id": "AKIA-of-a-bucket", "secret_access_key": "key of a bucket"}


def install(stack: Stack, database: str) -> None:
    """Vault, with a secret of the project's own, as the project's superuser."""
    with psycopg.connect(stack.database_url("supabase_admin", database)) as connection:
        connection.execute((ROOT / "tests" / "vault.sql").read_bytes())
        connection.execute("select vault.create_secret('theirs', 'service_key')")


@pytest.fixture
def without_vault(stack: Stack) -> Iterator[World]:
    database = own_database(stack, "vault")
    world = World(stack, database)
    yield world
    world.close()
    drop_database(stack.postgres, database)


@pytest.fixture
def world(without_vault: World, stack: Stack) -> World:
    """A project with Vault."""
    install(stack, without_vault.sql("select current_database()")[0][0])
    return without_vault


@pytest.fixture
def people(world: World) -> People:
    return _people(world)


def webhook(world: World, admin: Actor) -> str:
    create = "select id::text from public.rag_create_webhook('https://h.example/', %s, '{document.deleted}')"
    return str(world.as_user(admin, create, SECRET)[0][0])


def source(world: World, admin: Actor) -> str:
    ((home,),) = world.as_user(admin, "select id::text from public.rag_create_collection('files')")
    create = "select id::text from public.rag_create_source(%s, 'bucket', 's3://files/', credentials => %s)"
    return str(world.as_user(admin, create, home, json.dumps(KEYS))[0][0])


def stored(world: World) -> list[str]:
    """The secrets of this schema in Vault."""
    read = "select decrypted_secret from vault.decrypted_secrets where name like 'rag.%%' order by name"
    return [text for (text,) in world.sql(read)]


def claimed(world: World) -> tuple[str | None, str | None]:
    """The secret and the old secret that the worker gets for a delivery of the only webhook."""
    world.sql(
        "insert into rag.deliveries (org_id, webhook_id, event_id, event, object) "
        "select org_id, id, gen_random_uuid(), 'document.deleted', '{}' from rag.webhooks"
    )
    ((secret, old_secret),) = world.as_role(
        "rag_worker", "select secret, old_secret from public.rag_claim_deliveries()"
    )
    return secret, old_secret


def test_a_webhooks_secrets_are_in_vault(world: World, people: People):
    hook = webhook(world, people.ada)
    columns = "select secret, old_secret, secret_id is not null from rag.endpoints"
    assert world.sql(columns) == [(None, None, True)]
    assert (stored(world), claimed(world)) == ([SECRET], (SECRET, None))
    world.as_user(people.ada, "select public.rag_rotate_webhook(%s, %s)", hook, OTHER)
    assert world.sql(columns) == [(None, None, True)]
    assert (set(stored(world)), claimed(world)) == ({SECRET, OTHER}, (OTHER, SECRET))
    # The old secret's time ends.
    world.sql("update rag.endpoints set old_secret_until = now()")
    assert claimed(world) == (OTHER, None)
    assert stored(world) == [OTHER]
    world.as_user(people.ada, "select public.rag_rotate_webhook(%s, %s, 0)", hook, SECRET)
    assert stored(world) == [SECRET]
    world.as_user(people.ada, "select public.rag_delete_webhook(%s)", hook)
    assert stored(world) == []


def test_credentials_of_a_source_are_in_vault(world: World, people: People):
    place = source(world, people.ada)
    assert world.sql("select credentials from rag.source_credentials") == [(None,)]
    claim = "select credentials from public.rag_claim_sources()"
    assert world.as_role("rag_worker", claim) == [(KEYS,)]
    changed = KEYS | {"session_token": "t"}
    change = "select has_credentials from public.rag_update_source(%s, credentials => %s)"
    assert world.as_user(people.ada, change, place, json.dumps(changed)) == [(True,)]
    assert [json.loads(text) for text in stored(world)] == [changed]


def test_a_deleted_org_leaves_nothing_in_vault(world: World, people: People):
    webhook(world, people.ada)
    source(world, people.ada)
    assert len(stored(world)) == 2
    world.sql("delete from rag.collections where org_id = %s", people.acme.id)
    world.sql("delete from rag.orgs where id = %s", people.acme.id)
    assert stored(world) == []
    # Nothing of the project's own was deleted.
    assert world.sql("select decrypted_secret from vault.decrypted_secrets") == [("theirs",)]


def test_an_archive_contains_nothing_of_vault(world: World, people: People, stack: Stack, tmp_path: Path):
    webhook(world, people.ada)
    source(world, people.ada)
    read = "select id::text, secret, decrypted_secret from vault.decrypted_secrets where name like 'rag.%%'"
    ours = [text for row in world.sql(read) for text in row]
    (database,) = world.sql("select current_database()")[0]
    manifest = exported(stack.database_url(database=database), people.acme.id, tmp_path / "org.zip")
    assert (len(manifest.webhooks), len(manifest.sources), len(ours)) == (1, 1, 6)
    with ZipFile(tmp_path / "org.zip") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist()).decode()
    assert not [text for text in (*ours, *KEYS.values()) if text in content]


def test_nobody_but_the_worker_reads_a_secret_and_it_reads_ours_alone(world: World, people: People):
    webhook(world, people.ada)
    ((own,),) = world.sql("select secret_id::text from rag.endpoints")
    ((theirs,),) = world.sql("select id::text from vault.secrets where name = 'service_key'")
    read = "select rag.secret_in_vault(%s)"
    for statement in (read, "select decrypted_secret from vault.decrypted_secrets where id = %s"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ada, statement, own)
    assert world.as_role("rag_worker", read, own) == [(SECRET,)]
    assert world.as_role("rag_worker", read, theirs) == [(None,)]


def test_a_user_neither_names_a_secret_nor_stores_a_malformed_one(world: World, people: People):
    hook, place = webhook(world, people.ada), source(world, people.ada)
    ((theirs,),) = world.sql("select id::text from vault.secrets where name = 'service_key'")
    for statement in (
        "update rag.endpoints set secret_id = %s",
        "update rag.endpoints set old_secret_id = %s",
        "update rag.source_credentials set credentials_id = %s",
        "insert into rag.source_credentials (org_id, source_id, credentials_id) "
        "select org_id, source_id, %s from rag.source_credentials",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ada, statement, theirs)
    with pytest.raises(psycopg.errors.CheckViolation):
        world.as_user(people.ada, "update rag.endpoints set secret = 'x' where webhook_id = %s", hook)
    change = "update rag.source_credentials set credentials = '{}' where source_id = %s"
    with pytest.raises(psycopg.errors.CheckViolation):
        world.as_user(people.ada, change, place)
    assert len(stored(world)) == 2


def test_secrets_of_before_are_moved_by_the_documented_statements(without_vault: World, stack: Stack):
    world, people = without_vault, _people(without_vault)
    hook = webhook(world, people.ada)
    source(world, people.ada)
    world.as_user(people.ada, "select public.rag_rotate_webhook(%s, %s)", hook, OTHER)
    assert claimed(world) == (OTHER, SECRET)
    install(stack, world.sql("select current_database()")[0][0])
    (statements,) = sql_of("security.md", "Secrets in Vault")
    world.sql(statements)
    assert world.sql("select num_nonnulls(secret, old_secret) from rag.endpoints") == [(0,)]
    assert world.sql("select credentials from rag.source_credentials") == [(None,)]
    assert len(stored(world)) == 3
    assert claimed(world) == (OTHER, SECRET)


def test_a_secret_that_vault_lost_ends_no_claim(world: World, people: People):
    webhook(world, people.ada)
    world.sql("delete from vault.secrets where name like 'rag.%%'")
    assert claimed(world) == (None, None)


def test_a_project_whose_vault_was_removed_goes_on_with_new_secrets(
    world: World, people: People, stack: Stack
):
    hook, place = webhook(world, people.ada), source(world, people.ada)
    world.as_user(people.ada, "select public.rag_rotate_webhook(%s, %s)", hook, OTHER)
    world.sql("update rag.endpoints set old_secret_until = now()")
    (database,) = world.sql("select current_database()")[0]
    with psycopg.connect(stack.database_url("supabase_admin", database)) as connection:
        connection.execute("drop schema vault cascade")
    # The old secret's time has ended: the claim deletes it.
    assert claimed(world) == (None, None)
    world.as_user(people.ada, "select public.rag_rotate_webhook(%s, %s)", hook, SECRET)
    assert claimed(world) == (SECRET, None)
    world.as_user(people.ada, "select public.rag_rotate_webhook(%s, %s)", hook, OTHER)
    assert claimed(world) == (OTHER, SECRET)
    change = "select has_credentials from public.rag_update_source(%s, credentials => %s)"
    assert world.as_user(people.ada, change, place, json.dumps(KEYS)) == [(True,)]
    claim = "select credentials from public.rag_claim_sources()"
    assert world.as_role("rag_worker", claim) == [(KEYS,)]


def test_a_secret_of_a_vault_that_was_removed_can_be_deleted(world: World, people: People, stack: Stack):
    hook = webhook(world, people.ada)
    (database,) = world.sql("select current_database()")[0]
    with psycopg.connect(stack.database_url("supabase_admin", database)) as connection:
        connection.execute("drop schema vault cascade")
    world.as_user(people.ada, "select public.rag_delete_webhook(%s)", hook)
    assert world.sql("select count(*) from rag.endpoints") == [(0,)]
