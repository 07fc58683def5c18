"""Results of extractions in SQL: stored in order, for their user, until the lease ends."""

import json

import psycopg
import pytest

from tests.actors import NOBODYS, World
from tests.conftest import People
from tests.sql.graph.extractions import TEXTS, call_with_lease, claim, due, fail, keep, lost, names
from tests.sql.passages import put
from tests.sql.reading import graph_rows, mentions, named, relations, state


@pytest.fixture(autouse=True)
def _no_pending_extractions(no_jobs: None) -> None:
    """The queue is empty at the start of each test."""


def requeue(world: World, people: People, document: str) -> None:
    ((home,),) = world.sql("select collection_id from rag.documents where id = %s", document)
    world.as_user(people.ann, "select public.rag_build_graph(%s, true)", home)


def test_stored_results_replace_earlier_ones_chunk_by_chunk(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    opened = call_with_lease(world, people.ann, row, "select * from public.rag_open_extraction(2)")
    assert [(str(document_id), *rest) for document_id, *rest in opened] == [
        (document, "A", 0, list(TEXTS[:2]))
    ]
    assert keep(world, people.ann, row, 0, names("Ann Lee", "Bob Orr"))
    assert mentions(world, document) == [(0, "ann lee"), (1, "bob orr")]
    assert state(world, document) == (0, 2, 0, True, False, None)
    ((*_, first, chunks),) = call_with_lease(
        world, people.ann, row, "select * from public.rag_open_extraction(2)"
    )
    assert (first, chunks) == (2, [TEXTS[2]])
    assert not keep(world, people.ann, row, 2, names("Cyd Fox"))
    assert state(world, document) == (1, 0, 0, False, False, None)
    assert claim(world) == []

    requeue(world, people, document)
    (row,) = claim(world)
    assert not keep(world, people.ann, row, 0, [{"names": [], "relations": []}, {}, *names("Cyd")])
    assert mentions(world, document) == [(2, "cyd")]
    assert state(world, document) == (1, 0, 0, False, False, None)


def test_results_are_stored_only_in_the_order_of_the_chunks(world: World, people: People):
    put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    with pytest.raises(psycopg.Error) as refused:
        keep(world, people.ann, row, 1, names("Bob Orr"))
    assert refused.value.sqlstate == "PT409"


def test_a_relation_is_deleted_with_its_ends(world: World, people: People):
    chunks = named({TEXTS[0]: ["Ann Lee", ("Ann Lee", "REPORTS_TO", "Bob Orr")]}, {TEXTS[1]: ["Bob Orr"]})
    document = put(world, people.ann, *TEXTS[:2], chunks=chunks)
    assert relations(world, document) == [(0, "ann lee", "REPORTS_TO", "bob orr")]
    requeue(world, people, document)
    (row,) = claim(world)
    keep(world, people.ann, row, 0, [*names("Ann Lee"), {"names": []}])
    assert relations(world, document) == []


def test_an_error_is_kept_until_the_extraction_continues(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    fail(world, people.ann, row, "internal_error", "Something broke.", 30)
    assert state(world, document) == (0, 0, 1, False, False, "internal_error")
    assert claim(world) == [], "not before its time"
    due(world, document)
    (row,) = claim(world)
    assert row["attempts"] == "2"
    assert keep(world, people.ann, row, 0, names("Ann Lee"))
    assert state(world, document) == (0, 1, 0, True, False, None)


def test_a_released_document_counts_no_attempt(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    fail(world, people.ann, row, None, None, 0, False)
    assert state(world, document) == (0, 0, 0, False, False, None)
    (row,) = claim(world)
    fail(world, people.ann, row, "reading_failed", "No.", None)
    assert state(world, document) == (0, 0, 1, False, True, "reading_failed")
    assert claim(world) == []


def change(world: World, people: People, document: str, how: str) -> None:
    match how:
        case "replaced":
            put(world, people.alf, "Dot Kay wrote this.", external_id="x")
        case "retitled":
            world.as_user(
                people.alf, "select public.rag_update_document(%s, %s)", document, '{"title": "Another"}'
            )
        case "deleted":
            world.as_user(people.alf, "select public.rag_delete_document(%s)", document)
        case "out of the graph":
            ((home,),) = world.sql("select collection_id from rag.documents where id = %s", document)
            config = '{"enable_knowledge_graph": false}'
            world.as_user(people.alf, "select public.rag_update_collection(%s, config => %s)", home, config)
        case "asked for again":
            ((home,),) = world.sql("select collection_id from rag.documents where id = %s", document)
            world.as_user(people.alf, "select public.rag_build_graph(%s, true)", home)


@pytest.mark.parametrize("how", ["replaced", "retitled", "deleted", "out of the graph", "asked for again"])
def test_a_change_to_a_document_ends_the_lease(world: World, people: People, how: str):
    document = put(world, people.ann, *TEXTS, external_id="x")
    (row,) = claim(world)
    keep(world, people.ann, row, 0, names("Ann Lee"))
    change(world, people, document, how)
    assert lost(world, people.ann, row)
    assert (0, "eve root") not in mentions(world, document)
    if how in ("retitled", "replaced", "asked for again"):
        assert state(world, document) == (0, 0, 0, False, False, None)
        # In the name of who did that.
        (again,) = claim(world)
        assert again["user_id"] == people.alf.id
    else:
        assert graph_rows(world, document) == 0


def test_a_document_with_a_new_owner_is_extracted_with_their_rights(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    world.sql("update rag.documents set owner_id = %s where id = %s", people.ann.id, document)
    world.sql("update rag.chunks set owner_id = %s where document_id = %s", people.ann.id, document)
    assert lost(world, people.ann, row)
    assert world.sql("select owner_id::text from rag.extractions where document_id = %s", document) == [
        (people.ann.id,)
    ]


def test_nothing_is_extracted_for_a_former_member(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    assert lost(world, people.ann, row)
    assert mentions(world, document) == []
    ((home,),) = world.sql("select collection_id from rag.documents where id = %s", document)
    # Another user may request it.
    world.as_user(people.alf, "select public.rag_build_graph(%s, true)", home)
    (row,) = claim(world)
    assert row["user_id"] == people.alf.id
    assert keep(world, people.alf, row, 0, names("Ann Lee"))


def test_an_admin_s_extraction_of_a_private_document_belongs_to_its_owner(world: World, people: People):
    document = put(world, people.ann, *TEXTS[:1], private=True)
    ((home,),) = world.sql("select collection_id from rag.documents where id = %s", document)
    assert world.as_user(people.alf, "select public.rag_build_graph(%s, true)", home) == [(0,)]
    assert world.as_user(people.ada, "select public.rag_build_graph(%s, true)", home) == [(1,)]
    (row,) = claim(world)
    assert (row["user_id"], row["as_admin"]) == (people.ada.id, "True")
    assert lost(world, people.ada, row), "without the scope of an admin"
    claims = {"org": row["org_id"], "scopes": ["admin"], "lease": row["lease"]}
    statement = "select public.rag_store_extraction(0, %s)"
    world.as_user(people.ada, statement, json.dumps(names("Ann Lee")), rag=claims)
    assert mentions(world, document) == [(0, "ann lee")]
    seen = "select count(*) from rag.mentions where document_id = %s"
    assert world.as_user(people.ann, seen, document) == [(1,)]
    assert world.as_user(people.alf, seen, document) == [(0,)]
    assert world.as_user(people.bob, seen, document) == [(0,)]


def test_a_user_s_token_cannot_name_a_lease(world: World, people: People):
    document = put(world, people.ann, TEXTS[0])
    (row,) = claim(world)
    for token in (
        people.ann.token(),
        people.ann.key_token(),
        people.ann.key_token(lease=NOBODYS),
        # The lease in another's name, and in another org.
        people.bob.key_token(lease=row["lease"]),
        people.kim.key_token(lease=row["lease"], org=people.bolt.id),
    ):
        for function, arguments in (
            ("rag_open_extraction", {}),
            ("rag_store_extraction", {"first": 0, "chunks": names("Eve Root")}),
            ("rag_fail_extraction", {"code": "reading_failed", "message": "x"}),
        ):
            answer = people.ann.rpc(function, arguments, token=token)
            assert (answer.status_code, answer.json()["details"]) == (409, "lease_lost")
    assert mentions(world, document) == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(
            people.ann,
            "update rag.extractions set lease = gen_random_uuid() where document_id = %s",
            document,
        )


def test_a_private_document_s_progress_is_visible_to_its_owner_and_admins(world: World, people: People):
    put(world, people.ann, TEXTS[0], private=True)
    count = "select count(*) from rag.extractions where org_id = %s"
    seen = [
        world.as_user(actor, count, people.acme.id)[0][0]
        for actor in (people.ann, people.ada, people.alf, people.bob, people.sam)
    ]
    assert seen == [1, 1, 0, 0, 0]


def test_two_orgs_extractions_are_separate(world: World, people: People):
    chunks = named({TEXTS[0]: ["Ann Lee"]})
    put(world, people.ann, TEXTS[0], chunks=chunks)
    put(world, people.bob, TEXTS[0], chunks=chunks)
    for actor, org in ((people.ann, people.acme), (people.bob, people.bolt)):
        rows = world.as_user(actor, "select org_id::text, entity from rag.mentions")
        assert rows == [(org.id, "ann lee")]
