"""Health of the database: the worker's queues, by kind, for the admins of an org."""

from typing import Any

import httpx

from tests.actors import Actor, World, vector, webhook_arguments
from tests.conftest import People

Row = dict[str, Any]


def test_admins_see_their_orgs_pending_work_by_kind(people: People, world: World, no_jobs: None):
    acme = people.acme.id
    for number in range(3):
        people.ann.put([vector(number)], title=f"Document {number}")
    (home, first), *_ = world.sql("select collection_id, id from rag.documents where org_id = %s", acme)
    # Of two without extracted names one has been given up; the third has its names.
    world.sql(
        "update rag.jobs set state = case title when 'Document 2' then 'done' "
        "when 'Document 1' then 'failed' else 'waiting' end, due_at = now() - interval '20 minutes' "
        "from rag.documents where documents.id = document_id and documents.org_id = %s", acme,
    )  # fmt: skip
    world.sql(
        "insert into rag.jobs (org_id, collection_id, document_id, user_id, document, due_at, state, lease) "
        "values (%s, %s, %s, %s, '{}', now() + interval '1 minute', 'running', gen_random_uuid())",
        acme, home, first, people.ann.id,
    )  # fmt: skip
    # Two uploads, of which one is under way.
    for minutes in (-5, 5):
        world.sql(
            "insert into rag.object_removals (org_id, path, collection_id, due_at) select %(org)s, "
            "concat_ws('/', %(org)s, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'a'), "
            "%(home)s, now() + make_interval(mins => %(minutes)s)".replace("%(org)s", f"'{acme}'")
            .replace("%(home)s", f"'{home}'").replace("%(minutes)s", str(minutes))
        )  # fmt: skip
    hook = ok(people.ada.rpc("rag_create_webhook", webhook_arguments(org_id=acme)))[0]["id"]
    world.sql(
        "insert into rag.deliveries (org_id, webhook_id, collection_id, event_id, event, object, due_at) "
        "values (%s, %s, %s, gen_random_uuid(), 'document.deleted', '{}', now() - interval '10 minutes')",
        acme, hook, home,
    )  # fmt: skip
    # One is due, one waits for its interval, one is disabled.
    for minutes, enabled in ((-15, True), (15, True), (-15, False)):
        world.sql(
            "insert into rag.sources (org_id, collection_id, user_id, kind, address, interval_seconds, "
            "max_items, due_at, enabled) values (%s, %s, %s, 'website', 'https://docs.example/', 600, 10, "
            "now() + make_interval(mins => %s), %s)", acme, home, people.ada.id, minutes, enabled,
        )  # fmt: skip

    assert queues(people.ada) == {
        "documents": (0, 1, None), "extractions": (1, 0, 20), "deliveries": (1, 0, 10), "removals": (1, 0, 5),
        "sources": (1, 0, 15),
    }  # fmt: skip
    # An address that does not answer is waited for on purpose.
    world.sql("update rag.endpoints set failing_since = now() where org_id = %s", acme)
    assert queues(people.ada)["deliveries"] == (1, 0, None)
    other = world.user(people.bolt, role="admin")
    assert set(queues(other).values()) == {(0, 0, None)}
    assert people.ann.rpc("rag_health").json()[0]["queues"] is None


CLAIMS = (
    "rag_claim_jobs('ingestion')", "rag_claim_jobs('extraction')", "rag_claim_deliveries()",
    "rag_claim_removals()", "rag_claim_sources()",
)  # fmt: skip


def test_the_worker_leaves_out_paused_orgs(people: People, world: World, no_jobs: None):
    acme = people.acme.id
    people.ann.put([vector(1)], title="A document")
    ((home, document),) = world.sql("select collection_id, id from rag.documents where org_id = %s", acme)
    world.sql("update rag.jobs set state = 'waiting' where org_id = %s and kind = 'extraction'", acme)
    world.sql(
        "insert into rag.jobs (org_id, collection_id, document_id, user_id, document) "
        "values (%s, %s, %s, %s, '{}')", acme, home, document, people.ann.id,
    )  # fmt: skip
    world.sql(
        "insert into rag.object_removals (org_id, path, collection_id) select id, "
        "concat_ws('/', id, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'a'), %s "
        "from rag.orgs where id = %s", home, acme,
    )  # fmt: skip
    hook = ok(people.ada.rpc("rag_create_webhook", webhook_arguments(org_id=acme)))[0]["id"]
    world.sql(
        "insert into rag.deliveries (org_id, webhook_id, collection_id, event_id, event, object) "
        "values (%s, %s, %s, gen_random_uuid(), 'document.deleted', '{}')", acme, hook, home,
    )  # fmt: skip
    world.sql(
        "insert into rag.sources (org_id, collection_id, user_id, kind, address, interval_seconds, "
        "max_items) values (%s, %s, %s, 'website', 'https://docs.example/', 600, 10)",
        acme, home, people.ada.id,
    )  # fmt: skip
    world.sql("insert into rag.collections (org_id, name, deleted_at) values (%s, 'gone', now())", acme)

    def claimed() -> dict[str, int]:
        counts = {name: world.as_role("rag_worker", f"select count(*) from public.{name}") for name in CLAIMS}
        removed = world.as_role("rag_worker", "select rag_remove_deleted_collections()")
        return {name: count for name, ((count,),) in {**counts, "collections": removed}.items()}

    world.tier(people.acme)
    pause = "update rag.tiers set is_paused = %s where name = (select tier from rag.orgs where id = %s)"
    world.sql(pause, True, acme)
    assert set(claimed().values()) == {0}
    assert set(queues(people.ada).values()) == {(0, 0, None)}
    world.sql(pause, False, acme)
    assert set(claimed().values()) == {1}


def queues(actor: Actor) -> Row:
    """Of each kind waiting and running items, and for how many minutes the oldest has been due."""
    (health,) = ok(actor.rpc("rag_health"))
    numbers = Row()
    for kind, queue in health["queues"].items():
        seconds = queue["oldest_seconds"]
        numbers[kind] = (queue["waiting"], queue["running"], seconds and int(seconds) // 60)
    return numbers


def ok(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()
