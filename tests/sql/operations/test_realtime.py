"""Changes of documents and jobs in Supabase Realtime, for whose schema tests/realtime.sql stands in."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from local import ROOT
from local.stack import Stack
from local.tools import migrations
from shared.access.jwt_verifier import third_party_user_id
from tests.actors import MODEL, Actor, World
from tests.conftest import People, _people
from tests.sql.passages import deployed_with
from tests.sql.schema_changes import schema_change
from tests.verify.test_run import sql_of

# A policy of the project's own, for its own channels.
WIDE = "create policy own on realtime.messages for all to authenticated, anon using (true) with check (true)"


@pytest.fixture(scope="module")
def world(stack: Stack) -> Iterator[World]:
    """A project with Realtime and a wide policy."""
    database = f"realtime_{stack.state.database}"
    migrations.make_database(stack.postgres, database)
    with psycopg.connect(stack.database_url("supabase_admin", database)) as connection:
        connection.execute((ROOT / "tests" / "realtime.sql").read_bytes())
        connection.execute(WIDE)
    migrations.apply_declared(stack.postgres, database)
    world = World(stack, database)
    world.sql("update rag.settings set embedding_model = %s", MODEL)
    yield world
    world.close()
    migrations.drop_database(stack.postgres, database)


@pytest.fixture
def people(world: World) -> People:
    world.sql("delete from realtime.messages")
    return _people(world)


def upload(world: World, actor: Actor, *, private: bool = False) -> tuple[str, str]:
    """The ids of a document that waits for the worker, and of its collection."""
    create = "select id::text from public.rag_create_collection('files', private => %s)"
    ((home,),) = world.as_user(actor, create, private)
    add = "select id::text from public.rag_add_document(%s, %s)"
    fields = '{"title": "A", "filename": "a.txt", "content_type": "text/plain", "bytes": "YQ=="}'
    ((document,),) = world.as_user(actor, add, home, fields)
    return document, home


def received(world: World, actor: Actor, **claims: Any) -> list[tuple[str, str]]:
    """The events and states of the messages of this schema that the actor may receive."""
    read = (
        "select event, coalesce(payload ->> 'state', payload ->> 'status') from realtime.messages "
        "where topic like 'rag:%%' order by inserted_at, event desc"
    )
    return world.as_user(actor, read, **claims)


def test_members_receive_changes_of_their_orgs_documents(world: World, people: People):
    document, home = upload(world, people.ann)
    assert received(world, people.alf) == [("job", "waiting")]
    world.as_role("rag_worker", "select public.rag_claim_jobs('ingestion')")
    assert received(world, people.alf) == [("job", "waiting"), ("job", "running")]
    world.as_user(people.ann, "select public.rag_delete_document(%s)", document)
    assert received(world, people.alf)[2:] == [("document", "deleted")]
    for stranger in (people.bob, people.sam):
        assert received(world, stranger) == []
    assert received(world, people.ada, rag={"org": people.acme.id, "collection": home}) == []
    assert received(world, people.ada, rag={"org": people.acme.id, "scopes": ["chat:read"]}) == []
    topics = world.sql("select distinct topic, private, payload ? 'title' from realtime.messages")
    assert topics == [(f"rag:{people.acme.id}", True, False)]


def test_only_the_owner_and_admins_receive_changes_of_private_documents(world: World, people: People):
    upload(world, people.ann, private=True)
    assert received(world, people.ann) == received(world, people.ada) == [("job", "waiting")]
    assert received(world, people.alf) == received(world, people.bob) == []
    assert world.sql("select topic from realtime.messages") == [(f"rag:{people.acme.id}:{people.ann.id}",)]


def test_a_third_party_user_receives_changes_of_their_private_documents(world: World, people: People):
    issuer, subject = "https://app.clerk.example", "user_2abc"
    own = "https://ref.supabase.co/auth/v1"
    with deployed_with(world, issuer=own, third_party_issuers={issuer: None}):
        world.sql(
            "insert into rag.members (org_id, user_id) values (%s, rag.third_party_user_id(%s, %s))",
            people.acme.id, issuer, subject,
        )  # fmt: skip
        topic = f"rag:{people.acme.id}:{third_party_user_id(issuer, subject)}"
        receives = "select rag.may_receive(%s)"
        assert world.as_user(people.ann, receives, topic, iss=issuer, sub=subject) == [(True,)]
        assert world.as_user(people.ann, receives, topic, iss=issuer, sub="user_3def") == [(False,)]


def test_no_client_sends_on_these_channels(world: World, people: People):
    send = "select realtime.send('{}', 'document', %s)"
    topic = f"rag:{people.acme.id}"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(people.ada, send, topic)
    for role in ("anon", "rag_worker"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_role(role, send, topic)
    world.as_user(people.ada, send, "room:1")
    upload(world, people.ann)
    assert world.as_role("anon", "select topic from realtime.messages") == [("room:1",)]
    for other in ("rag:", "rag:x", f"rag:{people.acme.id}:x", f"rag:{people.bolt.id}"):
        assert world.as_user(people.ada, "select rag.may_receive(%s)", other) == [(False,)]


def test_channels_of_the_project_stay_its_own(world: World, people: People):
    send = "select realtime.send('{}', 'note', %s)"
    for topic in ("rag:support", "rag:"):
        world.as_user(people.ada, send, topic)
    for topic in (f"rag:{people.bolt.id}", f"rag:{people.bolt.id}:", f"rag:{people.acme.id}:x"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ada, send, topic)
    read = "select topic from realtime.messages order by topic"
    expected = [("rag:",), ("rag:support",)]
    assert world.as_user(people.bob, read) == world.as_role("anon", read) == expected


def test_a_document_sends_changes_of_its_status_alone(world: World, people: People):
    document, _ = upload(world, people.ann)
    for status in ("completed", "completed", "processing"):
        world.sql("update rag.documents set status = %s where id = %s", status, document)
    assert received(world, people.ann)[1:] == [("document", "completed"), ("document", "processing")]


def test_the_documented_statement_lists_the_tables_that_name_a_document(world: World, people: People):
    document, _ = upload(world, people.ann)
    world.as_user(people.ann, "select public.rag_delete_document(%s)", document)
    world.sql(
        "insert into rag.rate_limits (caller_id, bucket, window_seconds, started_at, hits) "
        "values (%s, 'link ' || %s, 60, now(), 1)", people.ann.id, document,
    )  # fmt: skip
    (statement,) = sql_of("operations.md", "What still names a deleted document")
    ((database,),) = world.sql("select current_database()")
    tables = set()
    with psycopg.connect(world.stack.database_url("postgres", database)) as connection:
        connection.add_notice_handler(lambda notice: tables.add((notice.message_primary or "").split(":")[0]))
        connection.execute(statement.replace("<document_id>", document).encode())
    assert tables == {"rag.rate_limits", "realtime.messages"}


def test_a_deleted_collection_sends_no_message_for_each_document(world: World, people: People):
    _, home = upload(world, people.ann)
    world.sql("delete from realtime.messages")
    world.sql("delete from rag.collections where id = %s", home)
    assert world.sql("select * from realtime.messages") == []


def test_a_message_that_realtime_refuses_ends_no_change(world: World, people: People):
    plant, restore = "add constraint refused check (false) not valid", "drop constraint refused"
    messages = "alter table realtime.messages"
    with schema_change(world, f"{messages} {plant}", f"{messages} {restore}"):
        document, _ = upload(world, people.ann)
    assert world.sql("select status from rag.documents where id = %s", document) == [("processing",)]
