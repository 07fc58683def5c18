"""What chunks say of how names are related: edges that have both ends, and evidence."""

from typing import Any

from tests.actors import World
from tests.conftest import People
from tests.sql import naming, passages, reading
from tests.sql.naming import NamedChunk

STATEMENTS: list[tuple[list[Any], float]] = [
    ([("Heron", "OWNED_BY", "Kestrel", 0.75)], 0.75),
    ([("the HERON", "OWNED_BY", "Kestrel's", 0.5), ("Heron (bird)", "OWNED_BY", "kestrel", 0.75)], 0.75),
    *(([("Heron", "OWNED_BY", "Kestrel", confidence)], 1) for confidence in (1, 7, int("9" * 300))),
]


def test_a_relation_has_folded_ends_and_its_highest_confidence_which_is_at_most_one(
    world: World, people: People
):
    stored = "select confidence from rag.relations where document_id = %s"
    for relations, confidence in STATEMENTS:
        chunk = NamedChunk("x", ["Heron", "Kestrel"], relations)
        document_id = naming.put(world, people.ann, "t", NamedChunk("y"), chunk)
        assert reading.relations(world, document_id) == [(1, "heron", "OWNED_BY", "kestrel")]
        assert world.sql(stored, document_id) == [(confidence,)], str(relations)[:60]


ENDS = [
    ("t", ["Heron", "Kestrel"], True),
    ("Heron", ["Kestrel"], True),
    ("Heron: Kestrel", [], True),
    ("t", ["Heron"], False),
    ("Heron", [], False),
    ("t", ["Heron Kestrel"], False),
]


def test_both_ends_are_named_in_the_document_or_its_title(world: World, people: People):
    for title, names, remaining in ENDS:
        chunk = NamedChunk("x", names, [("Heron", "OWNED_BY", "Kestrel")])
        relations = reading.relations(world, naming.put(world, people.ann, title, chunk))
        assert bool(relations) is remaining, (title, names)


def test_an_end_may_be_in_another_chunk_of_the_document_but_not_in_another_document(
    world: World, people: People
):
    chunk = NamedChunk("x", ["Heron"], [("Heron", "OWNED_BY", "Kestrel")])
    together = naming.put(world, people.ann, "t", chunk, NamedChunk("y", ["Kestrel"]))
    assert reading.relations(world, together) == [(0, "heron", "OWNED_BY", "kestrel")]
    assert reading.relations(world, naming.put(world, people.ann, "t", chunk)) == []


FULL = {"subject": "Heron", "type": "OWNED_BY", "object": "Kestrel", "confidence": 0.9}
WRONG: dict[str, list[Any]] = {
    "subject": [None, 7, ["Heron"], {"name": "Heron"}, "", "🚀", "x" * 10_000, "Her\u202eon"],
    "object": [None, 7, ["Heron"], {"name": "Heron"}, "", "🚀", "x" * 10_000, "Her\u202eon"],
    "type": [None, 7, "", "A", "owned_by", "OWNED BY", "OWNED-BY", "_X", "A" * 51, []],
    "confidence": [None, 0, -1, 1e-300, "0.9", "NaN", "Infinity", [0.9], True],
}
NO_RELATIONS: list[Any] = [
    *(None, 7, True, "Heron OWNED_BY Kestrel", [], [FULL], {}),
    *({name: value for name, value in FULL.items() if name != missing} for missing in FULL),
    *(FULL | {name: value} for name, values in WRONG.items() for value in values),
    # An entity is not related to itself.
    *(FULL | {"object": other} for other in ("Heron", "HERON", "Heron (bird)")),
]


def test_invalid_relations_are_left_out_and_valid_ones_stored(world: World, people: People):
    for relation in NO_RELATIONS:
        chunk = NamedChunk("x", ["Heron", "Kestrel"], [relation, ("Kestrel", "PART_OF", "Heron")])
        document_id = naming.put(world, people.ann, "t", chunk)
        stored = reading.relations(world, document_id), reading.mentions(world, document_id)
        valid = [(0, "kestrel", "PART_OF", "heron")], [(0, "heron"), (0, "kestrel")]
        assert stored == valid, ascii(relation)[:100]


def test_relations_without_names_are_dropped(world: World, people: People):
    chunk = passages.passages(["x"])[0] | {"relations": [FULL]}
    document_id = passages.put(world, people.ann, "x", chunks=[chunk])
    assert reading.relations(world, document_id) == []


def test_a_chunk_has_at_most_two_hundred_relations(world: World, people: People):
    relations = [("Heron", f"{chr(65 + n % 26)}{chr(65 + n // 26 % 26)}{chr(65 + n // 676)}", "Kestrel")
                 for n in range(10_000)]  # fmt: skip
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", ["Heron", "Kestrel"], relations))
    assert len(reading.relations(world, document_id)) == 200


def test_relations_change_with_the_document_s_versions(world: World, people: People):
    one = NamedChunk("x", ["Heron", "Kestrel"], [("Heron", "OWNED_BY", "Kestrel")])
    other = NamedChunk("x", ["Heron", "Osprey"], [("Heron", "OWNED_BY", "Osprey")])
    document_id = naming.put(world, people.ann, "t", one, external_id="e")
    assert naming.put(world, people.ann, "t", other, external_id="e") == document_id
    assert reading.relations(world, document_id) == [(0, "heron", "OWNED_BY", "osprey")]
    passages.delete(world, people.ann, document_id)
    assert reading.relations(world, document_id) == []
