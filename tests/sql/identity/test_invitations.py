"""Invitations to an org: written by its admins, accepted or declined by the invited user alone."""

from typing import Any

import psycopg

from tests.actors import Actor, World
from tests.conftest import People
from tests.sql.identity.test_manage_members import refusal
from tests.sql.sql_as_user import become

NO_INVITATION = (404, "invitation_not_found")


def invite(admin: Actor, user: Actor, **more: Any) -> None:
    answer = admin.rpc("rag_put_member", {"user_id": user.id, **more})
    assert answer.status_code == 204, answer.text


def answer(user: Actor, org_id: str, *, accept: bool) -> int:
    arguments = {"org_id": org_id, "accept": accept}
    return user.rpc("rag_answer_invitation", arguments).status_code


def orgs(user: Actor) -> list[str]:
    """The names of the user's orgs."""
    answer = user.rpc("rag_list_orgs")
    return [org["name"] for org in answer.json()] if answer.is_success else []


def invitations(user: Actor, token: str | None = None) -> list[tuple[str, str]]:
    """The name of each org that invites the user, and the role."""
    answer = user.rpc("rag_list_invitations", token=token)
    assert answer.status_code == 200, answer.text
    return [(row["org_name"], row["role"]) for row in answer.json()]


def rows(world: World, user: Actor, org_id: str) -> list[tuple[str, bool]]:
    """The role of the user's row, and whether it is accepted."""
    statement = "select role, accepted_at is not null from rag.members where user_id = %s and org_id = %s"
    return world.sql(statement, user.id, org_id)


def rows_written(actor: Actor, statement: str, **names: str) -> int:
    """The number of rows that the statement writes as that user, with the setting that lists members. An
    error is 0."""
    with psycopg.connect(actor.stack.database_url()) as connection:
        become(connection, actor)
        connection.execute("select set_config('rag.lists_members', 'true', true)")
        try:
            count = connection.execute(statement.encode(), names).rowcount
        except psycopg.Error:
            return 0
        connection.commit()
        return count


def test_an_invitation_gives_no_right_until_it_is_accepted(people: People, world: World):
    bob, acme = people.bob, people.acme.id
    before = world.as_user(bob, "select org_id::text, role from rag.memberships()")
    invite(people.ada, bob, role="admin")
    assert rows(world, bob, acme) == [("admin", False)]
    assert orgs(bob) == ["Bolt"]
    assert world.as_user(bob, "select org_id::text, role from rag.memberships()") == before
    assert bob.rpc("is_org_member", {"org_id": acme}).json() is False
    assert refusal(bob, "rag_list_members") == (403, "admin_required")
    assert refusal(bob, "rag_put_member", user_id=people.sam.id, org_id=acme) == (404, "org_not_found")
    assert invitations(bob) == [("Acme", "admin")]
    assert answer(bob, acme, accept=True) == 204
    assert (orgs(bob), invitations(bob)) == (["Acme", "Bolt"], [])
    assert rows(world, bob, acme) == [("admin", True)]


def test_a_user_without_an_org_accepts_or_declines(people: People, world: World):
    sam, acme = people.sam, people.acme.id
    assert invitations(sam) == []
    invite(people.ada, sam)
    assert answer(sam, acme, accept=False) == 204
    assert rows(world, sam, acme) == []
    assert answer(sam, acme, accept=True) == 404
    invite(people.ada, sam)
    assert answer(sam, acme, accept=True) == 204
    assert orgs(sam) == ["Acme"]
    for accept in (True, False):
        assert refusal(sam, "rag_answer_invitation", org_id=acme, accept=accept) == NO_INVITATION
    assert rows(world, sam, acme) == [("member", True)]


def test_a_removed_invitation_or_membership_is_not_revived(people: People, world: World):
    sam, acme = people.sam, people.acme.id
    for is_member in (False, True):
        invite(people.ada, sam)
        if is_member:
            assert answer(sam, acme, accept=True) == 204
        assert people.ada.rpc("rag_remove_member", {"user_id": sam.id}).status_code == 204
        assert refusal(sam, "rag_answer_invitation", org_id=acme, accept=True) == NO_INVITATION
        added = "insert into rag.members (org_id, user_id, accepted_at) values (%(acme)s, %(sam)s, {})"
        for accepted_at in ("null", "now()"):
            statement = added.format(accepted_at)
            assert rows_written(sam, statement, acme=acme, sam=sam.id) == 0
        assert rows(world, sam, acme) == []


def test_an_admin_does_not_accept_for_another_user(people: People, world: World):
    bob, acme, bolt = people.bob, people.acme.id, people.bolt.id
    names = {"acme": acme, "bob": bob.id}
    for added in (
        "insert into rag.members (org_id, user_id) values (%(acme)s, %(bob)s)",
        "insert into rag.members (org_id, user_id, accepted_at) values (%(acme)s, %(bob)s, now())",
    ):
        assert rows_written(people.ada, added, **names) == 0
    invite(people.ada, bob)
    # A change of the invitation leaves it open.
    invite(people.ada, bob, name="Bob")
    for changed in (
        "update rag.members set accepted_at = now() where user_id = %(bob)s",
        "update rag.members set accepted_at = now(), role = 'admin' where user_id = %(bob)s",
        "insert into rag.members (org_id, user_id, accepted_at) values (%(acme)s, %(bob)s, null) "
        "on conflict (org_id, user_id) do update set accepted_at = now()",
        "update rag.members set user_id = %(bob)s, accepted_at = now()",
    ):
        assert rows_written(people.ada, changed, **names) == 0, changed
    for org_id in (acme, bolt):
        assert refusal(people.ada, "rag_answer_invitation", org_id=org_id, accept=True) == NO_INVITATION
    assert rows(world, bob, acme) == [("member", False)]
    # Nor does the table answer over PostgREST.
    direct = people.ada.request("PATCH", f"/rest/v1/members?user_id=eq.{bob.id}", {"accepted_at": "now"})
    assert direct.status_code == 404
    # The other direction: an admin does not put a member back among the invited.
    statement = "update rag.members set accepted_at = null where user_id = %(bob)s"
    assert rows_written(people.ada, statement, bob=people.ann.id) == 0


def test_a_user_changes_nothing_but_the_acceptance(people: People, world: World):
    sam, acme = people.sam, people.acme.id
    changes = (
        "update rag.members set role = 'admin' where user_id = auth.uid()",
        "update rag.members set role = 'admin', accepted_at = now() where user_id = auth.uid()",
        "update rag.members set name = 'Ada', accepted_at = now() where user_id = auth.uid()",
        "update rag.members set accepted_at = null where user_id = auth.uid()",
    )
    invite(people.ada, sam, name="Sam Hill")
    for change in changes:
        assert rows_written(sam, change) == 0, change
    assert rows(world, sam, acme) == [("member", False)]
    accepting = "update rag.members set accepted_at = now() where user_id = auth.uid()"
    assert rows_written(sam, accepting) == 1
    for change in changes:
        assert rows_written(sam, change) == 0, change
    row = "select role, name from rag.members where user_id = %s and accepted_at is not null"
    assert world.sql(row, sam.id) == [("member", "Sam Hill")]


def test_a_key_and_a_narrowed_token_accept_nothing(people: People, world: World):
    bob, acme = people.bob, people.acme.id
    invite(people.ada, bob)
    for token in (bob.key_token(), bob.token(rag={"org": acme}), bob.token(rag={})):
        assert invitations(bob, token) == []
        for accept in (True, False):
            refused = refusal(bob, "rag_answer_invitation", token, org_id=acme, accept=accept)
            assert refused == NO_INVITATION
    assert rows(world, bob, acme) == [("member", False)]


def test_invitations_are_listed_apart_from_members(people: People):
    invite(people.ada, people.bob, name="Bob")
    members = people.ada.rpc("rag_list_members").json()
    assert (members["total"], people.bob.id in str(members)) == (4, False)
    invited = people.ada.rpc("rag_list_members", {"invited": True}).json()
    assert (invited["total"], [row["name"] for row in invited["members"]]) == (1, ["Bob"])
    assert invited["members"][0].keys() == members["members"][0].keys()
    assert people.ada.rpc("rag_remove_member", {"user_id": people.bob.id}).status_code == 204
    assert invitations(people.bob) == []


def test_an_org_has_at_most_a_hundred_open_invitations(people: People, world: World):
    world.sql(
        "with users as (insert into auth.users (id, email) "
        "select gen_random_uuid(), gen_random_uuid() || '@test.example' from generate_series(1, 99) "
        "returning id) "
        "insert into rag.members (org_id, user_id, accepted_at) select %s, id, null from users",
        people.acme.id,
    )
    invite(people.ada, people.sam)
    assert refusal(people.ada, "rag_put_member", user_id=people.bob.id) == (409, "too_many_invitations")
    # Members and open invitations are changed as before.
    invite(people.ada, people.sam, name="Sam")
    invite(people.ada, people.ann, name="Ann")
    assert answer(people.sam, people.acme.id, accept=True) == 204
    invite(people.ada, people.bob)


def test_the_answer_is_the_same_for_a_user_of_another_org_and_of_none(people: People):
    answers = [people.ada.rpc("rag_put_member", {"user_id": user.id}) for user in (people.sam, people.bob)]
    assert {(answer.status_code, answer.text) for answer in answers} == {(204, "")}
    listed = people.ada.rpc("rag_list_members", {"invited": True}).json()["members"]
    own = [{name: row[name] for name in row if name not in ("user_id", "created_at")} for row in listed]
    assert own[0] == own[1]
