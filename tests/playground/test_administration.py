"""The administration of the playground in Chromium, for an org's admins alone."""

from uuid import uuid4

import pytest

from shared.services import Services
from shared.types import Scope
from tests.actors import Actor, World, webhook_arguments
from tests.conftest import People
from tests.functions.search_workspace import OUTAGE, put
from tests.functions.test_records import UNANSWERABLE, ask, record_requests
from tests.playground.conftest import AXE, Browse, crowd

QUESTION = "What was the root cause of the billing outage?"


def fail(world: World, actor: Actor, *titles: str) -> None:
    """Documents in the actor's collection whose jobs have failed."""
    assert actor.org is not None
    for title in titles:
        world.sql(
            "with failed as (insert into rag.documents "
            "(org_id, collection_id, title, content, content_hash, status, error_code, error_message) "
            "select org_id, id, %s, '', repeat('0', 64), 'failed', 'unreadable_document', %s "
            "from rag.collections where org_id = %s returning org_id, id, collection_id, title) "
            "insert into rag.jobs (org_id, document_id, collection_id, user_id, document, state, attempts, "
            "error_code, error_message, finished_at) "
            "select org_id, id, collection_id, %s, jsonb_build_object('title', title), 'failed', 1, "
            "'unreadable_document', 'The file could not be read.', now() from failed",
            title, "The file could not be read.", actor.org.id, actor.id,
        )  # fmt: skip


def subscribe(world: World, actor: Actor, url: str) -> None:
    """A webhook with a delivery that failed. The worker sends nothing to it."""
    assert actor.org is not None
    assert actor.rpc("rag_create_webhook", webhook_arguments(url=url)).status_code == 200
    world.sql(
        "insert into rag.deliveries (org_id, webhook_id, collection_id, event_id, event, object, state, "
        "error, response_status, attempts, finished_at) "
        "select org_id, id, gen_random_uuid(), gen_random_uuid(), 'document.deleted', "
        " '{\"id\": \"x\"}', 'failed', 'refused', 500, 3, now() from rag.webhooks "
        "where org_id = %s",
        actor.org.id,
    )
    world.sql(
        "update rag.endpoints set paused_until = now() + interval '1 day' where org_id = %s", actor.org.id
    )


@pytest.mark.long
def test_every_page_works_with_a_keyboard_a_screen_reader_and_a_phone(
    browse: Browse, readers: People, world: World, no_jobs: None
):
    ada = readers.ada
    long_title = "A-title-that-is-one-word-and-longer-than-a-phone-is-wide-" * 2
    fail(world, ada, f"{long_title}.pdf", "Second")
    subscribe(world, ada, f"https://hooks.example/{long_title.lower()}")
    ada.post("/api/keys", {"name": "backup", "scopes": ["documents:read", "retrievals:read"]})
    ada.rpc("rag_record_event", {"event": "knowledge.query", "namespace": "support", "top_score": 0.5})
    ((home,),) = world.sql("select id from rag.collections where org_id = %s limit 1", readers.acme.id)
    world.sql(
        "insert into rag.sources (org_id, collection_id, user_id, kind, address, interval_seconds, "
        "max_items, due_at, started_at, finished_at, error_code, error_message) "
        "values (%s, %s, %s, 'website', %s, 600, 10, now() + interval '1 day', now(), now(), "
        "'url_unreachable', 'The address could not be reached.')",
        readers.acme.id, home, ada.id, f"https://docs.example/{long_title}",
    )  # fmt: skip
    record_requests(ada)
    ada.post(f"/v1/records/{ask(ada, QUESTION)}/feedback", {"rating": "up"})
    world.sql("update rag.members set name = 'Ann Lee' where user_id = %s", readers.ann.id)
    browse(
        "every_page_can_be_used_by_everybody",
        ada,
        axe=str(AXE),
        shown={
            "usage": ["Calls by day"],
            "documents": ["incidents"],
            "jobs": ["Second", "Retry the 2 failed jobs of this page"],
            "sources": ["The address could not be reached."],
            "members": ["Ann Lee"],
            "keys": ["backup"],
            "webhooks": ["https://hooks.example/"],
            "events": ["support"],
        },
    )


def test_members_have_no_administration(browse: Browse, readers: People, world: World):
    world.sql("update rag.members set name = 'Ada Byron' where user_id = %s", readers.ada.id)
    browse("members_have_no_administration", readers.ann, admin=readers.ada.token(), secret="Ada Byron")


def test_keys_are_created_rotated_and_revoked(browse: Browse, readers: People):
    browse("keys_are_created_rotated_and_revoked", readers.ada, collection="incidents")


def test_a_new_key_has_the_scopes_of_its_use(browse: Browse, people: People):
    uses = {
        "A chat front end or an OpenAI client: ask questions": ["chat:read"],
        "Administration by program": ["admin"],
        "An MCP client or agent: search, ask, read documents": ["chat:read", "documents:read"],
        "SDK or HTTP: search, ask, and manage documents": sorted(set(Scope) - {Scope.ADMIN}),
    }
    browse("a_key_has_the_scopes_of_its_use", people.ada, uses=uses)


def test_members_are_invited_changed_and_removed(browse: Browse, people: People, world: World):
    browse(
        "members_are_managed", people.ada, own=people.ada.id, id=people.sam.id, name="Sam Hill",
        unknown=str(uuid4()), count=4, org=people.acme.id, accepting=people.sam.token(),
    )  # fmt: skip
    assert world.sql("select count(*) from rag.members where user_id = %s", people.sam.id) == [(0,)]


def test_documents_are_found_by_name_and_deleted_together(
    browse: Browse, people: People, world: World, services: Services
):
    put(services, people.ann, "minutes", "Billing outage", OUTAGE)
    crowd(world, people.ann, 22)
    browse("documents_are_found_and_deleted", people.ada, collection="minutes")


def test_failed_jobs_are_retried(browse: Browse, readers: People, world: World, no_jobs: None):
    titles = [f"{kind} of the maintenance department on equipment" for kind in ("Letter", "Invoice", "Plan")]
    fail(world, readers.ann, *titles)
    browse("failed_jobs_are_retried", readers.ada, titles=titles)


def test_webhooks_are_managed(browse: Browse, people: People, world: World):
    address = "https://hooks.example/in"
    subscribe(world, people.ada, address)
    browse("webhooks_are_managed", people.ada, address=address)


def test_usage_has_the_tokens_of_each_day(browse: Browse, people: People, world: World):
    world.sql(
        "insert into rag.token_usage (org_id, day, quota, tokens, calls) "
        "select %s, (now() at time zone 'UTC')::date, quota, tokens, 1 "
        "from (values ('model', 1234), ('embedding', 5678)) as usage (quota, tokens)",
        people.acme.id,
    )
    browse("usage_has_the_tokens_of_each_day", people.ada)


def test_sources_are_managed(browse: Browse, people: People, world: World, services: Services, no_jobs: None):
    put(services, people.ann, "minutes", "Billing outage", OUTAGE)
    browse("sources_are_managed", people.ada, collection="minutes", secret="5ecret of the bucket")
    assert world.sql("select count(*) from rag.sources") == [(0,)]


def test_a_record_is_reviewed(browse: Browse, readers: People, world: World):
    record_requests(readers.ada)
    body = {"rating": "down", "reason": "too short"}
    readers.ann.post(f"/v1/records/{ask(readers.ann, QUESTION)}/feedback", body)
    options = {"mode": "keyword", "metadata_filter": {"subject": "birds"}}
    readers.ann.post("/api/v1/chat", {"message": UNANSWERABLE, "stream": False, "retrieval": options})
    browse(
        "a_record_is_reviewed", readers.ada, question=QUESTION, withheld=UNANSWERABLE,
        answer="Stripe webhook retries", title="Billing outage",
    )  # fmt: skip
    labelled = "select question, cardinality(document_ids) from rag.request_records where verdict = 'wrong'"
    assert world.sql(f"{labelled} and org_id = %s", readers.acme.id) == [(QUESTION, 1)]


def test_recording_is_turned_on_and_off(browse: Browse, readers: People):
    browse("recording_is_turned_on_and_off", readers.ada)
    settings = readers.ann.request("GET", "/v1/records/settings").json()
    assert settings == {"org_id": readers.acme.id, "retention_days": None}
