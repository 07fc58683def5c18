"""States and leases of sources: the worker alone sets them."""

from typing import Any

import psycopg
import pytest

from tests.actors import Actor, World
from tests.conftest import People
from tests.sql.sql_as_user import run

CLAIM = "select lease::text from public.rag_claim_sources(1, 300)"


def claimed(world: World, admin: Actor) -> tuple[str, str]:
    """The id of a new source, and the lease that the worker has."""
    ((home,),) = world.sql(
        "insert into rag.collections (org_id, name) values (%s, 'site') returning id::text",
        admin.org and admin.org.id,
    )
    arguments = {"collection_id": home, "kind": "website", "address": "https://docs.example/"}
    source: str = admin.rpc("rag_create_source", arguments).json()[0]["id"]
    ((lease,),) = world.as_role("rag_worker", CLAIM)
    return source, lease


def test_no_user_sets_the_state_or_the_lease_of_a_source(
    people: People, world: World, no_jobs: None, subtests: pytest.Subtests
):
    """Not even an admin of the org, who changes other columns."""
    source, lease = claimed(world, people.ada)
    for change in (
        "state = 'waiting', lease = null",
        "state = 'running', lease = gen_random_uuid()",
        "state = state",
        "lease = lease",
        "attempts = 0",
    ):
        statement = f"update rag.sources set {change}, user_id = auth.uid() where id = %(source)s"
        with subtests.test(change=change), pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(people.ada, statement, source=source)
    run(people.ada, "update rag.sources set user_id = auth.uid(), max_items = 7", source=source)
    row: Any = world.sql("select state, lease::text, max_items from rag.sources where id = %s", source)
    assert row == [("running", lease, 7)]


def test_a_lease_that_has_ended_stores_and_ends_nothing(people: People, world: World, no_jobs: None):
    """Also before another worker claims the source."""
    source, lease = claimed(world, people.ada)
    token = people.ada.token(rag={"org": people.acme.id, "lease": lease})
    listed = {"items": [{"item": "https://docs.example/a", "version": None}]}
    assert people.ada.rpc("rag_list_source_items", listed, token=token).status_code == 200
    world.sql("update rag.sources set due_at = now() where id = %s", source)
    refused = people.ada.rpc("rag_list_source_items", listed, token=token)
    assert (refused.status_code, refused.json()["details"]) == (409, "lease_lost")
    end = "select public.rag_end_source(%s, %s, %s, '{}')"
    assert world.as_role("rag_worker", end, people.acme.id, source, lease) == [(False,)]
    assert world.sql("select finished_at from rag.sources where id = %s", source) == [(None,)]
