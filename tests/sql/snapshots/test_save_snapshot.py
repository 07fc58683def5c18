"""The functions that persist an index, called through PostgREST: each response has a few megabytes of it."""

from typing import Any

from shared.documents.snapshots.persist import IndexReader
from shared.services import Services
from tests.actors import Actor, World, vector
from tests.conftest import People

Row = dict[str, Any]
LONG = "The kettle is hot. \N{GRINNING FACE} " * 60_000
TEXTS = ["short", LONG, LONG, LONG, LONG, "short too"]


def index(world: World, people: People) -> str:
    """An index of these texts, the second with 600 chunks; its id."""
    people.ann.put([vector(1)], collection="i", external_id="first")
    ((collection,),) = world.sql("select id::text from rag.collections where org_id = %s", people.acme.id)
    world.sql(
        "insert into rag.documents (org_id, collection_id, external_id, title, content, content_hash, "
        "  created_at) "
        "select %s, %s, place::text, 't', content, repeat('0', 64), now() + place * interval '1 second' "
        "from unnest(%s::text[]) with ordinality as listed (content, place)",
        people.acme.id, collection, TEXTS,
    )  # fmt: skip
    world.sql(
        "insert into rag.chunks (org_id, document_id, collection_id, ordinal, content, span_start, span_end, "
        "  token_count, source_type, embedding_model, embedding) "
        "select first.org_id, documents.id, first.collection_id, place, 'The', 0, 3, 1, "
        "  'doc', first.embedding_model, first.embedding "
        "from rag.chunks as first, rag.documents, generate_series(0, 599) as place "
        "where first.org_id = %s and documents.org_id = %s and documents.external_id = '2'",
        people.acme.id, people.acme.id,
    )  # fmt: skip
    return str(collection)


def answer(actor: Actor, function: str, **arguments: Any) -> tuple[int, list[Row]]:
    """How many bytes the response has, and its rows."""
    response = actor.rpc(function, arguments)
    assert response.status_code == 200, response.text
    return len(response.content), response.json()


def test_the_size_of_a_response_is_limited_and_the_parts_are_complete(
    people: People, world: World, services: Services
):
    collection = index(world, people)
    _, listed = answer(people.ann, "rag_snapshot_documents", collection_id=collection)
    ids = [row["id"] for row in listed]
    size, rows = answer(people.ann, "rag_read_snapshot_documents", collection_id=collection, document_ids=ids)
    # The fourth megabyte ends within the sixth document.
    long = rows[2]
    assert (len(rows), size < 12 << 20) == (6, True)
    assert (len(long["content"]), long["length"]) == (10**6, len(LONG))
    assert (len(long["chunks"]), long["chunk_count"]) == (256, 600)
    place = {"document_id": long["id"], "updated_at": long["updated_at"]}
    for first, count in ((0, 512), (256, 344)):
        arguments = {"collection_id": collection, **place, "first": first}
        size, chunks = answer(people.ann, "rag_read_snapshot_chunks", **arguments)
        assert (len(chunks), size < 5 << 20) == (count, True)

    read = [
        (document["name"], document["content"], len(list(chunks)))
        for document, chunks in IndexReader(services.database, people.ann.principal, "i").documents()
    ]
    counts = [0, 600, 0, 0, 0, 0]
    assert read[0] == ("first", "0", 1)
    assert read[1:] == [(str(place), text, counts[place - 1]) for place, text in enumerate(TEXTS, 1)]
