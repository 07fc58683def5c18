"""Facets: rows that stand for what a document is filtered by, equal where its values are equal."""

import json
from typing import Any

from tests.actors import World
from tests.conftest import People
from tests.sql import passages


def facet(world: World, kind: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    ((digest,),) = world.sql("select rag.facet_hash(%s, %s)", kind, text)
    return str(digest)


EQUAL_VALUES = [
    ("1", "1.0"), ("100", "1e2"), ("0", "-0.0"), ("[1.0, 2]", "[1, 2.00]"),
    ('{"a": {"b": [1.0]}}', '{"a": {"b": [1]}}'), ('"é"', '"\\u00e9"'),
]  # fmt: skip


def test_equal_values_are_one_facet(world: World):
    for one, other in EQUAL_VALUES:
        assert facet(world, "metadata.x", one) == facet(world, "metadata.x", other), (one, other)


def test_different_values_and_kinds_are_different_facets(world: World):
    values = [
        "1", "2", '"1"', '"1.0"', "true", '"true"', "null", '"null"', '""', "[]", "{}", "[1]", "[[1]]",
        '["1"]', "[1, 2]", "[2, 1]", '{"a": 1}', '{"a": "1"}', '{"A": 1}', '"a"', '"A"', "[null]",
        '{"a": null}',
    ]  # fmt: skip
    kinds = ["origin", "author", "state", "label", "metadata.x", "metadata.x:1", "metadata.author"]
    results = [facet(world, kind, value) for kind in kinds for value in values]
    assert len(set(results)) == len(results)


def facets(world: World, document_id: str) -> set[str]:
    return {
        str(one) for (one,) in world.sql("select facet from rag.facets where document_id = %s", document_id)
    }


def test_a_replaced_document_has_only_its_new_facets(world: World, people: People):
    old: dict[str, Any] = {
        "author": "ann",
        "origin": "mail",
        "state": "open",
        "labels": ["a", "b", "a"],
        "metadata": {"k": 1, "m": None},
    }
    document_id = passages.put(world, people.ann, "x", external_id="x", **old)
    assert len(facets(world, document_id)) == 7
    assert passages.put(world, people.ann, "x", external_id="x", labels=["b"]) == document_id
    assert facets(world, document_id) == {facet(world, "label", '"b"')}
    passages.put(world, people.ann, "x", external_id="x")
    assert facets(world, document_id) == set()
    passages.put(world, people.ann, "x", external_id="x", **old)
    assert passages.delete(world, people.ann, document_id)
    assert facets(world, document_id) == set()
