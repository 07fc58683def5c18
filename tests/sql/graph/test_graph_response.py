"""What a graph search shows of entities and edges: within the filters, with both ends, in their direction."""

from psycopg.types.json import Jsonb

from tests.actors import MODEL, World
from tests.conftest import People
from tests.sql import naming, passages
from tests.sql.naming import NamedChunk


def kestrel(surface: str) -> NamedChunk:
    name = {"name": "Kestrel", "kind": "team", "surfaces": ["Kestrel", surface], "weight": 0.9}
    return NamedChunk(f"Kestrel, {surface} and Heron", [name, "Heron"])


def test_names_and_aliases_come_from_documents_within_the_filters(world: World, people: People):
    naming.put(world, people.ann, "Notes", kestrel("the falcons"), source_type="doc")
    naming.put(world, people.ann, "Secrets", kestrel("Project Undisclosed"), source_type="ticket")
    entities = naming.graph(world, people.ann, "Who is Kestrel?", filters={"source_type": "doc"})["entities"]
    (seed,) = (entity for entity in entities if entity["seed"])
    assert (seed["id"], seed["aliases"]) == ("kestrel", ["the falcons"])


def test_an_alias_from_a_document_outside_the_filters_is_not_used(world: World, people: People):
    naming.put(world, people.ann, "Notes", NamedChunk("Kestrel is here", ["Kestrel"]), source_type="doc")
    chunk = NamedChunk(
        "Undisclosed is Kestrel", ["Undisclosed", "Kestrel"], [("Undisclosed", "ALIAS_OF", "Kestrel")]
    )
    naming.put(world, people.ann, "Secrets", chunk, source_type="ticket")
    everywhere = naming.graph(world, people.ann, "Who is Undisclosed?")
    assert "kestrel" in naming.ids(everywhere)
    within = naming.graph(world, people.ann, "Who is Undisclosed?", filters={"source_type": "doc"})
    assert naming.ids(within) == []


def test_co_occurrences_start_at_the_document_s_subject(world: World, people: People):
    naming.put(world, people.ann, "Heron", NamedChunk("It was made with Kestrel.", ["Kestrel"]))
    asked_of_the_other = naming.graph(world, people.ann, "Who is Kestrel?")
    asked_of_the_title = naming.graph(world, people.ann, "What is Heron?")
    for result in (asked_of_the_other, asked_of_the_title):
        assert naming.edges(result) <= {("heron", "RELATED_TO", "kestrel")}
    assert naming.edges(asked_of_the_title) == {("heron", "RELATED_TO", "kestrel")}


def test_an_entity_without_an_edge_has_its_chunk_as_evidence(world: World, people: People):
    document_id = naming.put(world, people.ann, "t", NamedChunk("Kestrel alone", ["Kestrel"]))
    result = naming.graph(world, people.ann, "Who is Kestrel?")
    assert (naming.edges(result), result["evidence"]) == (set(), naming.chunk_ids(world, document_id))


def test_both_ends_of_an_edge_are_among_the_entities(world: World, people: People):
    chunk = NamedChunk("Heron is Kestrel's", ["Heron", "Kestrel"], [("Heron", "OWNED_BY", "Kestrel")])
    document_id = naming.put(world, people.ann, "t", chunk)
    world.sql("delete from rag.mentions where document_id = %s and entity = 'kestrel'", document_id)
    result = naming.graph(world, people.ann, "Who owns Heron?")
    assert (naming.ids(result), naming.edges(result)) == (["heron"], set())


def test_a_small_collection_is_found_although_the_name_is_everywhere_in_the_org(world: World, people: People):
    chunks = [passages.passages(["Kestrel"])[0] | NamedChunk("Kestrel", ["Kestrel"]).keys()]
    document = {"content": "Kestrel", "embedding_model": MODEL, "chunks": chunks}
    documents = [{**document, "title": f"n{number}"} for number in range(150)]
    world.as_user(people.ann, "select public.rag_put_documents('large', %s)", Jsonb(documents))
    document_id = naming.put(world, people.ann, "t", NamedChunk("Kestrel", ["Kestrel"]), collection="small")
    result = naming.graph(world, people.ann, "Who is Kestrel?", filters={"collection": "small"})
    assert [row["document_id"] for row in result["matches"]] == [document_id]
    assert result["matches"][0]["graph_score"] > 0
