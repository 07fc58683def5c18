"""Attacks on the platform's retrievals and administration: others' documents, their sizes, their queues."""

from typing import Any

from shared.access.api_keys import is_key
from tests.actors import NOBODYS, Actor, World
from tests.functions.app_server import platform_error
from tests.isolation.test_knowledge import key
from tests.isolation.victim_documents import Library

PATH, STATS, HEALTH = "/api/v1/retrievals", "/api/v1/stats", "/api/v1/health"
Row = dict[str, Any]
TURNED_AWAY = {"authentication_error", "permission_error"}


def stats(actor: Actor, token: str | None = None) -> Row:
    answer = actor.request("GET", STATS, token=token)
    assert answer.status_code == 200, answer.text
    body: Row = answer.json()
    return body


def test_an_admin_of_one_org_is_a_member_in_another(library: Library, world: World):
    people = library.people
    eve = world.user(people.bolt)
    world.sql("insert into rag.members values (%s, %s, 'admin')", people.acme.id, eve.id)
    waits(world, people.acme.id, eve.id, 1)
    waits(world, people.bolt.id, people.bob.id, 5)
    own, theirs = stats(people.ada), world.user(people.bolt, role="admin")
    assert stats(theirs)["total_documents"] != own["total_documents"]
    counted = [name for name in own if name.startswith(("total", "storage"))]
    body = stats(eve)
    assert {name: body[name] for name in counted} == {name: own[name] for name in counted}
    assert documents_waiting(eve) == documents_waiting(people.ada) == 1
    assert documents_waiting(theirs) == 5
    of_bolt = {"org": people.bolt.id, "scopes": ["admin", "documents:read"]}
    tokens = [eve.token(rag=of_bolt), eve.token(rag={**of_bolt, "key": NOBODYS})]
    keys = [key(eve, "documents:read", org_id=org.id) for org in (people.bolt, people.acme)]
    for narrowed in (*tokens, *keys):
        answer = eve.request("GET", STATS, token=narrowed)
        assert platform_error(answer, answer.status_code)["type"] in TURNED_AWAY
        looked = eve.request("GET", HEALTH, token=narrowed)
        assert looked.json().get("details") is None
        if not is_key(narrowed):
            assert eve.rpc("rag_stats", token=narrowed).json()["details"] == "admin_required"
    request = {"name": "k", "scopes": ["admin"], "org_id": people.bolt.id}
    assert eve.request("POST", "/api/keys", request).status_code == 403
    own_key = key(eve, "admin", org_id=people.acme.id)
    assert stats(eve, own_key)["total_documents"] == own["total_documents"]


def waits(world: World, org: str, user: str, count: int) -> None:
    """So many documents that are brought, of a home of their own."""
    world.sql(
        "with home as (insert into rag.collections (org_id, name) values (%s, gen_random_uuid()::text) "
        "returning org_id, id), brought as (insert into rag.documents (org_id, collection_id, title, "
        "content, content_hash, status) select org_id, id, 'x', 'x', repeat('0', 64), 'processing' "
        "from home, generate_series(1, %s) returning org_id, collection_id, id) "
        "insert into rag.jobs (org_id, collection_id, document_id, user_id, document) "
        "select org_id, collection_id, id, %s, '{}' from brought",
        org, count, user,
    )  # fmt: skip


def documents_waiting(actor: Actor) -> int:
    return int(actor.request("GET", HEALTH).json()["details"]["queue"]["documents"]["waiting"])
