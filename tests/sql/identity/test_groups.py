"""Groups, grants on collections, and the scopes of OAuth clients."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.actors import Actor, World, vector
from tests.conftest import People
from tests.sql.sql_as_user import become

TABLES = (
    "collections", "documents", "chunks", "facets", "title_entities", "mentions", "relations", "originals",
    "jobs", "document_terms", "term_segments", "term_blocks", "collection_grants",
)  # fmt: skip


def restrict(actor: Actor, collection_id: str, *grants: dict[str, Any]) -> dict[str, Any]:
    """The collection's access after the actor restricted it, with a grant to manage for the actor."""
    own = {"user_id": actor.id, "access": "manage"}
    arguments = {"collection_id": collection_id, "restricted": True, "grants": [own, *grants]}
    answer = actor.rpc("rag_put_access", arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def seen(world: World, actor: Actor, collection_id: str, **claims: Any) -> set[str]:
    """The tables of which the actor sees rows of that collection."""
    return {
        table
        for table in TABLES
        if world.as_user(
            actor,
            f"select 1 from rag.{table} where {'id' if table == 'collections' else 'collection_id'} = %s",
            collection_id,
            **claims,
        )
    }


@pytest.fixture
def hr(people: People, world: World) -> str:
    """The id of a collection of ann's with a document."""
    people.ann.put([vector(1)], collection="hr", title="Salaries of Acme", content="Salaries of Maria Gomez.",
                   metadata={"year": 2024})  # fmt: skip
    ((collection_id,),) = world.sql(
        "select id::text from rag.collections where org_id = %s and name = 'hr'", people.acme.id
    )
    return str(collection_id)


@pytest.fixture
def claim(world: World) -> Iterator[None]:
    world.sql("update rag.settings set groups_claim = '{app_metadata,groups}'")
    yield
    world.sql("update rag.settings set groups_claim = null")


def test_without_a_grant_nothing_of_a_restricted_collection_is_seen(people: People, world: World, hr: str):
    before = seen(world, people.alf, hr)
    assert before >= {"collections", "documents", "chunks", "facets", "title_entities", "document_terms"}
    restrict(people.ann, hr)
    assert seen(world, people.alf, hr) == set()
    # An admin sees all, a manager the grants too.
    assert seen(world, people.ada, hr) == seen(world, people.ann, hr) == before | {"collection_grants"}
    assert people.alf.match(vector(1)) == []
    for function, arguments in (
        ("rag_get_collection", {"collection_id": hr}),
        ("rag_get_access", {"collection_id": hr}),
        ("rag_put_access", {"collection_id": hr, "restricted": False}),
        ("rag_delete_collection", {"collection_id": hr}),
    ):
        answer = people.alf.rpc(function, arguments)
        assert (answer.status_code, answer.json()["details"]) == (404, "collection_not_found"), function
    assert people.alf.rpc("rag_list_collections").json()["total"] == 0


def test_the_name_of_a_restricted_collection_is_free_for_those_who_do_not_see_it(people: People, hr: str):
    restrict(people.ann, hr)
    people.alf.put([vector(2)], collection="hr", title="Of alf")
    (row,) = people.alf.match(vector(2))
    assert row["title"] == "Of alf"
    # The name denotes the restricted one for those who see both.
    people.ann.put([vector(3)], collection="hr", title="Of ann")
    assert {row["title"] for row in people.alf.match(vector(3))} == {"Of alf"}


RIGHTS = [("view", {"view"}), ("edit", {"view", "edit"}), ("manage", {"view", "edit", "manage"})]


@pytest.mark.parametrize(("access", "allowed"), RIGHTS)
def test_each_right_includes_the_smaller_ones(
    people: People, world: World, hr: str, access: str, allowed: set[str]
):
    restrict(people.ann, hr, {"user_id": people.alf.id, "access": access})
    assert len(people.alf.match(vector(1))) == 1
    stored = people.alf.rpc(
        "rag_put_documents",
        {"collection": "hr", "documents": [
            {"title": "New", "content": "New.", "embedding_model": "m", "chunks": []}
        ]},
    )  # fmt: skip
    assert (stored.status_code == 403) == ("edit" not in allowed), stored.text
    ((document,),) = world.sql(
        "select id::text from rag.documents where collection_id = %s and title like 'Salaries%%'", hr
    )
    for statement in (
        "update rag.documents set title = 'Changed' where id = %s returning 1",
        "delete from rag.facets where document_id = %s returning 1",
        "delete from rag.chunks where document_id = %s returning 1",
        "delete from rag.documents where id = %s returning 1",
    ):
        assert bool(world.as_user(people.alf, statement, document)) == ("edit" in allowed), statement
    answers = [
        people.alf.rpc("rag_update_collection", {"collection_id": hr, "description": "Changed"}),
        people.alf.rpc("rag_delete_collection", {"collection_id": hr, "cascade": True}),
    ]
    for answer in answers:
        assert (answer.status_code == 403) == ("manage" not in allowed), answer.text
        if answer.status_code == 403:
            assert answer.json()["details"] == "access_denied"


def test_a_group_has_the_right_from_the_next_request_on(people: People, world: World, hr: str):
    restrict(people.ann, hr, {"group": "HR", "access": "view"})
    assert people.alf.match(vector(1)) == []
    for members, rows in (([people.alf.id], 1), ([], 0), ([people.alf.id], 1)):
        answer = people.ada.rpc("rag_put_group", {"name": "HR", "user_ids": members})
        assert answer.status_code == 204, answer.text
        assert len(people.alf.match(vector(1))) == rows
    assert people.ada.rpc("rag_list_groups").json()["groups"] == [
        {"name": "HR", "description": None, "user_ids": [people.alf.id]}
    ]
    # A deleted group opens nothing.
    assert people.ada.rpc("rag_delete_group", {"name": "HR"}).status_code == 204
    assert people.alf.match(vector(1)) == []
    for function, arguments in (
        ("rag_put_group", {"name": "HR", "user_ids": [people.alf.id]}),
        ("rag_list_groups", {}),
    ):
        assert people.alf.rpc(function, arguments).status_code == 403


def test_a_claim_of_the_token_names_groups_of_all_orgs_or_of_one(
    people: People, world: World, hr: str, claim: None
):
    restrict(people.ann, hr, {"group": "HR", "access": "view"})
    of_others: list[Any] = [
        [],
        ["hr"],
        "HR",
        {"HR": True},
        {people.acme.id: "HR"},
        {people.alf.id: ["HR"]},
        None,
    ]
    for groups in of_others:
        assert seen(world, people.alf, hr, app_metadata={"groups": groups}) == set(), groups
    for groups in (["x", "HR"], {people.acme.id: ["HR"]}):
        assert "chunks" in seen(world, people.alf, hr, app_metadata={"groups": groups}), groups
    assert seen(world, people.bob, hr, app_metadata={"groups": ["HR"]}) == set()
    assert seen(world, people.kim, hr, app_metadata={"groups": {people.bolt.id: ["HR"]}}) == set()


def test_originals_need_a_grant_for_them(people: People, world: World, hr: str):
    ((document,),) = world.sql(
        "select id::text from rag.documents where collection_id = %s and title like 'Salaries%%'", hr
    )
    world.sql(
        "insert into rag.originals (org_id, document_id, collection_id, bytes) values (%s, %s, %s, 'x')",
        people.acme.id, document, hr,
    )  # fmt: skip
    for access, original in (("view", False), ("view", True), ("edit", False)):
        restrict(people.ann, hr, {"user_id": people.alf.id, "access": access, "original": original})
        visible = seen(world, people.alf, hr)
        assert "chunks" in visible
        assert ("originals" in visible) == (original or access == "edit")


def test_only_creators_and_admins_restrict_an_open_collection(people: People, hr: str):
    arguments = {
        "collection_id": hr,
        "restricted": True,
        "grants": [{"user_id": people.alf.id, "access": "manage"}],
    }
    answer = people.alf.rpc("rag_put_access", arguments)
    assert (answer.status_code, answer.json()["details"]) == (403, "access_denied")
    for grants in ([], [{"user_id": people.ann.id, "access": "edit"}], [{"group": "HR", "access": "manage"}]):
        answer = people.ann.rpc("rag_put_access", arguments | {"grants": grants})
        assert (answer.status_code, answer.json()["details"]) == (400, "own_grant"), answer.text
    malformed: list[Any] = [
        {}, None, [1], [{}], [{"access": "view"}],
        [{"group": "a", "user_id": people.alf.id, "access": "view"}],
        [{"group": "a", "access": "own"}],
        [{"group": "a", "access": "view"}, {"group": "a", "access": "edit"}],
        [{"user_id": "me", "access": "view"}],
    ]  # fmt: skip
    for grants in malformed:
        answer = people.ann.rpc("rag_put_access", arguments | {"grants": grants})
        assert answer.status_code == 400, (grants, answer.text)
    assert people.alf.rpc("rag_get_access", {"collection_id": hr}).json() == {
        "collection_id": hr, "restricted": False, "access": "manage", "grants": [],
    }  # fmt: skip


def test_an_opened_collection_has_no_grants(people: People, hr: str):
    restrict(people.ann, hr, {"user_id": people.alf.id, "access": "view"})
    opened = people.ann.rpc("rag_put_access", {"collection_id": hr, "restricted": False})
    assert (opened.json()["restricted"], opened.json()["grants"]) == (False, [])
    assert people.alf.rpc("rag_get_access", {"collection_id": hr}).json()["access"] == "manage"


def test_new_collections_are_restricted_where_the_org_asks_for_it(people: People, world: World):
    assert people.ann.rpc("rag_restrict_new_collections", {"restricts": True}).status_code == 403
    assert people.ada.rpc("rag_restrict_new_collections", {"restricts": True}).status_code == 204
    people.ann.put([vector(1)], collection="hr")
    assert people.alf.match(vector(1)) == []
    assert len(people.ann.match(vector(1))) == len(people.ada.match(vector(1))) == 1
    people.ann.put([vector(2)], collection="hr", title="The second")
    assert world.sql("select count(*) from rag.collections where org_id = %s", people.acme.id) == [(1,)]


def test_owners_withdraw_their_documents_without_a_right(people: People, world: World, hr: str):
    document = people.alf.put([vector(5)], collection="hr", title="Of alf", private=True)
    restrict(people.ann, hr)
    assert [row["title"] for row in people.alf.match(vector(5))] == ["Of alf"]
    assert people.alf.rpc("rag_delete_document", {"document_id": document}).status_code in (200, 204)
    assert world.sql("select count(*) from rag.documents where id = %s", document) == [(0,)]
    with pytest.raises(Exception, match="row-level security"):
        world.as_user(
            people.alf,
            "insert into rag.documents (org_id, collection_id, owner_id, title, content, content_hash) "
            "values (%s, %s, %s, 't', 'c', repeat('a', 64))",
            people.acme.id, hr, people.alf.id,
        )  # fmt: skip


def test_a_key_has_no_more_than_its_owner(people: People, world: World, hr: str):
    restrict(people.ann, hr, {"user_id": people.alf.id, "access": "view"})
    for scopes in (["admin"], ["documents:write", "collections:manage", "documents:read"]):
        rag: dict[str, Any] = {"org": people.acme.id, "scopes": scopes}
        assert "chunks" in seen(world, people.alf, hr, rag=rag)
        assert world.as_user(people.alf, "delete from rag.documents where true returning 1", rag=rag) == []
    for collection in (hr, None):
        rag = {"org": people.acme.id, "collection": collection, "scopes": ["documents:read"]}
        world.sql("delete from rag.collection_grants where user_id = %s", people.alf.id)
        assert seen(world, people.alf, hr, rag=rag) == set()


def test_an_oauth_client_reads_unless_it_has_more_scopes(people: People, world: World, hr: str):
    restrict(people.ann, hr)
    claims: dict[str, Any] = {"client_id": "a client"}
    delete = "delete from rag.documents where collection_id = %s returning 1"
    for scopes, deletes in ((None, False), (["documents:read"], False), (["documents:write"], True)):
        world.sql("delete from rag.oauth_clients")
        if scopes:
            world.sql("insert into rag.oauth_clients (client_id, scopes) values ('a client', %s)", scopes)
        assert "chunks" in seen(world, people.ann, hr, **claims)
        assert bool(world.as_user(people.ann, delete, hr, **claims)) == deletes
    world.sql("delete from rag.oauth_clients")
    # An admin's client is no admin.
    assert world.as_user(people.ada, "select * from rag.admin_org_ids()", **claims) == []
    assert seen(world, people.ada, hr, **claims) == set()


def test_changes_of_a_restricted_collection_have_a_channel_of_their_own(
    people: People, world: World, hr: str
):
    org = people.acme.id
    channel = "select rag.restricted_channel(%s, %s)::text"
    assert world.sql(channel, org, hr) == [(None,)]
    restrict(people.ann, hr)
    assert world.sql(channel, org, hr) == [(hr,)]
    for actor, may_receive in (
        (people.ann, True),
        (people.ada, True),
        (people.alf, False),
        (people.bob, False),
    ):
        topic = f"rag:{org}:{hr}"
        assert world.as_user(actor, "select rag.may_receive(%s)", topic) == [(may_receive,)]


def test_chats_about_a_collection_need_its_view(people: People, world: World, hr: str):
    world.sql(
        "with session as (insert into rag.sessions (org_id, owner_id, collection_id, title) "
        "values (%s, %s, %s, 'Salaries') returning *) "
        "insert into rag.messages (org_id, session_id, ordinal, owner_id, collection_id, role, content) "
        "select org_id, id, 0, owner_id, collection_id, 'assistant', 'The salaries' from session",
        people.acme.id, people.alf.id, hr,
    )  # fmt: skip
    for rows in (1, 0):
        for table in ("sessions", "messages"):
            assert len(world.as_user(people.alf, f"select 1 from rag.{table}")) == rows, table
        restrict(people.ann, hr)


def test_users_who_follow_each_other_in_a_transaction_have_their_own_rights(people: People, hr: str):
    restrict(people.ann, hr)
    with psycopg.connect(people.ann.stack.database_url()) as connection:
        for actor, rows in ((people.ann, 1), (people.alf, 0), (people.ann, 1)):
            become(connection, actor)
            statement = "select 1 from rag.documents where collection_id = %s"
            assert len(connection.execute(statement, [hr]).fetchall()) == rows


def test_a_loaded_snapshot_has_the_grants_of_the_collection_that_it_replaces(
    people: People, world: World, hr: str
):
    restrict(people.ann, hr, {"user_id": people.alf.id, "access": "edit"})
    load = {"name": "hr", "overwrite": True, "documents": 0, "collection": {}}
    for actor, status in ((people.alf, 403), (people.ann, 204)):
        begun = actor.rpc("rag_begin_load", load)
        assert begun.status_code == 200, begun.text
        ended = actor.rpc("rag_finish_load", {"collection_id": begun.json(), "overwrite": True})
        assert ended.status_code == status, ended.text
    access = people.alf.rpc("rag_get_access", {"collection_id": begun.json()}).json()
    assert (access["restricted"], access["access"]) == (True, "edit")
    assert people.kim.rpc("rag_get_access", {"collection_id": begun.json()}).status_code == 404
