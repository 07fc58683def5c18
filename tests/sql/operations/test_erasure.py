"""The erasure of a user or an org, by the statements of docs/operations.md."""

import re

import pytest

from local import ROOT
from tests.actors import Actor, World, hit_arguments, key_arguments, vector, webhook_arguments
from tests.conftest import People
from tests.isolation.test_idempotency_keys import answered
from tests.sql.conversations.test_chat_sessions import save_session
from tests.sql.operations.test_api_metrics import measure
from tests.sql.operations.test_audit_events import note
from tests.sql.search.test_query_embedding_cache import remember
from verify.victim_objects import record_of

OF_USER = {
    "api_keys", "api_metrics", "audit_events", "chunks", "collections", "deliveries", "documents",
    "extractions", "jobs", "members", "messages", "org_calls", "originals", "postings", "query_embeddings",
    "rate_limits", "request_counts", "request_records", "sessions",
    "sources", "stored_responses",
}  # fmt: skip


def documented(section: str) -> str:
    text = (ROOT / "docs/operations.md").read_text()
    block = re.search(rf"^## {section}\n.*?```sql\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    assert block
    return block[1]


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
    remember(ann, "a question")
    answered(ann, org)
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


def test_no_row_contains_the_id_of_an_erased_user(ann: Actor, world: World):
    assert tables_with(world, ann.id) >= OF_USER
    shared = "select count(*) from rag.documents where owner_id is null"
    before = world.sql(shared)
    world.sql("delete from auth.users where id = %s", ann.id)
    world.sql(documented("Deleting a user").replace("…", ann.id, 1))
    assert tables_with(world, ann.id) == set()
    assert world.sql(shared) == before


def test_no_row_contains_the_id_of_a_deleted_org(ann: Actor, people: People, world: World):
    assert tables_with(world, people.acme.id)
    world.sql(documented("Deleting an org").replace("…", people.acme.id))
    assert tables_with(world, people.acme.id) == set()
