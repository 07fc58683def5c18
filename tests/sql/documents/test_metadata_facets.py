"""Facets: rows that stand for what a document is filtered by, equal where its values are equal."""

from typing import Any

from tests.actors import World
from tests.conftest import People
from tests.sql import passages


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
    ((label,),) = world.sql("select rag.facet_hash('label', to_jsonb('b'::text))::text")
    assert facets(world, document_id) == {label}
    passages.put(world, people.ann, "x", external_id="x")
    assert facets(world, document_id) == set()
    passages.put(world, people.ann, "x", external_id="x", **old)
    assert passages.delete(world, people.ann, document_id)
    assert facets(world, document_id) == set()
