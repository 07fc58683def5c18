"""What documents are about: rows that live and die with titles, wherever these are written."""

from typing import Any

import pytest

from tests.actors import World
from tests.conftest import People
from tests.sql import naming, passages, reading

TABLES = ("title_entities", "mentions", "relations", "jobs")


def homes(world: World, document_id: str) -> set[tuple[Any, ...]]:
    """Where the rows of a document's graph say that it is, table by table."""
    where = "select collection_id::text, owner_id::text from rag.{} where document_id = %s"
    return {(table, *row) for table in TABLES for row in world.sql(where.format(table), document_id)}


def retitle(world: World, people: People, document_id: str, title: str) -> None:
    changes = {"title": title}
    passages.call(world, people.ann, "rag_update_document", document_id=document_id, changes=changes)


def test_title_external_id_and_url_name_the_subject(world: World, people: People):
    uri = "https://wiki.example/ops/Frostline+Cloud?page=2"
    named: dict[str, Any] = {"external_id": "tickets/INC-4821", "uri": uri}
    document_id = naming.put(world, people.ann, "Note 17", "x", **named)
    subjects = {"note 17": 1, "inc 4821": 0.9, "frostline cloud": 0.9}
    assert naming.subjects(world, document_id) == pytest.approx(subjects)


def test_a_new_url_changes_the_subjects_and_repeats_no_extraction(world: World, people: People):
    document_id = naming.put(world, people.ann, "Note 17", naming.NamedChunk("y", ["Kestrel"]))
    extraction = "select state, due_at from rag.jobs where id = %s"
    before = world.sql(extraction, document_id)
    world.sql("update rag.documents set uri = 'https://x.example/wherry.html' where id = %s", document_id)
    assert naming.subjects(world, document_id) == pytest.approx({"note 17": 1, "wherry": 0.9})
    assert world.sql(extraction, document_id) == before
    world.sql("update rag.documents set uri = null, filename = 'quoin.pdf' where id = %s", document_id)
    assert naming.subjects(world, document_id) == pytest.approx({"note 17": 1, "quoin": 0.9})


def test_a_new_title_has_new_subjects(world: World, people: People):
    document_id = naming.put(world, people.ann, "Heron", "x")
    retitle(world, people, document_id, "Kestrel")
    assert naming.subjects(world, document_id) == {"kestrel": 1}
    naming.put(world, people.ann, "Osprey", "x", external_id="1")
    again = naming.put(world, people.ann, "Petrel", "x", external_id="1")
    assert naming.subjects(world, again) == {"petrel": 1}


def test_other_changes_keep_the_subjects(world: World, people: People):
    document_id = naming.put(world, people.ann, "Heron", naming.NamedChunk("y", ["Kestrel"]))
    before = world.sql("select ctid from rag.title_entities where document_id = %s", document_id)
    passages.call(world, people.ann, "rag_update_document", document_id=document_id, changes={"lang": "fr"})
    assert world.sql("select ctid from rag.title_entities where document_id = %s", document_id) == before
    assert world.sql("select state from rag.jobs where id = %s", document_id) == [("done",)]


def test_a_new_title_deletes_the_old_title_s_relations(world: World, people: People):
    """Mentions in the text stay; and all of it is to be read again."""
    chunk = naming.NamedChunk(
        "z", ["Kestrel", "Oslo"], [("Heron", "OWNED_BY", "Kestrel"), ("Kestrel", "LOCATED_IN", "Oslo")]
    )
    document_id = naming.put(world, people.ann, "Heron", chunk)
    assert len(reading.relations(world, document_id)) == 2
    retitle(world, people, document_id, "Egret")
    assert reading.relations(world, document_id) == [(0, "kestrel", "LOCATED_IN", "oslo")]
    assert reading.mentions(world, document_id) == [(0, "kestrel"), (0, "oslo")]
    state = "select state, next_ordinal, lease, user_id::text from rag.jobs where id = %s"
    assert world.sql(state, document_id) == [("waiting", 0, None, people.ann.id)]


def test_a_document_s_graph_rows_are_deleted_with_it(world: World, people: People):
    chunk = naming.NamedChunk("z", ["Kestrel"], [("Heron", "OWNED_BY", "Kestrel")])
    one, other = (naming.put(world, people.ann, "Heron", chunk) for _ in range(2))
    assert reading.counts(world, one, other) == [2, 2, 2, 2]
    assert passages.delete(world, people.ann, one)
    assert reading.counts(world, one) == [0, 0, 0, 0]
    assert reading.counts(world, other) == [1, 1, 1, 1]


@pytest.mark.parametrize("what", ["collection", "org"])
def test_graph_rows_are_deleted_with_their_collection_or_org(world: World, people: People, what: str):
    chunk = naming.NamedChunk("z", ["Kestrel"], [("Heron", "OWNED_BY", "Kestrel")])
    gone = [
        naming.put(world, people.ann, "Heron", chunk, collection="passing"),
        naming.put(world, people.ann, "Heron", chunk, collection="passing", private=True),
    ]
    remaining = naming.put(world, people.bob if what == "org" else people.ann, "Heron", chunk)
    if what == "org":
        world.sql("delete from rag.orgs where id = %s", people.acme.id)
    else:
        ((home,),) = world.as_user(people.ada, "select id::text from rag.collections where name = 'passing'")
        world.as_user(people.ada, "select public.rag_delete_collection(%s, true)", home)
    assert reading.counts(world, *gone) == [0, 0, 0, 0]
    assert reading.counts(world, remaining) == [1, 1, 1, 1]


def test_graph_rows_follow_a_document_to_another_collection_and_owner(world: World, people: People):
    chunk = naming.NamedChunk("z", ["Kestrel"], [("Heron", "OWNED_BY", "Kestrel")])
    document_id = naming.put(world, people.ann, "Heron", chunk)
    naming.put(world, people.ann, "x", "x", collection="other")
    ((other,),) = world.as_user(people.ann, "select id::text from rag.collections where name = 'other'")
    move = "update rag.documents set collection_id = %s, owner_id = %s where id = %s"
    world.as_user(people.ann, move, other, people.ann.id, document_id)
    assert homes(world, document_id) == {(table, other, people.ann.id) for table in TABLES}
    for table in TABLES:
        seen = f"select count(*) from rag.{table} where document_id = %s"
        assert world.as_user(people.alf, seen, document_id) == [(0,)]
        assert world.as_user(people.ann, seen, document_id) == [(1,)]


def test_a_collection_may_be_outside_the_graph(world: World, people: People):
    config = {"enable_knowledge_graph": False}
    passages.call(world, people.ann, "rag_create_collection", name="plain", config=config)
    chunk = naming.NamedChunk("z", ["Kestrel"], [("Heron", "OWNED_BY", "Kestrel")])
    document_id = naming.put(world, people.ann, "Heron", chunk, collection="plain")
    assert reading.counts(world, document_id) == [0, 0, 0, 0]
    result = naming.graph(world, people.ann, "Who owns Heron?")
    assert (result["entities"], result["edges"]) == ([], [])
    assert naming.contents(result["matches"]) == ["z"]


def test_a_title_without_words_has_no_subjects(world: World, people: People):
    for title in ("🚀", "—", "x"):
        assert naming.subjects(world, naming.put(world, people.ann, title, "y")) == {}
    long = naming.put(world, people.ann, "Long " * 99, "y")
    assert set(naming.subjects(world, long)) == {("long " * 40).strip()}
