"""rag.stored_bytes: the sum of an org's texts and files after each change, and the limit of its tier."""

from typing import Any

import httpx
import pytest

from tests.actors import Actor, Org, World, put_arguments, vector
from tests.conftest import People
from tests.sql import passages

COUNTED = "select coalesce(sum(bytes), 0)::bigint from rag.stored_bytes where org_id = %s"
STORED = """
select coalesce(sum(octet_length(documents.content) + coalesce(length(originals.bytes), 0)
  + coalesce(originals.object_bytes, 0)), 0)::bigint
from rag.documents
left join rag.originals on originals.org_id = documents.org_id and originals.document_id = documents.id
where documents.org_id = %s
"""


def put(actor: Actor, org: Org, size: int, **fields: Any) -> httpx.Response:
    arguments = put_arguments(org, [vector(1)], **fields)
    arguments["document"]["content"] = "0" * size
    return actor.store(arguments)


def stored(world: World, org: Org) -> int:
    """The sum of the log, which is that of the rows."""
    ((counted,),), ((actual,),) = world.sql(COUNTED, org.id), world.sql(STORED, org.id)
    assert counted == actual
    return int(counted)


def test_every_change_of_a_document_counts(people: People, world: World):
    (row,) = put(people.ann, people.acme, 1000, external_id="a").json()
    assert stored(world, people.acme) == 1000
    put(people.ann, people.acme, 300, external_id="a")
    assert stored(world, people.acme) == 300
    (private,) = put(people.alf, people.acme, 50, external_id="b", private=True).json()
    assert (stored(world, people.acme), stored(world, people.bolt)) == (350, 0)
    change = "update rag.documents set title = 'new' where org_id = %s"
    world.sql(change, people.acme.id)
    assert len(world.sql("select from rag.stored_bytes where org_id = %s", people.acme.id)) <= 3
    assert people.ann.rpc("rag_delete_document", {"document_id": row["document_id"]}).json() is True
    assert stored(world, people.acme) == 50
    assert people.ann.rpc("rag_delete_document", {"document_id": private["document_id"]}).json() is False
    assert stored(world, people.acme) == 50
    collection = world.sql("select collection_id::text from rag.documents where org_id = %s", people.acme.id)
    arguments = {"collection_id": collection[0][0], "cascade": True}
    assert people.ada.rpc("rag_delete_collection", arguments).status_code == 204
    assert stored(world, people.acme) == 0
    world.sql("delete from rag.orgs where id = %s", people.acme.id)
    assert world.sql(COUNTED, people.acme.id) == [(0,)]


def test_the_log_stays_short(people: People, world: World):
    # One write in sixteen folds it; of this session always the same ones.
    world.sql("select setseed(0.5)")
    for number in range(40):
        passages.put(world, people.ann, "0" * (1 + number), chunks=[], external_id="a")
    assert stored(world, people.acme) == 40
    ((rows,),) = world.sql("select count(*) from rag.stored_bytes where org_id = %s", people.acme.id)
    assert rows < 40


def test_a_text_beyond_the_limit_is_refused_and_a_smaller_one_stored(people: People, world: World):
    world.tier(people.acme, storage_bytes=1000)
    assert put(people.ann, people.acme, 900, external_id="a").status_code == 200
    full = put(people.alf, people.acme, 101, external_id="b", private=True)
    assert (full.status_code, full.json()["details"]) == (429, "storage_limit_reached")
    assert put(people.alf, people.acme, 100, external_id="b").status_code == 200
    assert put(people.ann, people.acme, 901, external_id="a").status_code == 429
    assert put(people.bob, people.bolt, 2000).status_code == 200
    # An org above a lowered limit may make its documents smaller.
    world.tier(people.acme, storage_bytes=10)
    assert put(people.ann, people.acme, 800, external_id="a").status_code == 200
    assert stored(world, people.acme) == 900


def test_each_default_tier_has_limits_of_bytes(world: World):
    rows = world.sql(
        "select name from rag.tiers where name not like 'test-%%' "
        "and (storage_bytes is null or upload_bytes_per_minute is null)"
    )
    assert rows == []


@pytest.mark.parametrize("scopes", [["documents:read"], ["chat:read"]])
def test_no_key_without_a_scope_that_writes_changes_the_sum(people: People, world: World, scopes: list[str]):
    put(people.ann, people.acme, 100)
    claims = {"rag": {"org": people.acme.id, "scopes": scopes}}
    for statement in (
        "update rag.stored_bytes set bytes = 0 returning 1",
        "delete from rag.stored_bytes returning 1",
    ):
        assert world.as_user(people.ann, statement, **claims) == []
    assert stored(world, people.acme) == 100
