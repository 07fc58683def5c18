"""Chunks: SQL takes the text of each from its span of the document, never from the caller."""

import json
import random
from time import perf_counter
from typing import Any

import pytest

from tests.actors import MODEL, Actor, World, put_arguments, vector
from tests.conftest import People
from tests.sql.base.test_value_checks import MOST_MEMORY, largest_growth

Row = dict[str, Any]
FORGED = "Members of this org pay no rent."


def texts_of(world: World, actor: Actor, content: str, spans: list[Any]) -> list[str]:
    chunks = [{"span_start": start, "span_end": end} for start, end in spans]
    ((texts,),) = world.as_user(actor, "select rag.cut_texts(%s, %s)", content, json.dumps(chunks))
    return list(texts)


def stored(world: World, actor: Actor) -> list[tuple[str, str]]:
    """The text of each chunk of the actor's org, and the text of its span."""
    assert actor.org
    return world.sql(
        "select chunks.content, substr(documents.content, span_start + 1, span_end - span_start) "
        "from rag.chunks join rag.documents on documents.id = document_id where chunks.org_id = %s "
        "order by title, ordinal",
        actor.org.id,
    )


def test_a_chunk_s_own_text_is_not_stored(people: People, world: World):
    arguments = put_arguments(people.acme, [vector(1), vector(2)], title="a", content="Élan 🥛\nPlan")
    forged = [{**chunk, "content": FORGED} for chunk in arguments["chunks"]]
    forged[1] |= {"span_start": 3, "span_end": 6}
    assert people.ann.store({**arguments, "chunks": forged}).status_code == 200
    one = {**arguments["document"], "chunks": forged}
    many = {"collection": "many", "documents": [{**one, "title": "b"}, {**one, "title": "c"}]}
    assert people.ann.rpc("rag_put_documents", many).status_code == 200
    begin = {"name": "loaded", "overwrite": False, "documents": 1, "collection": {}}
    home = people.ann.rpc("rag_begin_load", begin).json()
    loading = {"collection_id": home, "documents": [{**one, "title": "d"}], "first": 0}
    (row,) = people.ann.rpc("rag_load_documents", loading).json()
    more = {"collection_id": home, "document_id": row["document_id"], "embedding_model": MODEL, "last": True}
    assert people.ann.rpc("rag_load_chunks", {**more, "chunks": forged}).status_code == 204
    first, second = ("É", "É"), ("n 🥛", "n 🥛")
    assert stored(world, people.ann) == [first, second] * 5


def test_spans_count_characters(people: People, world: World):
    """Characters of one to four bytes, across the blocks in which the text is read."""
    draw = random.Random(22)  # noqa: S311  # not a secret
    for length in (1, 2, 4095, 4096, 4097, 8193, 20_000):
        for alphabet in ("a", "aé漢🥛", "🥛", "漢"):
            text = "".join(draw.choices(alphabet, k=length))
            ends = [sorted(draw.choices(range(length + 1), k=2)) for _ in range(40)]
            spans = [(start, end) for start, end in ends if start < end]
            spans += [(0, length), (length - 1, length), (0, 1)]
            texts = texts_of(world, people.ann, text, spans)
            assert texts == [text[start:end] for start, end in spans], (length, alphabet)
    assert texts_of(world, people.ann, "", []) == []


def test_the_header_of_a_chunk_is_a_span_of_its_document(people: People, world: World):
    """A header of the caller is not stored."""
    arguments = put_arguments(people.acme, [vector(1), vector(2), vector(3)], content="| Élan | 🥛 |\nrow")
    metadata: list[Row] = [
        {"header": FORGED},
        {"header_start": 0, "header_end": 12, "page_number": 1},
        {"header_start": 2, "header_end": 6, "header": FORGED},
    ]
    for chunk, fields in zip(arguments["chunks"], metadata, strict=True):
        chunk |= {"metadata": fields, "span_start": 13, "span_end": 16}
    assert people.ann.store(arguments).status_code == 200
    headers = "select metadata ->> 'header' from rag.chunks where org_id = %s order by ordinal"
    assert world.sql(headers, people.acme.id) == [(None,), ("| Élan | 🥛 |",), ("Élan",)]
    for start, end in ((0, 14), (0, 0), (0, None), (None, 3), ("x", 3), (0, 1.5), (-1, 3), (0, 2**40)):
        arguments["chunks"][0] |= {"metadata": {"header_start": start, "header_end": end}}
        answer = people.ann.store(arguments)
        assert (answer.status_code, answer.json()["details"]) == (400, "invalid_header"), (start, end)


def test_a_header_of_many_chunks_is_cut_once(people: People, world: World):
    """Also where it is longer than its chunks, as in a wide table."""
    header = "| " + "column | " * 50
    arguments = put_arguments(people.acme, [vector(1)] * 200, content=f"{header}\n" + "| 1 |\n" * 200)
    for number, chunk in enumerate(arguments["chunks"]):
        start = len(header) + 1 + 6 * number
        chunk |= {"span_start": start, "span_end": start + 5}
        chunk |= {"metadata": {"header_start": 0, "header_end": len(header), "section": "é" * 300}}
    assert people.ann.store(arguments).status_code == 200
    headers = "select distinct metadata ->> 'header' from rag.chunks where org_id = %s"
    assert world.sql(headers, people.acme.id) == [(header,)]


MOST = 2**31 - 1
OUTSIDE = [(0, 7), (6, 7), (-1, 3), (3, 3), (4, 3), (None, 3), (0, None), (MOST, MOST), (-MOST, 1)]


def test_a_span_outside_its_document_is_refused(people: People, subtests: pytest.Subtests):
    for start, end in OUTSIDE:
        with subtests.test(start=start, end=end):
            arguments = put_arguments(people.acme, [vector(1), vector(2)], content="Élan 🥛")
            arguments["chunks"][1] |= {"span_start": start, "span_end": end}
            answer = people.ann.store(arguments)
            assert (answer.status_code, answer.json()["details"]) == (400, "span_outside")


def test_repeated_spans_take_little_memory(people: People, world: World):
    """Thousands of spans of a whole text are a call of some hundred kilobytes, and gigabytes of chunks."""
    arguments = put_arguments(people.acme, [], content="kiln " * 40_000)
    arguments["chunks"] = [{"span_start": 0, "span_end": 200_000}] * 3000
    with largest_growth(world) as largest:
        answer = people.ann.store(arguments)
    assert (answer.status_code, answer.json()["details"]) == (400, "spans_too_long")
    assert largest[0] < MOST_MEMORY


def test_the_time_for_the_texts_of_a_long_document_is_linear(people: People, world: World):
    """8 MB in 8,000 chunks: counting the characters again for each chunk would take minutes."""
    text = "Schöne Grüße: " * 500_000
    spans = [(start, min(start + 950, len(text))) for start in range(0, len(text), len(text) // 8000)]
    started = perf_counter()
    texts = texts_of(world, people.ann, text, spans)
    assert perf_counter() - started < 60
    assert texts == [text[start:end] for start, end in spans]


def test_hashes_are_computed_from_the_stored_text(people: People, world: World):
    """A hash that the caller sends neither hides an existing document nor stands for another."""
    ((digest,),) = world.sql("select encode(sha256('kiln'), 'hex')")
    claimed = "0" * 64
    people.ann.put([vector(1)], content="kiln", content_hash=claimed, collection="docs", external_id="a")
    people.ann.put([vector(1)], content="kiln", content_hash=claimed, collection="docs", external_id="a")
    home = people.ann.rpc("rag_find_collection", {"collection": "docs"}).json()[0]["id"]
    document = {"title": "b", "bytes": "a2lsbg==", "content_hash": claimed}
    first = people.ann.rpc("rag_add_document", {"collection_id": home, "document": document})
    assert first.status_code == 200, first.text
    del document["content_hash"]
    second = people.ann.rpc("rag_add_document", {"collection_id": home, "document": document})
    assert (second.status_code, second.json()["details"]) == (409, "duplicate_document")
    rows = world.sql(
        "select content_hash from rag.documents where org_id = %s union all "
        "select content_hash from rag.originals where org_id = %s",
        people.acme.id, people.acme.id,
    )  # fmt: skip
    assert rows == [(digest,)] * 3
