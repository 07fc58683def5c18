"""Attacks on webhooks: what an org does is told where its own admins say, and nowhere else."""

from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.actors import NOBODYS, SECRET, Actor, World, vector
from tests.conftest import People

PATH = "/api/v1/webhooks"
BODY = {"url": "https://hooks.example/s3cret-path", "events": ["document.processing_completed"]}
pytestmark = pytest.mark.usefixtures("no_jobs")


def make(actor: Actor, **more: Any) -> str:
    answer = actor.request("POST", PATH, {**BODY, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def assert_untouched(people: People, webhook: str) -> None:
    row = people.ada.request("GET", f"{PATH}/{webhook}").json()
    assert (row["url"], row["enabled"]) == (BODY["url"], True)


def test_a_key_that_manages_collections_works_beside_a_webhook(people: People, world: World):
    """A key of ann, who does not see the deliveries that her changes cause."""
    make(people.ada, events=["collection.created", "collection.updated", "collection.deleted"])
    body = {"name": "ci", "scopes": ["collections:manage"]}
    key = people.ann.request("POST", "/api/keys", body).json()["key"]
    response = people.ann.request("POST", "/v1/collections", {"name": "plans"}, token=key)
    assert response.status_code == 201, response.text
    path = f"/v1/collections/{response.json()['id']}"
    changed = people.ann.request("PATCH", path, {"name": "old plans"}, token=key)
    assert changed.status_code == 200, changed.text
    assert people.ann.request("DELETE", path, token=key).status_code == 204
    assert world.sql("select count(*) from rag.deliveries") == [(3,)]


# -- in SQL, past the functions -----------------------------------------------------------------------


def test_secrets_are_unreadable_and_members_see_no_url(people: People, world: World):
    make(people.ada)
    people.ann.put([vector(1)])
    counts = "select (select count(*) from rag.webhooks), (select count(url) from rag.endpoints), "
    counts += "(select count(*) from rag.deliveries)"
    for actor, visible in ((people.ada, (1, 1, 1)), (people.ann, (1, 0, 0)), (people.bob, (0, 0, 0))):
        for statement in ("select secret from rag.endpoints", "update rag.endpoints set old_secret = 'x'"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                world.as_user(actor, statement)
        assert world.as_user(actor, counts) == [visible]


def test_a_swapped_secret_does_not_redirect_deliveries(people: People, world: World):
    """A member changes no row, and another org's admin none of this one's."""
    webhook = make(people.ada)
    bea = world.user(people.bolt, role="admin")
    for thief in (people.ann, people.bob, bea):
        world.as_user(thief, "update rag.endpoints set secret = %s, url = 'https://thief.example/'", SECRET)
        world.as_user(thief, "update rag.webhooks set enabled = false")
        world.as_user(thief, "delete from rag.webhooks")
    assert_untouched(people, webhook)


def test_events_are_delivered_only_to_their_org(people: People, world: World):
    bea = world.user(people.bolt, role="admin")
    make(bea, events=["document.processing_completed", "collection.created", "document.deleted"])
    document = people.ann.put([vector(1)])
    people.ann.rpc("rag_delete_document", {"document_id": document})
    assert world.sql("select count(*) from rag.deliveries") == [(0,)]
    people.bob.put([vector(1)])
    assert world.sql("select distinct org_id::text from rag.deliveries") == [(people.bolt.id,)]


def forged(org: str, webhook: str, **more: Any) -> tuple[str, list[Any]]:
    row = {"org_id": org, "webhook_id": webhook, "collection_id": str(uuid4()), "event_id": str(uuid4()),
           "event": "document.deleted", "object": "{}", **more}  # fmt: skip
    places = ", ".join(["%s"] * len(row))
    return f"insert into rag.deliveries ({', '.join(row)}) values ({places})", list(row.values())


def test_a_forged_delivery_to_another_org_s_webhook_is_refused(people: People, world: World):
    webhook, errors = make(people.ada), psycopg.errors
    for org, kind in ((people.acme, errors.InsufficientPrivilege), (people.bolt, errors.ForeignKeyViolation)):
        statement, values = forged(org.id, webhook)
        with pytest.raises(kind):
            world.as_user(people.bob, statement, *values)
    assert world.sql("select count(*) from rag.deliveries") == [(0,)]


def test_a_repeated_delivery_must_exist(people: People, world: World):
    webhook = make(people.ada)
    for more in ({"state": "done"}, {"attempts": 3}, {"due_at": "infinity"}, {"created_at": "2020-01-01"}):
        statement, values = forged(people.acme.id, webhook, **more)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ann, statement, *values)
    statement, values = forged(people.acme.id, webhook, event="x")
    with pytest.raises(psycopg.errors.CheckViolation):
        world.as_user(people.ann, statement, *values)
    people.ann.put([vector(1)])
    # To take its lease away from the worker, or to have it told that it was sent.
    for change in ("state = 'done'", "state = 'failed'", "attempts = 9"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ada, f"update rag.deliveries set {change}")
        world.as_user(people.ann, f"update rag.deliveries set {change}")
    assert world.sql("select state, attempts from rag.deliveries") == [("waiting", 0)]


def test_a_key_without_the_scope_causes_no_delivery(people: People, world: World):
    statement, values = forged(people.acme.id, make(people.ada))
    for claim in ({"scopes": ["documents:read"]}, {"scopes": ["documents:write"], "collection": NOBODYS}):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.ann, statement, *values, rag={"org": people.acme.id, **claim})
    world.as_user(people.ann, statement, *values, rag={"org": people.acme.id, "scopes": ["documents:write"]})


def test_the_worker_s_role_can_only_disable_webhooks(people: People, world: World):
    webhook = make(people.ada)
    world.sql("update rag.webhooks set enabled = false where id = %s", webhook)
    world.as_role("rag_worker", "update rag.webhooks set enabled = true")
    assert world.sql("select enabled from rag.webhooks") == [(False,)]
    world.sql("update rag.webhooks set enabled = true where id = %s", webhook)
    for statement in (
        "update rag.webhooks set updated_at = now()", "delete from rag.webhooks",
        "update rag.endpoints set url = 'https://thief.example/'",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_role("rag_worker", statement)


def test_events_of_private_documents_go_to_admins_only(people: People, world: World):
    webhook = make(people.ada, events=["collection.created"])
    response = people.ann.request("POST", "/v1/collections", {"name": "mine", "private": True})
    assert response.status_code == 201
    rows = people.ada.request("GET", f"{PATH}/{webhook}/deliveries").json()["data"]
    assert [row["type"] for row in rows] == ["collection.created"]
    assert world.as_user(people.alf, "select count(*) from rag.deliveries") == [(0,)]
    assert world.as_user(people.ann, "select count(*) from rag.deliveries") == [(0,)]
