"""The list of an org's members, for its admins alone."""

import psycopg

from tests.actors import Actor, World, hit_arguments
from tests.conftest import People
from tests.sql.sql_as_user import become


def test_an_admin_lists_the_members_of_the_org_with_their_calls(people: People, world: World):
    world.sql("update rag.members set name = 'Ann Lee' where user_id = %s", people.ann.id)
    for _ in range(2):
        people.ann.rpc("rag_check_rate_limit", hit_arguments())
    world.sql("update rag.org_calls set day = day - 1 where owner_id = %s", people.ann.id)
    people.ann.rpc("rag_check_rate_limit", hit_arguments())
    body = people.ada.rpc("rag_list_members").json()
    assert body["total"] == len(body["members"]) == 4
    first, *others = body["members"]
    assert (first["name"], first["user_id"], first["role"]) == ("Ann Lee", people.ann.id, "member")
    today = str(world.sql("select (now() at time zone 'UTC')::date")[0][0])
    assert (first["calls"], first["last_called_on"]) == (3, today)
    by_id = {row["user_id"]: row for row in others}
    assert set(by_id) == {people.ada.id, people.alf.id, people.kim.id}
    assert by_id[people.ada.id]["role"] == "admin"
    assert (by_id[people.alf.id]["calls"], by_id[people.alf.id]["last_called_on"]) == (0, None)
    page = people.ada.rpc("rag_list_members", {"limit": 2, "offset": 1}).json()
    assert (page["total"], page["members"]) == (4, body["members"][1:3])


def test_the_setting_that_prevents_recursion_grants_nothing(people: People):
    def listed(actor: Actor, setting: str) -> set[str]:
        with psycopg.connect(actor.stack.database_url()) as connection:
            become(connection, actor)
            connection.execute("select set_config('rag.lists_members', %s, true)", [setting])
            return {user for (user,) in connection.execute("select user_id::text from rag.members")}

    for setting in ("true", "false"):
        for actor in (people.ann, people.kim):
            assert listed(actor, setting) == {actor.id}
    assert listed(people.sam, "true") == set()
    assert listed(people.ada, "false") == {people.ada.id}
    assert listed(people.ada, "true") == {people.ada.id, people.ann.id, people.alf.id, people.kim.id}


def test_a_replaced_org_members_shows_no_other_org(people: People):
    rows = ", ".join(
        f"('{actor.org.id}'::uuid, '{actor.id}'::uuid, 'member', null::text, now())"
        for actor in (people.ann, people.bob)
        if actor.org
    )
    with psycopg.connect(people.ada.stack.database_url()) as connection:
        connection.execute(
            "create or replace function rag.org_members(org_ids uuid[]) returns table "
            "(org_id uuid, user_id uuid, role text, name text, created_at timestamptz) language sql stable "
            f"security invoker set search_path = '' as $$ values {rows} $$".encode()
        )
        become(connection, people.ada)
        row = connection.execute("select public.rag_list_members()").fetchone()
        connection.rollback()
    assert row
    assert (row[0]["total"], [member["user_id"] for member in row[0]["members"]]) == (1, [people.ann.id])
