"""Extractions in SQL: queued with documents, claimed apart from ingestion, stored in order for their user."""

import json
from typing import Any

import psycopg
import pytest

from tests.actors import MODEL, Actor, World
from tests.conftest import People
from tests.sql import naming, passages
from tests.sql.graph.extractions import TEXTS, call_with_lease, claim, due, fail, keep, lost, names
from tests.sql.naming import NamedChunk
from tests.sql.passages import put
from tests.sql.reading import graph_rows, mentions, relations, state

pytestmark = pytest.mark.usefixtures("no_jobs")
WAITING = (0, 0, 0, False, False, None)
DONE = (1, 0, 0, False, False, None)
# The chunks of a document, and whether its extraction is done with them.
CHUNKS = {
    "nothing named": ([NamedChunk("x", [])], True),
    "all chunks with names": ([NamedChunk("x", ["Heron"]), NamedChunk("y", [])], True),
    "no chunk with names": ([NamedChunk("x", None)], False),
    "one of two chunks with names": ([NamedChunk("x", ["Heron"]), NamedChunk("y", None)], False),
    "no chunks": ([], True),
}


def requested(world: World, document: str) -> list[tuple[str, bool]]:
    return world.sql("select user_id::text, due_at <= now() from rag.jobs where id = %s", document)


def test_documents_without_names_are_queued_for_their_author(world: World, people: People):
    for case, (chunks, is_done) in CHUNKS.items():
        fields: dict[str, Any] = {} if chunks else {"content": "x"}
        document = naming.put(world, people.ann, "t", *chunks, **fields)
        assert state(world, document) == (DONE if is_done else WAITING), case
        assert requested(world, document) == [(people.ann.id, True)], case


def test_no_user_stores_vectors_in_an_extraction(world: World, people: People):
    """Of the jobs, ingestions alone have vectors."""
    document = naming.put(world, people.ann, "t", NamedChunk("x", None))
    vectors = "passages_hash = repeat('0', 64), embeddings = array['[1]'::extensions.halfvec]"
    with pytest.raises(psycopg.errors.CheckViolation):
        world.as_user(people.ann, f"update rag.jobs set {vectors} where id = %s", document)


def test_a_new_version_or_title_is_queued_for_the_user_who_changed_it(
    world: World, people: People, subtests: pytest.Subtests
):
    for names_of_chunk, new_state in (([], DONE), (None, WAITING), ("new title", WAITING)):
        with subtests.test(names=names_of_chunk):
            document = naming.put(world, people.ann, "t", NamedChunk("x", ["Heron"]), external_id="e")
            running = "state = 'running', next_ordinal = 5, attempts = 3, lease = gen_random_uuid()"
            world.sql(f"update rag.jobs set {running} where id = %s", document)
            if names_of_chunk == "new title":
                changes = {"title": "u"}
                passages.call(world, people.alf, "rag_update_document", document_id=document, changes=changes)
            else:
                naming.put(world, people.alf, "t", NamedChunk("y", names_of_chunk), external_id="e")
            assert state(world, document) == new_state
            assert requested(world, document) == [(people.alf.id, True)]
            world.sql("delete from rag.documents where id = %s", document)


def test_a_document_of_parts_is_extracted_if_all_parts_are(world: World, people: People):
    """As a snapshot is loaded."""
    begin = "select public.rag_begin_load('loaded', false, 1, '{}'::jsonb)::text"
    ((collection_id,),) = world.as_user(people.ann, begin)
    document = passages.document(["xy"], document_id="d")
    load = "select count(*) from public.rag_load_documents(%s, %s, 0)"
    assert world.as_user(people.ann, load, collection_id, json.dumps([document])) == [(1,)]
    loaded = "select id::text from rag.documents where collection_id = %s"
    ((document_id,),) = world.sql(loaded, collection_id)
    parts = "select public.rag_load_chunks(%s, %s, %s, %s, false)"
    for text, names_of_chunk, is_extracted in (
        ("x", ["Heron"], True), ("y", ["Kestrel"], True), ("", None, False), ("", [], False),
    ):  # fmt: skip
        (chunk,) = passages.passages([text or "x"])
        chunk |= NamedChunk(text, names_of_chunk).keys()
        world.as_user(people.ann, parts, collection_id, document_id, json.dumps([chunk]), MODEL)
        assert state(world, document_id) == (DONE if is_extracted else WAITING)
    assert mentions(world, document_id) == [(0, "heron"), (1, "kestrel")]


def test_kinds_are_claimed_apart_and_orgs_alike(world: World, people: People):
    """Neither many documents to ingest nor another org's extractions delay an extraction."""
    home = people.ann.rpc("rag_create_collection", {"name": "home"}).json()[0]["id"]
    for content in ("eA==", "eQ==", "eg=="):
        document = {"title": "x", "bytes": content}
        assert people.ann.rpc("rag_add_document", {"collection_id": home, "document": document}).is_success
    for _ in range(6):
        put(world, people.ann, TEXTS[0])
    last = put(world, people.bob, TEXTS[0])
    claimed = [*claim(world, 3), *claim(world, 3)]
    assert [row["org_id"] for row in claimed] == [people.acme.id, people.bolt.id]
    assert last == claimed[1]["document_id"]
    ingestion = world.as_role("rag_worker", "select job_id from public.rag_claim_jobs('ingestion', 10)")
    assert len(ingestion) == 3
    assert len(claim(world, 10)) == 5


def test_an_extraction_that_kills_its_workers_fails_without_its_document(world: World, people: People):
    document = put(world, people.ann, TEXTS[0])
    (first,) = claim(world)
    for attempt in range(2, 17):
        due(world, document)
        (row,) = claim(world)
        assert row["attempts"] == str(attempt)
    assert lost(world, people.ann, first)
    due(world, document)
    assert claim(world) == []
    assert state(world, document) == (0, 0, 16, False, True, "extraction_failed")
    status = "select status, error_code from rag.documents where id = %s"
    assert world.sql(status, document) == [("completed", None)]


def test_a_claim_has_a_kind_and_is_limited_in_number_and_time(world: World):
    for arguments in (
        ("extraction", 0, 60), ("extraction", 101, 60), ("extraction", None, 60), ("extraction", 1, 4),
        ("extraction", 1, 3601), ("removal", 1, 60), (None, 1, 60),
    ):  # fmt: skip
        with pytest.raises(psycopg.Error) as refused:
            world.as_role("rag_worker", "select public.rag_claim_jobs(%s, %s, %s)", *arguments)
        assert refused.value.sqlstate == "PT400", arguments


def home_of(world: World, document: str) -> str:
    ((home,),) = world.sql("select collection_id::text from rag.documents where id = %s", document)
    return str(home)


def build(world: World, actor: Actor, document: str) -> int:
    """Extractions that the user requested for the document's collection."""
    ((count,),) = world.as_user(actor, "select public.rag_build_graph(%s, true)", home_of(world, document))
    return int(count)


def requeue(world: World, people: People, document: str) -> None:
    build(world, people.ann, document)


def test_stored_results_replace_earlier_ones_chunk_by_chunk(world: World, people: People):
    document, open_two = put(world, people.ann, *TEXTS), "select * from public.rag_open_extraction(2)"
    (row,) = claim(world)
    ((document_id, *rest),) = call_with_lease(world, people.ann, row, open_two)
    assert (str(document_id), *rest) == (document, "A", 0, list(TEXTS[:2]))
    with pytest.raises(psycopg.Error) as refused:
        keep(world, people.ann, row, 1, names("Bob Orr"))
    assert refused.value.sqlstate == "PT409", "results are stored only in the order of the chunks"
    assert keep(world, people.ann, row, 0, names("Ann Lee", "Bob Orr"))
    assert mentions(world, document) == [(0, "ann lee"), (1, "bob orr")]
    assert state(world, document) == (0, 2, 0, True, False, None)
    ((*_, first, chunks),) = call_with_lease(world, people.ann, row, open_two)
    assert (first, chunks) == (2, [TEXTS[2]])
    assert not keep(world, people.ann, row, 2, names("Cyd Fox"))
    assert state(world, document) == DONE
    assert claim(world) == []

    requeue(world, people, document)
    (row,) = claim(world)
    assert not keep(world, people.ann, row, 0, [{"names": [], "relations": []}, {}, *names("Cyd")])
    assert mentions(world, document) == [(2, "cyd")]
    assert state(world, document) == DONE


def test_a_relation_is_deleted_with_its_ends(world: World, people: People):
    first = NamedChunk(TEXTS[0], ["Ann Lee"], [("Ann Lee", "REPORTS_TO", "Bob Orr")])
    document = naming.put(world, people.ann, "A", first, NamedChunk(TEXTS[1], ["Bob Orr"]))
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
    assert state(world, document) == WAITING
    (row,) = claim(world)
    fail(world, people.ann, row, "extraction_failed", "No.", None)
    assert state(world, document) == (0, 0, 1, False, True, "extraction_failed")
    assert claim(world) == []


def change(world: World, people: People, document: str, how: str) -> None:
    match how:
        case "replaced":
            put(world, people.alf, "Dot Kay wrote this.", external_id="x")
        case "retitled":
            statement = "select public.rag_update_document(%s, %s)"
            world.as_user(people.alf, statement, document, '{"title": "Another"}')
        case "deleted":
            world.as_user(people.alf, "select public.rag_delete_document(%s)", document)
        case "out of the graph":
            config = '{"enable_knowledge_graph": false}'
            statement = "select public.rag_update_collection(%s, config => %s)"
            world.as_user(people.alf, statement, home_of(world, document), config)
        case "asked for again":
            build(world, people.alf, document)


@pytest.mark.parametrize("how", ["replaced", "retitled", "deleted", "out of the graph", "asked for again"])
def test_a_change_to_a_document_ends_the_lease(world: World, people: People, how: str):
    document = put(world, people.ann, *TEXTS, external_id="x")
    (row,) = claim(world)
    keep(world, people.ann, row, 0, names("Ann Lee"))
    change(world, people, document, how)
    assert lost(world, people.ann, row)
    assert (0, "eve root") not in mentions(world, document)
    if how in ("retitled", "replaced", "asked for again"):
        assert state(world, document) == WAITING
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
    assert world.sql("select owner_id::text from rag.jobs where id = %s", document) == [(people.ann.id,)]


def test_nothing_is_extracted_for_a_former_member(world: World, people: People):
    document = put(world, people.ann, *TEXTS)
    (row,) = claim(world)
    world.sql("delete from rag.members where user_id = %s", people.ann.id)
    assert lost(world, people.ann, row)
    assert mentions(world, document) == []
    # Another user may request it.
    build(world, people.alf, document)
    (row,) = claim(world)
    assert row["user_id"] == people.alf.id
    assert keep(world, people.alf, row, 0, names("Ann Lee"))


def test_an_admin_s_extraction_of_a_private_document_belongs_to_its_owner(world: World, people: People):
    document = put(world, people.ann, *TEXTS[:1], private=True)
    assert (build(world, people.alf, document), build(world, people.ada, document)) == (0, 1)
    (row,) = claim(world)
    assert (row["user_id"], row["as_admin"]) == (people.ada.id, "True")
    assert lost(world, people.ada, row), "without the scope of an admin"
    claims = {"org": row["org_id"], "scopes": ["admin"], "lease": row["lease"]}
    statement = "select public.rag_store_extraction(0, %s)"
    world.as_user(people.ada, statement, json.dumps(names("Ann Lee")), rag=claims)
    assert mentions(world, document) == [(0, "ann lee")]
    seen = "select count(*) from rag.mentions where document_id = %s"
    for actor, count in ((people.ann, 1), (people.alf, 0), (people.bob, 0)):
        assert world.as_user(actor, seen, document) == [(count,)]
