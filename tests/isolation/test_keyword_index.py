"""Attacks by direct SQL on the keyword index: a member's rows name segments of private documents.

ann has private documents in a segment; alf is a member, and ada an admin, of the same org."""

from typing import Any

import psycopg
import pytest

from tests.actors import World
from tests.conftest import People
from tests.sql import passages

TABLES = ("document_terms", "term_segments", "term_blocks")
# A row of ann's with other values, without the generated column.
ROW = "insert into rag.{0} ({1}) select {1} from jsonb_populate_record(null::rag.{0}, %s::jsonb)"
# The same past the policies that admit the index alone, as a session can that is not PostgREST's.
FORGED = f"{ROW}, set_config('rag.loads_words', 'true', true) as allowed"


@pytest.fixture
def private(world: World, people: People) -> dict[str, list[dict[str, Any]]]:
    """ann's rows in each table, with forty private documents; alf and ann have shared ones."""
    passages.put_many(world, people.ann, [f"zebra secret{number}" for number in range(40)], private=True)
    passages.put_many(world, people.alf, [f"public thing{number}" for number in range(40)])
    rows = "select to_jsonb(stored) - 'class' from rag.{} as stored where owner_id = %s"
    return {table: [row for (row,) in world.sql(rows.format(table), people.ann.id)] for table in TABLES}


def forge(world: World, people: People, table: str, row: dict[str, Any], **values: Any) -> str | None:
    """Write ann's row as alf, in the class of shared documents; the error's SQLSTATE."""
    row = row | {"owner_id": None} | values
    statement = FORGED.format(table, ", ".join(row))
    try:
        world.as_user(people.alf, statement, psycopg.types.json.Jsonb(row))
    except psycopg.Error as error:
        return error.sqlstate
    return None


def index_of(world: World, people: People) -> list[list[tuple[Any, ...]]]:
    """ann's rows."""
    rows = "select to_jsonb(stored) from rag.{} as stored where owner_id = %s order by 1"
    return [world.sql(rows.format(table), people.ann.id) for table in TABLES]


def write_shared(world: World, people: People) -> None:
    """Changes of the shared class: folds and merges by an admin, replacement and deletion by the attacker."""
    for number in range(4):
        texts = [f"public more{number} {place}" for place in range(33)]
        passages.put_many(world, people.ada, texts)
    passages.put(world, people.alf, "public again", external_id="x")
    passages.put(world, people.alf, "public once more", external_id="x")
    world.as_user(
        people.alf, "delete from rag.documents where content like 'public thing1%%' and owner_id is null"
    )
    world.as_user(people.ada, "delete from rag.documents where content like 'public more1%%'")


@pytest.mark.parametrize("table", TABLES)
def test_the_index_alone_writes_rows_also_those_that_a_member_may_change(
    world: World, people: People, table: str, private: dict[str, list[dict[str, Any]]]
):
    rows = f"select to_jsonb(stored) from rag.{table} as stored where org_id = %s order by 1"
    before = world.sql(rows, people.acme.id)
    row = private[table][0] | {"owner_id": people.alf.id}
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(people.alf, ROW.format(table, ", ".join(row)), psycopg.types.json.Jsonb(row))
    changed = {"document_terms": "terms = '{}', places = '{}'", "term_segments": "length = 0"}
    world.as_user(people.alf, f"update rag.{table} set {changed.get(table, 'entries = null')}")
    world.as_user(people.alf, f"delete from rag.{table}")
    assert world.sql(rows, people.acme.id) == before


def test_rows_that_name_a_private_segment_change_nothing_of_it(
    world: World, people: People, private: dict[str, list[dict[str, Any]]]
):
    before = index_of(world, people)
    ((shared,),) = world.sql(
        "select id::text from rag.documents where org_id = %s and content = 'public thing1'", people.acme.id
    )
    for document in private["document_terms"][:5]:
        assert forge(world, people, "document_terms", document) is None
        assert forge(world, people, "document_terms", document, document_id=shared) in (None, "23505")
    for table in ("term_segments", "term_blocks"):
        for row in private[table]:
            assert forge(world, people, table, row) is None
    for person in (people.ann, people.ada):
        assert len(passages.search(world, person, "zebra", top_k=100)) == 40
    assert passages.search(world, people.alf, "zebra") == []
    write_shared(world, people)
    assert index_of(world, people) == before
    assert len(passages.search(world, people.ann, "zebra", top_k=100)) == 40
    assert passages.search(world, people.alf, "zebra") == []


def test_no_key_betrays_a_private_document(
    world: World, people: People, private: dict[str, list[dict[str, Any]]]
):
    """A key that another class has is free in the own class, as any other."""
    for table in TABLES:
        assert forge(world, people, table, private[table][0]) is None, table


def test_rows_of_a_member_do_not_stop_the_writes_of_others(
    world: World, people: People, private: dict[str, list[dict[str, Any]]]
):
    for document in private["document_terms"]:
        assert forge(world, people, "document_terms", document, segment=None, number=None) is None
    passages.put(world, people.ann, "zebra later", private=True)
    passages.put_many(world, people.ada, [f"public later{number}" for number in range(40)])
    assert len(passages.search(world, people.ann, "zebra", top_k=100)) == 41


def test_malformed_rows_are_refused(world: World, people: People, private: dict[str, list[dict[str, Any]]]):
    """They would make the searches and writes of the class fail."""
    malformed: dict[str, list[dict[str, Any]]] = {
        "document_terms": [
            {"chunks": 0}, {"chunks": 2**31 - 1}, {"length": 2**62}, {"number": 0}, {"number": 65536},
            {"segment": None}, {"number": None}, {"places": []}, {"terms": [[1]], "places": [[1]]},
            {"terms": [None], "places": [1]}, {"terms": [1], "places": [None]},
        ],
        "term_segments": [{"documents": -1}, {"chunks": -1}, {"chunks": 2**62}, {"length": 2**62}],
        "term_blocks": [
            {"terms": [None]}, {"terms": [[1]]}, {"entries": [None]}, {"chunks": [0]}, {"ends": [-1]},
        ],
    }  # fmt: skip
    for table, cases in malformed.items():
        for case in cases:
            assert forge(world, people, table, private[table][0], **case) in ("23514", "0A000"), (table, case)


@pytest.mark.parametrize("table", TABLES)
def test_no_member_reads_or_writes_rows_of_private_documents_of_others(
    world: World, people: People, table: str, private: dict[str, list[dict[str, Any]]]
):
    before = index_of(world, people)
    for person in (people.alf, people.bob):
        assert world.as_user(person, f"select 1 from rag.{table} where owner_id = %s", people.ann.id) == []
        world.as_user(person, f"delete from rag.{table}")
        world.as_user(person, f"update rag.{table} set owner_id = null")
        row = private[table][0]
        statement = FORGED.format(table, ", ".join(row))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_user(person, statement, psycopg.types.json.Jsonb(row))
    assert index_of(world, people) == before


def test_functions_of_the_index_change_no_class_that_the_caller_does_not_see(
    world: World, people: People, private: dict[str, list[dict[str, Any]]]
):
    before = index_of(world, people)
    ((seg_class,),) = world.sql(
        "select distinct class from rag.term_segments where owner_id = %s", people.ann.id
    )
    document, segment = private["document_terms"][0], private["term_segments"][0]["segment"]
    for person in (people.alf, people.bob):
        for call, arguments in (
            ("index_words(%s, %s)", [people.acme.id, [document["document_id"]]]),
            ("remove_words(%s, %s)", [people.acme.id, [document["document_id"]]]),
            ("fold_tail(%s, %s)", [people.acme.id, seg_class]),
            (
                "write_segment(%s, %s, %s, %s)",
                [people.acme.id, seg_class, [document["document_id"]], [segment]],
            ),
        ):
            world.as_user(person, f"select rag.{call}", *arguments)
    assert index_of(world, people) == before
