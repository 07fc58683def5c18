"""Names in chunks: rows at put, gone with the chunk; whatever comes as a name, no document is lost."""

from typing import Any

import pytest

from tests.actors import World
from tests.conftest import People
from tests.sql import naming, passages, reading
from tests.sql.naming import NamedChunk

FULL = {"name": "Michael Curtiz", "kind": "person", "surfaces": ["Michael Curtiz", "Curtiz"], "weight": 0.75}


def rows(world: World, document_id: str) -> list[tuple[Any, ...]]:
    columns = "ordinal, entity, name, kind, surfaces, weight"
    return world.sql(f"select {columns} from rag.mentions where document_id = %s order by 1, 2", document_id)


def test_an_entity_has_one_row_per_chunk(world: World, people: People):
    """It is found by its folded form. The most prominent writing is its name; a kind that says more wins."""
    names = [
        {"name": "michael curtiz", "kind": "name", "surfaces": ["curtiz"], "weight": 0.9},
        FULL,
        {"name": "MICHAEL CURTIZ", "kind": "place", "weight": 0.1},
    ]
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", names), NamedChunk("y", [FULL]))
    first, second = rows(world, document_id)
    assert first[:4] == (0, "michael curtiz", "michael curtiz", "person")
    assert sorted(first[4]) == ["Curtiz", "MICHAEL CURTIZ", "Michael Curtiz", "curtiz"]
    assert first[5] == pytest.approx(0.9)
    assert second == (1, "michael curtiz", "Michael Curtiz", "person", ["Curtiz", "Michael Curtiz"], 0.75)


def test_names_are_replaced_with_their_chunks(world: World, people: People):
    chunks = [NamedChunk("x", ["Heron"]), NamedChunk("y", ["Heron"])]
    one = naming.put(world, people.ann, "t", *chunks, external_id="e")
    assert reading.mentions(world, one) == [(0, "heron"), (1, "heron")]
    assert naming.put(world, people.ann, "t", NamedChunk("x", ["Kestrel"]), external_id="e") == one
    assert reading.mentions(world, one) == [(0, "kestrel")]
    naming.put(world, people.ann, "t", NamedChunk("x", None), external_id="e")
    assert reading.mentions(world, one) == []


def test_a_chunk_s_names_are_deleted_with_it(world: World, people: People):
    surfaces = NamedChunk("y", ["Heron", "Egret"], [("Heron", "PART_OF", "Egret")])
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", ["Heron"]), surfaces)
    world.sql("delete from rag.chunks where document_id = %s and ordinal = 1", document_id)
    assert reading.mentions(world, document_id) == [(0, "heron")]
    assert reading.relations(world, document_id) == []


NO_NAMES: list[Any] = [
    None, 7, [], "Heron", {"kind": "person"}, {"name": None}, {"name": ""}, {"name": "🚀"},
    {"name": "x" * 201}, {"name": "He\u202eron"},
]  # fmt: skip


def test_invalid_names_are_left_out_and_valid_ones_stored(world: World, people: People):
    for name in NO_NAMES:
        chunk = passages.passages(["x"])[0] | {"names": [name, FULL], "relations": []}
        document_id = passages.put(world, people.ann, "x", chunks=[chunk])
        assert reading.mentions(world, document_id) == [(0, "michael curtiz")], ascii(name)


ODD: dict[str, tuple[dict[str, Any], Any]] = {
    "kind of blanks": ({"kind": "a b"}, ("name", None, None)),
    "kind of no text": ({"kind": {"a": 1}}, ("name", None, None)),
    "kind of its own": ({"kind": "space_ship"}, ("space_ship", None, None)),
    "weight above": ({"weight": 7}, (None, None, 1)), "weight below": ({"weight": -7}, (None, None, 0)),
    "weight beyond all": ({"weight": int("1" + "0" * 299)}, (None, None, 1)),
    "weight as text": ({"weight": "1"}, (None, None, 0.5)),
    "no weight": ({"weight": None}, (None, None, 0.5)),
    "said as text": ({"surfaces": "Curtiz"}, (None, ["Michael Curtiz"], None)),
    "said nothing": ({"surfaces": []}, (None, [], None)),
    "said what is none": (
        {"surfaces": [None, 7, "", "x" * 201, "\u202ex", ["a"], {"c": 1}]},
        (None, [], None),
    ),
    "said twice": ({"surfaces": ["Curtiz", "Curtiz"]}, (None, ["Curtiz"], None)),
    "more than is known": ({"colour": "red"}, (None, None, None)),
}  # fmt: skip


def test_invalid_optional_fields_of_a_name_are_dropped(world: World, people: People):
    unchanged = ("person", ["Curtiz", "Michael Curtiz"], 0.75)
    for what, (fields, expected) in ODD.items():
        document_id = naming.put(world, people.ann, "t", NamedChunk("x", [FULL | fields]))
        ((_, entity, name, *values),) = rows(world, document_id)
        assert (entity, name) == ("michael curtiz", "Michael Curtiz"), what
        for value, wanted, otherwise in zip(values, expected, unchanged, strict=True):
            assert value == (otherwise if wanted is None else wanted), what


def test_names_that_are_not_a_list_are_ignored(world: World, people: People):
    extracted = "select state from rag.jobs where id = %s"
    for names in ["Heron", 7, {"name": "Heron"}, True, None]:
        chunk = passages.passages(["x"])[0] | {"names": names, "relations": names}
        document_id = passages.put(world, people.ann, "x", chunks=[chunk])
        assert reading.mentions(world, document_id) == [], names
        assert world.sql(extracted, document_id) == [("waiting",)], names


def test_a_chunk_has_at_most_two_hundred_names_and_a_document_ten_thousand(world: World, people: People):
    names = [f"Name {number}" for number in range(10_000)]
    surfaces = NamedChunk("y", [FULL | {"surfaces": [f"S{number}" for number in range(1000)]}])
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", names), surfaces)
    assert reading.counts(world, document_id) == [0, 201, 0, 1]
    assert [len(row[4]) for row in rows(world, document_id) if row[0] == 1] == [20]
    chunks = [NamedChunk(f"x{part}", names[200 * part : 200 * (part + 1)]) for part in range(50)]
    document_id = naming.put(world, people.ann, "t", *chunks)
    assert reading.counts(world, document_id) == [0, 10_000, 0, 1]
