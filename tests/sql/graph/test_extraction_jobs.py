"""How far documents have been read for names: the rows that come and change with documents."""

import json
from typing import Any

import pytest

from tests.actors import MODEL, World
from tests.conftest import People
from tests.sql import naming, passages
from tests.sql.naming import NamedChunk

STATE = "is_extracted, next_ordinal, attempts, lease, error_code"
NEW = (0, 0, None, None)


def state(world: World, document_id: str) -> list[tuple[Any, ...]]:
    return world.sql(f"select {STATE} from rag.extractions where document_id = %s", document_id)


def fail(world: World, document_id: str) -> None:
    """As the worker might leave it."""
    world.sql(
        "update rag.extractions set is_extracted = true, next_ordinal = 5, attempts = 3, due_at = null, "
        "lease = gen_random_uuid(), "
        "error_code = 'failed', error_message = 'no', user_id = null where document_id = %s",
        document_id,
    )


@pytest.mark.parametrize(
    ("chunks", "is_extracted"),
    [
        ([NamedChunk("x", [])], True),
        ([NamedChunk("x", ["Heron"]), NamedChunk("y", [])], True),
        ([NamedChunk("x", None)], False),
        ([NamedChunk("x", ["Heron"]), NamedChunk("y", None)], False),
    ],
    ids=["nothing named", "all looked at", "nobody looked", "half looked at"],
)
def test_a_document_s_extractor_is_known_from_its_chunks(
    world: World, people: People, chunks: list[NamedChunk], is_extracted: bool
):
    document_id = naming.put(world, people.ann, "t", *chunks)
    assert state(world, document_id) == [(is_extracted, *NEW)]
    due = "select user_id::text, due_at <= now() from rag.extractions where document_id = %s"
    assert world.sql(due, document_id) == [(people.ann.id, True)]


@pytest.mark.parametrize(("names", "is_extracted"), [([], True), (None, False)], ids=str)
def test_a_new_version_is_extracted_again_with_the_rights_of_its_author(
    world: World, people: People, names: list[str] | None, is_extracted: bool
):
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", ["Heron"]), external_id="e")
    fail(world, document_id)
    naming.put(world, people.alf, "t", NamedChunk("y", names), external_id="e")
    assert state(world, document_id) == [(is_extracted, *NEW)]
    due = "select user_id::text, due_at <= now(), error_message from rag.extractions where document_id = %s"
    assert world.sql(due, document_id) == [(people.alf.id, True, None)]


def test_a_new_title_is_extracted_again(world: World, people: People):
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", ["Heron"]))
    fail(world, document_id)
    passages.call(world, people.alf, "rag_update_document", document_id=document_id, changes={"title": "u"})
    ((is_extracted, ordinal, attempts, lease, _),) = state(world, document_id)
    assert (is_extracted, ordinal, attempts, lease) == (False, 0, 0, None)
    who = "select user_id::text, due_at <= now() from rag.extractions where document_id = %s"
    assert world.sql(who, document_id) == [(people.alf.id, True)]


def test_a_document_of_parts_is_extracted_if_all_parts_are(world: World, people: People):
    """As a snapshot is loaded: what comes later may be unread, and is named all the same."""
    ((collection_id,),) = world.as_user(
        people.ann, "select public.rag_begin_load('loaded', false, 1, '{}'::jsonb)::text"
    )
    document = passages.document(people.ann, ["xy"], document_id="d")
    ((rows,),) = world.as_user(
        people.ann,
        "select jsonb_agg(to_jsonb(found)) from public.rag_load_documents(%s, %s, 0) as found",
        collection_id,
        json.dumps([document]),
    )
    assert rows, rows
    ((document_id,),) = world.sql(
        "select id::text from rag.documents where collection_id = %s", collection_id
    )
    for text, names, is_extracted in (
        ("x", ["Heron"], True),
        ("y", ["Kestrel"], True),
        ("", None, False),
        ("", [], False),
    ):
        (chunk,) = passages.passages([text or "x"])
        chunk |= NamedChunk(text, names).keys()
        world.as_user(
            people.ann,
            "select public.rag_load_chunks(%s, %s, %s, %s, false)",
            collection_id, document_id, json.dumps([chunk]), MODEL,
        )  # fmt: skip
        assert state(world, document_id) == [(is_extracted, *NEW)]
    assert naming.mentions(world, document_id) == [(0, "heron"), (1, "kestrel")]


def test_a_document_without_chunks_has_no_pending_extraction(world: World, people: People):
    document_id = passages.put(world, people.ann, chunks=[], content="x")
    assert state(world, document_id) == [(True, *NEW)]
