"""How far documents have been read for names: the rows that come and change with documents."""

import json
from typing import Any

import pytest

from tests.actors import MODEL, World
from tests.conftest import People
from tests.sql import naming, passages
from tests.sql.naming import NamedChunk

STATE = "level, model, next_ordinal, prompt_tokens, completion_tokens, attempts, lease, error_code"
NEW = (None, 0, 0, 0, 0, None, None)


def state(world: World, document_id: str) -> list[tuple[Any, ...]]:
    return world.sql(f"select {STATE} from rag.extractions where document_id = %s", document_id)


def fail(world: World, document_id: str) -> None:
    """As the worker might leave it."""
    world.sql(
        "update rag.extractions set level = 1, model = 'm', next_ordinal = 5, prompt_tokens = 7, "
        "completion_tokens = 8, attempts = 3, due_at = null, lease = gen_random_uuid(), "
        "error_code = 'failed', error_message = 'no', user_id = null where document_id = %s",
        document_id,
    )


@pytest.mark.parametrize(
    ("chunks", "level"),
    [
        ([NamedChunk("x", [])], 1),
        ([NamedChunk("x", ["Heron"]), NamedChunk("y", [])], 1),
        ([NamedChunk("x", None)], 0),
        ([NamedChunk("x", ["Heron"]), NamedChunk("y", None)], 0),
    ],
    ids=["nothing named", "all looked at", "nobody looked", "half looked at"],
)
def test_a_document_s_extractor_is_known_from_its_chunks(
    world: World, people: People, chunks: list[NamedChunk], level: int
):
    document_id = naming.put(world, people.ann, "t", *chunks)
    assert state(world, document_id) == [(level, *NEW)]
    due = "select user_id::text, due_at <= now() from rag.extractions where document_id = %s"
    assert world.sql(due, document_id) == [(people.ann.id, True)]


@pytest.mark.parametrize(("names", "level"), [([], 1), (None, 0)], ids=str)
def test_a_new_version_is_extracted_again_with_the_rights_of_its_author(
    world: World, people: People, names: list[str] | None, level: int
):
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", ["Heron"]), external_id="e")
    fail(world, document_id)
    naming.put(world, people.alf, "t", NamedChunk("y", names), external_id="e")
    model, next_ordinal, *_, attempts, code, lease = NEW
    # What the old version cost was spent.
    assert state(world, document_id) == [(level, model, next_ordinal, 7, 8, attempts, code, lease)]
    due = "select user_id::text, due_at <= now(), error_message from rag.extractions where document_id = %s"
    assert world.sql(due, document_id) == [(people.alf.id, True, None)]


def test_a_new_title_is_extracted_again_and_keeps_the_usage(world: World, people: People):
    document_id = naming.put(world, people.ann, "t", NamedChunk("x", ["Heron"]))
    fail(world, document_id)
    passages.call(world, people.alf, "rag_update_document", document_id=document_id, changes={"title": "u"})
    ((level, _, ordinal, prompt, completion, attempts, lease, _),) = state(world, document_id)
    assert (level, ordinal, prompt, completion, attempts, lease) == (0, 0, 7, 8, 0, None)
    who = "select user_id::text, due_at <= now() from rag.extractions where document_id = %s"
    assert world.sql(who, document_id) == [(people.alf.id, True)]


def test_usage_of_a_document_s_parts_is_summed(world: World, people: People):
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
    for text, names, level in (("x", ["Heron"], 1), ("y", ["Kestrel"], 1), ("", None, 0), ("", [], 0)):
        (chunk,) = passages.passages([text or "x"])
        chunk |= NamedChunk(text, names).keys()
        world.as_user(
            people.ann,
            "select public.rag_load_chunks(%s, %s, %s, %s, false)",
            collection_id, document_id, json.dumps([chunk]), MODEL,
        )  # fmt: skip
        assert state(world, document_id) == [(level, *NEW)]
    assert naming.mentions(world, document_id) == [(0, "heron"), (1, "kestrel")]


def test_a_document_without_chunks_has_no_pending_extraction(world: World, people: People):
    document_id = passages.put(world, people.ann, chunks=[], content="x")
    assert state(world, document_id) == [(1, *NEW)]
