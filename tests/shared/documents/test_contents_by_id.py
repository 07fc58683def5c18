"""Contents by ids: what there is, in which order, and how much of it."""

from datetime import datetime
from typing import Any

import pytest

from shared.documents.contents_by_id import hydrate
from shared.errors import InvalidRequest
from shared.retrieval.types import Contents, Kind, SearchArea
from shared.services import Services
from shared.types import Graph
from tests import graph_documents
from tests.actors import NOBODYS, World, vector
from tests.conftest import People
from tests.sql import passages

Ids = list[tuple[Kind, str]]


def read_contents(services: Services, people: People, ids: Ids, **more: Any) -> Contents:
    """What ann finds anywhere in her org."""
    request = {"chunks": False, "text": True, "whole_org": True, **more}
    return hydrate(services.database, people.ann.principal, SearchArea(people.acme.id, None), ids, **request)


def chunk_of(world: World, document_id: str, ordinal: int = 0) -> str:
    ((chunk,),) = world.sql(
        "select id::text from rag.chunks where document_id = %s and ordinal = %s", document_id, ordinal
    )
    return str(chunk)


def large(world: World, people: People, characters: int, *texts: str) -> str:
    """A document of ann's of so many characters, and with these chunks."""
    vectors = [vector(1)] * len(texts)
    document = passages.put(world, people.ann, *texts, vectors=vectors)
    world.sql("update rag.documents set content = repeat('é', %s) where id = %s", characters, document)
    return document


def test_a_document_and_a_chunk_have_all_their_fields(services: Services, people: People, world: World):
    fields: dict[str, Any] = {
        "title": "Incident 42", "source_type": "incident", "origin": "notion", "uri": "https://a.example/b",
        "author": "alice", "state": "open", "labels": ["x", "y"], "metadata": {"severity": 1},
        "occurred_at": "2025-09-22T10:11:00Z",
    }  # fmt: skip
    document = passages.put(world, people.ann, "first", "second", **fields)
    chunk = chunk_of(world, document, 1)
    ids: Ids = [("document", f"DOC_{document.upper()}"), ("chunk", f"chnk_{chunk}")]
    contents = read_contents(services, people, ids)
    (output,) = contents.documents
    assert (output.document_id, output.title, output.source_type) == (document, "Incident 42", "incident")
    assert (output.origin, output.uri, output.author) == ("notion", "https://a.example/b", "alice")
    assert (output.state, output.labels, output.metadata["severity"]) == ("open", ("x", "y"), 1)
    assert output.occurred_at == datetime.fromisoformat("2025-09-22T10:11:00Z")
    assert (output.text, output.chunks, output.truncated) == ("first\nsecond", None, False)
    (part,) = contents.chunks
    assert (part.chunk_id, part.document_id, part.ordinal) == (chunk, document, 1)
    assert (part.text, part.span, contents.missing) == ("second", (6, 12), ())


def test_results_are_in_the_order_of_the_ids_without_duplicates(
    services: Services, people: People, world: World
):
    documents = [passages.put(world, people.ann, str(number)) for number in range(5)]
    ids: Ids = [("document", one) for one in (*reversed(documents), documents[0], documents[3].upper())]
    contents = read_contents(services, people, ids)
    assert [one.document_id for one in contents.documents] == documents[::-1]
    assert contents.missing == ()


def test_a_text_is_complete_or_absent_and_later_ones_may_fit(
    services: Services, people: People, world: World
):
    """4,500,000 bytes, of which each of these letters has two."""
    first, second, small = (large(world, people, size) for size in (1_500_000, 800_000, 500_000))
    contents = read_contents(services, people, [("document", one) for one in (first, second, small)])
    assert [len(one.text or "") for one in contents.documents] == [1_500_000, 0, 500_000]
    assert [one.text is None for one in contents.documents] == [False, True, False]
    assert [one.truncated for one in contents.documents] == [False, True, False]


def test_the_first_chunks_that_fit_are_returned(services: Services, people: People, world: World):
    texts = ["x " * 2000, "y " * 2000, "z " * 2000]
    document = large(world, people, 2_245_000, *texts)
    chunk = chunk_of(world, document)
    tiny = passages.put(world, people.ann, "tiny")
    ids: Ids = [("document", document), ("chunk", chunk), ("document", tiny)]
    contents = read_contents(services, people, ids, chunks=True)
    first, after = contents.documents
    assert [part.text for part in first.chunks or ()] == texts[:2]
    assert (len(first.text or ""), first.truncated) == (2_245_000, True)
    assert (contents.chunks[0].text, contents.missing) == (None, ())
    assert (after.text, len(after.chunks or ()), after.truncated) == ("tiny", 1, False)


def test_a_hundred_ids_are_accepted_and_more_refused(services: Services, people: People, world: World):
    document = passages.put(world, people.ann, *map(str, range(100)))
    rows = world.sql("select id::text from rag.chunks where document_id = %s order by ordinal", document)
    ids: Ids = [("chunk", str(chunk)) for (chunk,) in rows]
    assert [part.text for part in read_contents(services, people, ids).chunks] == list(map(str, range(100)))
    with pytest.raises(InvalidRequest) as refused:
        read_contents(services, people, [*ids, ("chunk", NOBODYS)])
    assert refused.value.code == "invalid_ids"
    assert read_contents(services, people, []) == Contents((), (), ())


def test_graphs_are_returned_as_long_as_they_fit(
    services: Services, people: People, monkeypatch: pytest.MonkeyPatch
):
    documents = graph_documents.put_all(services, people.ann)
    ids: Ids = [("document", documents[title]) for title in ("Billing Service", graph_documents.TEAM)]
    assert [one.graph for one in read_contents(services, people, ids).documents] == [None, None]
    whole = read_contents(services, people, ids, hops=1).documents
    assert [(bool(one.graph and one.graph.edges), one.truncated) for one in whole] == [(True, False)] * 2
    monkeypatch.setattr("shared.documents.contents_by_id.MAX_GRAPH_BYTES", 1000)
    first, second = read_contents(services, people, ids, hops=1).documents
    assert (first.graph, first.truncated) == (whole[0].graph, False)
    assert (second.graph, second.truncated) == (Graph(), True)
    monkeypatch.setattr("shared.documents.contents_by_id.GRAPHS_AT_ONCE", 1)
    assert read_contents(services, people, ids, hops=1).documents == (first, second)
