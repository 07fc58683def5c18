"""Members of an org, invited, changed and removed by its admins alone."""

from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.actors import Actor, World, key_arguments
from tests.conftest import People
from tests.sql.sql_as_user import become


def roles(world: World, org_id: str) -> dict[str, str]:
    """The role of each member of the org, by user."""
    return dict(world.sql("select user_id::text, role from rag.members where org_id = %s", org_id))


def refusal(actor: Actor, function: str, token: str | None = None, **arguments: Any) -> tuple[int, str]:
    answer = actor.rpc(function, arguments, token=token)
    return answer.status_code, answer.json()["details"]


def test_a_removal_revokes_keys_and_is_recorded_as_a_change_is(people: People, world: World):
    assert people.alf.rpc("rag_create_key", key_arguments(org_id=people.acme.id)).status_code == 200
    for function in ("rag_put_member", "rag_remove_member"):
        assert people.ada.rpc(function, {"user_id": people.alf.id}).status_code == 204
    keys = "select count(*), count(revoked_at) from rag.api_keys where owner_id = %s"
    assert world.sql(keys, people.alf.id) == [(1, 1)]
    events = "select event, user_id::text, namespace from rag.audit_events where org_id = %s order by event"
    assert world.sql(events, people.acme.id) == [
        (event, people.ada.id, people.alf.id) for event in ("member.put", "member.remove")
    ]


def test_other_callers_change_no_members(people: People, world: World):
    acme = people.acme.id
    before = roles(world, acme)
    bound, reader = people.ada.key_token(collection=acme), people.ada.key_token(scopes=["documents:write"])
    for function in ("rag_put_member", "rag_remove_member"):
        for actor, token, status, code in (
            (people.ann, None, 403, "admin_required"),
            (people.bob, None, 404, "org_not_found"),
            (people.sam, None, 403, "no_org"),
            (people.ada, bound, 403, "admin_required"),
            (people.ada, reader, 403, "admin_required"),
            (people.ada, people.ada.key_token(org=acme), 403, "user_required"),
        ):
            refused = refusal(actor, function, token, user_id=people.alf.id, org_id=acme)
            assert refused == (status, code), (function, actor)
    # Not oneself either, and no other org's members.
    assert refusal(people.ann, "rag_put_member", user_id=people.ann.id, role="admin")[0] == 403
    assert refusal(people.ada, "rag_remove_member", user_id=people.bob.id) == (404, "member_not_found")
    assert roles(world, acme) == before


def test_an_admin_cannot_leave_or_change_the_own_role(people: People, world: World):
    for function in ("rag_put_member", "rag_remove_member"):
        assert refusal(people.ada, function, user_id=people.ada.id) == (409, "own_membership")
    assert roles(world, people.acme.id)[people.ada.id] == "admin"


def test_a_member_leaves_an_org_and_a_key_does_not(people: People, world: World):
    key = people.kim.key_token(org=people.bolt.id)
    arguments = {"user_id": people.kim.id, "org_id": people.bolt.id}
    assert refusal(people.kim, "rag_remove_member", key, **arguments) == (403, "admin_required")
    assert people.kim.rpc("rag_remove_member", arguments).status_code == 204
    assert people.kim.id not in roles(world, people.bolt.id)
    assert people.kim.id in roles(world, people.acme.id)


def test_invalid_members_are_refused(people: People, subtests: pytest.Subtests):
    sam = people.sam.id
    for arguments, status, code in (
        ({"user_id": str(uuid4())}, 404, "user_not_found"),
        ({"user_id": None}, 404, "user_not_found"),
        ({"user_id": sam, "role": "owner"}, 400, "invalid_role"),
        ({"user_id": sam, "role": None}, 400, "invalid_role"),
        ({"user_id": sam, "name": ""}, 400, "invalid_name"),
        ({"user_id": sam, "name": "x" * 201}, 400, "invalid_name"),
        ({"user_id": sam, "name": "S\u202eam"}, 400, "invalid_name"),
    ):
        with subtests.test(arguments=arguments):
            assert refusal(people.ada, "rag_put_member", **arguments) == (status, code)


def test_the_policies_alone_keep_members_as_they_are(people: People, subtests: pytest.Subtests):
    """A member and an admin of another org, past the functions, with the setting that lists members."""
    names = {"acme": people.acme.id, "bolt": people.bolt.id, "ann": people.ann.id, "bob": people.bob.id}
    for actor in (people.ann, people.bob, people.kim):
        for statement in (
            "update rag.members set role = 'admin'",
            "delete from rag.members where user_id <> auth.uid()",
        ):
            with (
                subtests.test(actor=actor.email, statement=statement),
                psycopg.connect(actor.stack.database_url()) as connection,
            ):
                become(connection, actor)
                connection.execute("select set_config('rag.lists_members', 'true', true)")
                assert connection.execute(statement.encode()).rowcount == 0
                connection.rollback()
    with psycopg.connect(people.ada.stack.database_url()) as connection:
        become(connection, people.ada)
        connection.execute("select set_config('rag.lists_members', 'true', true)")
        others = connection.execute(
            "update rag.members set role = 'admin' returning user_id::text"
        ).fetchall()
        assert {user for (user,) in others} == {people.ann.id, people.alf.id, people.kim.id}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("insert into rag.members (org_id, user_id) values (%(bolt)s, %(ann)s)", names)


def test_two_admins_who_remove_each_other_leave_one(people: People, world: World):
    acme, pair = people.acme.id, (people.ada, people.alf)
    world.sql("update rag.members set role = 'admin' where user_id = %s", people.alf.id)
    barrier, statuses = Barrier(2), list[int]()

    def remove(actor: Actor, other: Actor) -> None:
        barrier.wait()
        statuses.append(actor.rpc("rag_remove_member", {"user_id": other.id}).status_code)

    threads = [Thread(target=remove, args=(actor, other)) for actor, other in (pair, pair[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses)[0] == 204
    assert sorted(statuses)[1] in (403, 404)
    assert list(roles(world, acme).values()).count("admin") == 1


def test_memberships_elsewhere_are_changed_there(people: People):
    """An adopter's own memberships: rag.members has no row of the admin."""
    memberships = (
        "create or replace function rag.memberships() returns table (org_id uuid, role text) language sql "
        f"stable security invoker set search_path = '' as $$ select '{people.acme.id}'::uuid, 'admin' $$"
    )
    with psycopg.connect(people.sam.stack.database_url()) as connection:
        connection.execute(memberships.encode())
        become(connection, people.sam)
        for statement in ("rag_put_member", "rag_remove_member"):
            with connection.transaction(force_rollback=True), pytest.raises(psycopg.Error) as refused:
                connection.execute(f"select public.{statement}(%s)".encode(), [people.ann.id])
            assert refused.value.diag.message_detail == "members_elsewhere"
        connection.rollback()
