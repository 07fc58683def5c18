"""Reading documents for names in SQL: who claims them, in whose name it is kept, what ends it."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from local import ROOT
from tests.actors import NOBODYS, Actor, World
from tests.conftest import People
from tests.sql.passages import put
from tests.sql.reading import graph_rows, mentions, named, relations, state

Row = dict[str, Any]
CLAIM = "select * from public.rag_claim_extractions(%s, %s, %s)"
TEXTS = ("Ann Lee wrote this.", "Bob Orr read it.", "Cyd Fox did not.")


@pytest.fixture(autouse=True)
def _nothing_to_read(no_jobs: None) -> None:
    """That another test has left."""


def claim(world: World, wanted: int = 10, *, with_model: bool = False, seconds: int = 60) -> list[Row]:
    names = ("org_id", "document_id", "user_id", "as_admin", "lease", "attempts")
    rows = world.as_role("rag_worker", CLAIM, wanted, seconds, with_model)
    return [dict(zip(names, map(str, row), strict=True)) for row in rows]


def held(world: World, actor: Actor, row: Row, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """As the worker does in the name of that user, with the lease."""
    scopes = ["documents:read", "documents:write"]
    claims = {"org": row["org_id"], "scopes": scopes, "lease": row["lease"]}
    return world.as_user(actor, statement, *parameters, rag=claims)


def keep(world: World, actor: Actor, row: Row, first: int, chunks: list[Row], **more: Any) -> bool:
    arguments = {"first": first, "chunks": json.dumps(chunks), **more}
    said = ", ".join(f"{name} => %s" for name in arguments)
    statement = f"select public.rag_store_extraction({said})"
    ((is_more,),) = held(world, actor, row, statement, *arguments.values())
    return bool(is_more)


def fail(world: World, actor: Actor, row: Row, *arguments: Any) -> None:
    places = ", ".join(["%s"] * len(arguments))
    held(world, actor, row, f"select public.rag_fail_extraction({places})", *arguments)


def names(*texts: str) -> list[Row]:
    return [{"names": [{"name": text}]} for text in texts]


def due(world: World, *documents: str, ago: str = "0") -> None:
    world.sql(
        "update rag.extractions set due_at = now() - %s::interval where document_id = any (%s::uuid[])",
        ago, list(documents),
    )  # fmt: skip


def lost(world: World, actor: Actor, row: Row) -> bool:
    """Whether whoever holds that lease can do nothing with it any more."""
    refused = 0
    for act in (
        lambda: held(world, actor, row, "select * from public.rag_open_extraction()"),
        lambda: keep(world, actor, row, 0, names("Eve Root")),
        lambda: fail(world, actor, row, "reading_failed", "x", 9),
    ):
        with pytest.raises(psycopg.Error) as lost:
            act()
        refused += lost.value.sqlstate == "PT409"
    return refused == 3


# -- who has read what --------------------------------------------------------------------------------


def test_documents_with_names_are_extracted_and_others_pending(world: World, people: People):
    without = put(world, people.ann, *TEXTS)
    chunks = named({TEXTS[0]: ["Ann Lee"]}, {TEXTS[1]: ["Bob Orr"]}, {TEXTS[2]: []})
    read = put(world, people.ann, *TEXTS, chunks=chunks)
    assert state(world, without) == (0, 0, 0, False, False, None)
    assert state(world, read) == (1, 0, 0, False, False, None)
    assert mentions(world, read) == [(0, "ann lee"), (1, "bob orr")]
    assert [row["document_id"] for row in claim(world)] == [without]
    assert [row["document_id"] for row in claim(world, with_model=True)] == [read]


def test_nothing_is_pending_with_the_graph_off(world: World, people: People):
    collection(world, people.ann, "off", enable_knowledge_graph=False)
    document = put(world, people.ann, TEXTS[0], collection="off", chunks=named({TEXTS[0]: ["Ann Lee"]}))
    assert graph_rows(world, document) == 0


def collection(world: World, actor: Actor, name: str, **config: Any) -> str:
    statement = "select id::text from public.rag_create_collection(%s, config => %s)"
    ((made,),) = world.as_user(actor, statement, name, json.dumps(config))
    return str(made)


# -- claiming -----------------------------------------------------------------------------------------


def test_a_claim_leases_due_documents_in_order(world: World, people: People):
    documents = [put(world, people.ann, TEXTS[0]) for _ in range(4)]
    for late, document in enumerate(documents):
        due(world, document, ago=f"{late + 1} minutes")
    assert [row["document_id"] for row in claim(world, 3)] == documents[:0:-1]
    assert [row["document_id"] for row in claim(world)] == documents[:1]
    assert claim(world) == []
    assert state(world, documents[0]) == (0, 0, 1, True, False, None)


def test_a_busy_org_does_not_delay_another(world: World, people: People):
    for _ in range(6):
        put(world, people.ann, TEXTS[0])
    last = put(world, people.bob, TEXTS[0])
    claimed = claim(world, 3)
    assert len(claimed) == 3
    assert [row["org_id"] for row in claimed].count(people.bolt.id) == 1
    assert last in {row["document_id"] for row in claimed}


def test_two_workers_never_lease_one_document(world: World, people: People):
    documents = {put(world, people.ann, TEXTS[0]) for _ in range(40)}

    def work(_: int) -> list[str]:
        found: list[str] = []
        with closing(World(world.stack)) as own:
            # Those that another is just claiming are passed over.
            while own.sql("select 1 from rag.extractions where lease is null limit 1"):
                found += [row["document_id"] for row in claim(own, 3)]
        return found

    with ThreadPoolExecutor(4) as pool:
        claimed = [document for some in pool.map(work, range(4)) for document in some]
    assert sorted(claimed) == sorted(documents)


def test_an_expired_lease_is_claimed_again_alone_and_finally_given_up(world: World, people: People):
    first, second = put(world, people.ann, TEXTS[0]), put(world, people.ann, TEXTS[1])
    claimed = {row["document_id"]: row for row in claim(world)}
    assert set(claimed) == {first, second}
    due(world, first, ago="1 minute")
    due(world, second)
    assert [row["document_id"] for row in claim(world)] == [first]
    assert lost(world, people.ann, claimed[first])
    assert held(world, people.ann, claimed[second], "select rag.leased_extraction()")
    due(world, second, ago="-1 hour")
    for attempt in range(3, 17):
        due(world, first)
        (row,) = claim(world)
        assert row["attempts"] == str(attempt)
    due(world, first)
    assert claim(world) == []
    assert state(world, first) == (0, 0, 16, False, True, "reading_failed")


BAD_CLAIMS: list[tuple[Any, ...]] = [
    (0, 60, False),
    (101, 60, False),
    (None, 60, False),
    (1, 4, False),
    (1, 3601, True),
]


def test_a_claim_is_limited_in_number_and_time(world: World, subtests: pytest.Subtests):
    for arguments in BAD_CLAIMS:
        with subtests.test(arguments=arguments):
            with pytest.raises(psycopg.Error) as refused:
                world.as_role("rag_worker", CLAIM, *arguments)
            assert refused.value.sqlstate == "PT400"


def test_the_worker_s_role_reads_no_names_and_no_text(world: World, people: People):
    put(world, people.ann, TEXTS[0], chunks=named({TEXTS[0]: ["Ann Lee"]}))
    for table in ("mentions", "subjects", "relations", "chunks"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_role("rag_worker", f"select from rag.{table}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_role("rag_worker", "update rag.extractions set user_id = %s", people.bob.id)


def test_a_claim_reads_few_rows_whatever_is_done(world: World, people: People):
    """By the index, which those that are done are not in, nor those that nobody has asked for."""
    world.sql(
        "insert into rag.documents (org_id, collection_id, title, content, content_hash) "
        "select %s, (select id from rag.collections where org_id = %s limit 1), 'x', 'x', repeat('0', 64) "
        "from generate_series(1, 500)",
        people.acme.id, put(world, people.ann, TEXTS[0]) and people.acme.id,
    )  # fmt: skip
    world.sql(
        "insert into rag.extractions (org_id, document_id, collection_id, user_id, level) "
        "select org_id, id, collection_id, case when random() < 0.5 then %s::uuid end, 2 from rag.documents "
        "where org_id = %s on conflict do nothing",
        people.ann.id, people.acme.id,
    )  # fmt: skip
    world.sql("analyze rag.extractions")
    plan = "\n".join(
        line
        for (line,) in world.as_role(
            "rag_worker",
            "explain (costs off) select org_id from rag.extractions where level < 2 and user_id is not null "
            "and level = 0 and org_id = %s and due_at <= clock_timestamp() order by due_at limit 8",
            people.acme.id,
        )
    )
    assert "extractions_due" in plan


# -- reading ------------------------------------------------------------------------------------------


def test_stored_results_replace_earlier_ones_chunk_by_chunk(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    opened = held(world, people.ann, row, "select * from public.rag_open_extraction(2)")
    ((document_id, level, title, first, chunks),) = opened
    assert (str(document_id), level, title, first) == (document, 0, "A", 0)
    assert [chunk["content"] for chunk in chunks] == list(TEXTS[:2])
    assert keep(world, people.ann, row, 0, names("Ann Lee", "Bob Orr"))
    assert mentions(world, document) == [(0, "ann lee"), (1, "bob orr")]
    assert state(world, document) == (0, 2, 0, True, False, None)
    ((*_, first, chunks),) = held(world, people.ann, row, "select * from public.rag_open_extraction(2)")
    assert (first, len(chunks)) == (2, 1)
    assert not keep(world, people.ann, row, 2, names("Cyd Fox"))
    assert state(world, document) == (1, 0, 0, False, False, None)
    assert claim(world) == []

    (row,) = claim(world, with_model=True)
    ((_, level, _, _, chunks),) = held(world, people.ann, row, "select * from public.rag_open_extraction()")
    assert level == 1
    assert [known["name"] for chunk in chunks for known in chunk["names"]] == [
        "Ann Lee",
        "Bob Orr",
        "Cyd Fox",
    ]
    said = [{"names": [], "relations": []}, {}, *names("Cyd")]
    assert not keep(world, people.ann, row, 0, said, model="m", prompt_tokens=7, completion_tokens=2)
    # Of the second nobody could say anything.
    assert mentions(world, document) == [(1, "bob orr"), (2, "cyd")]
    assert state(world, document) == (2, 0, 0, False, False, None)
    assert claim(world, with_model=True) == []
    cost = "select model, prompt_tokens, completion_tokens from rag.extractions where document_id = %s"
    assert world.sql(cost, document) == [("m", 7, 2)]


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
    (row,) = claim(world, with_model=True)
    keep(world, people.ann, row, 0, [{}, {"names": []}], model="m")
    assert relations(world, document) == []


def test_an_error_is_kept_until_the_extraction_continues(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    fail(world, people.ann, row, "reading_busy", "The model is busy.", 30, 5, 1)
    assert state(world, document) == (0, 0, 1, False, False, "reading_busy")
    assert claim(world) == [], "not before its time"
    due(world, document)
    (row,) = claim(world)
    assert row["attempts"] == "2"
    assert keep(world, people.ann, row, 0, [{}], code="unreadable_reply", message="Chunk 1.")
    assert state(world, document) == (0, 1, 0, True, False, "unreadable_reply")
    keep(world, people.ann, row, 1, names("Bob Orr", "Cyd Fox"))
    assert state(world, document) == (1, 0, 0, False, False, "unreadable_reply")
    assert world.sql(
        "select prompt_tokens, completion_tokens from rag.extractions where document_id = %s", document
    ) == [(5, 1)]


def test_a_released_document_counts_no_attempt(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    fail(world, people.ann, row)
    assert state(world, document) == (0, 0, 0, False, False, None)
    (row,) = claim(world)
    fail(world, people.ann, row, "reading_failed", "No.", None)
    assert state(world, document) == (0, 0, 1, False, True, "reading_failed")
    assert claim(world, with_model=True) == []


# -- who takes a lease away ---------------------------------------------------------------------------


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
    # Somebody else may ask for it.
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


# -- asking for it ------------------------------------------------------------------------------------


def test_existing_documents_are_extracted_on_request(world: World, people: People):
    """Documents of before the graph have a row that is nobody's, or none at all."""
    first, second = (put(world, people.ann, text, title="Reports") for text in TEXTS[:2])
    world.sql("update rag.extractions set user_id = null where document_id = %s", first)
    world.sql("delete from rag.extractions where document_id = %s", second)
    world.sql("delete from rag.subjects where document_id = %s", second)
    read = put(world, people.ann, TEXTS[2], chunks=named({TEXTS[2]: ["Cyd Fox"]}))
    assert claim(world) == []
    ((home,),) = world.sql("select collection_id from rag.documents where id = %s", first)
    assert people.alf.rpc("rag_build_graph", {"collection_id": str(home)}).json() == 2
    assert people.alf.rpc("rag_build_graph", {"collection_id": str(home)}).json() == 0
    claimed = claim(world)
    assert {row["document_id"] for row in claimed} == {first, second}
    assert {row["user_id"] for row in claimed} == {people.alf.id}
    for row in claimed:
        held(world, people.alf, row, "select * from public.rag_open_extraction()")
        keep(world, people.alf, row, 0, names("Ann Lee"))
    assert world.sql("select entity from rag.subjects where document_id = %s", second) == [("reports",)]
    assert state(world, read) == (1, 0, 0, False, False, None)


def test_given_up_documents_are_retried_on_request(world: World, people: People):
    document = put(world, people.ann, TEXTS[0])
    (row,) = claim(world)
    fail(world, people.ann, row, "reading_failed", "No.", None)
    ((home,),) = world.sql("select collection_id from rag.documents where id = %s", document)
    assert people.ann.rpc("rag_build_graph", {"collection_id": str(home)}).json() == 1
    assert state(world, document) == (0, 0, 0, False, False, None)


def switch(actor: Actor, home: str, on: bool | None, token: str | None = None) -> Any:
    arguments = {"collection_id": home, "config": {"enable_knowledge_graph": on}}
    return actor.rpc("rag_update_collection", arguments, token=token)


def test_the_setting_removes_a_collection_from_the_graph_and_restores_it(world: World, people: People):
    home = collection(world, people.ann, "switched")
    chunks = named({TEXTS[0]: ["Ann Lee", ("Ann Lee", "PART_OF", "Staff")]})
    document = put(world, people.ann, TEXTS[0], title="Staff", chunks=chunks, collection="switched")
    other = put(world, people.ann, TEXTS[0], title="Staff", chunks=chunks)
    assert graph_rows(world, document) == 4
    assert switch(people.alf, home, False).status_code == 200
    assert (graph_rows(world, document), graph_rows(world, other)) == (0, 4)
    refused = people.alf.rpc("rag_build_graph", {"collection_id": home})
    assert (refused.status_code, refused.json()["details"]) == (409, "graph_off")
    # No config is the deployment's choice: in the graph.
    assert switch(people.alf, home, None).status_code == 200
    assert state(world, document) == (0, 0, 0, False, False, None)
    (row,) = claim(world)
    assert (row["document_id"], row["user_id"]) == (document, people.alf.id)


def test_the_worker_removes_the_results_of_many_documents(world: World, people: People):
    home = collection(world, people.ann, "many")
    chunk = named({TEXTS[0]: ["Ann Lee"]})
    several = [
        {"title": f"Number {number}", "content": TEXTS[0], "embedding_model": "m",
         "external_id": str(number), "chunks": chunk}
        for number in range(230)
    ]  # fmt: skip
    people.ann.rpc("rag_put_documents", {"collection": "many", "documents": several})
    left = "select count(*) from rag.mentions where collection_id = %s"
    assert world.sql(left, home) == [(230,)]
    switch(people.ann, home, False)
    assert world.sql(left, home) == [(30,)]
    for _ in range(3):
        for row in claim(world, 10):
            assert held(world, people.ann, row, "select * from public.rag_open_extraction()") == []
    assert world.sql(left, home) == [(0,)]
    assert world.sql("select count(*) from rag.subjects where collection_id = %s", home) == [(0,)]
    assert claim(world) == []


def test_the_graph_setting_needs_the_right_to_write_documents(world: World, people: People):
    home = collection(world, people.ann, "scoped")
    document = put(world, people.ann, TEXTS[0], collection="scoped", chunks=named({TEXTS[0]: ["Ann Lee"]}))
    token = people.ann.key_token(scopes=["collections:manage"])
    assert switch(people.ann, home, False, token).status_code == 403
    assert graph_rows(world, document) > 0
    # To say again what is so turns nothing.
    assert switch(people.ann, home, True, token).status_code == 200
    refused = people.ann.rpc("rag_build_graph", {"collection_id": home}, token=token)
    assert (refused.status_code, refused.json()["details"]) == (403, "missing_scope")


# -- attacks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["another's member", "a stranger"])
def test_another_user_s_collection_cannot_be_extracted(world: World, people: People, who: str):
    document = put(world, people.ann, TEXTS[0])
    ((home,),) = world.sql("select collection_id::text from rag.documents where id = %s", document)
    asker = people.bob if who == "another's member" else people.sam
    for collection_id in (home, NOBODYS):
        answer = asker.rpc("rag_build_graph", {"collection_id": collection_id, "again": True})
        assert (answer.status_code, answer.json()["details"]) == (404, "collection_not_found")
    assert state(world, document) == (0, 0, 0, False, False, None)


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


def test_an_extraction_cannot_be_requested_for_another_user(world: World, people: People):
    document = put(world, people.ann, TEXTS[0])
    for statement in (
        "update rag.extractions set user_id = %s where document_id = %s",
        "insert into rag.extractions (org_id, document_id, collection_id, user_id, level) "
        "select org_id, id, collection_id, %s, 0 from rag.documents where id = %s "
        "on conflict (org_id, document_id) do update set user_id = excluded.user_id",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(people.alf, statement, people.ada.id, document)


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


def test_a_deployer_sees_an_org_s_usage(world: World, people: People):
    """As README says."""
    put(world, people.ann, TEXTS[0], chunks=named({TEXTS[0]: ["Ann Lee"]}))
    (row,) = claim(world, with_model=True)
    keep(world, people.ann, row, 0, names("Ann Lee"), model="m", prompt_tokens=11, completion_tokens=3)
    (spent,) = re.findall(r"    (select model, count.*?);", (ROOT / "README.md").read_text(), re.DOTALL)
    rows = world.sql(spent.replace("'...'", "%s"), people.acme.id)
    assert [tuple(map(str, row)) for row in rows] == [("m", "1", "11", "3")]
