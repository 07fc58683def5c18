"""Attacks changing other users' rows: deleting, overwriting, planting."""

from tests.actors import World, put_arguments, vector
from tests.isolation.victim_documents import MATCH, Library


def test_a_chunk_cannot_be_put_into_another_user_s_document(library: Library, world: World):
    people = library.people
    names = ("org_id", "document_id", "owner_id", "collection_id", "id", "chunk_id")
    theirs = dict.fromkeys(names, library.acme_document)
    theirs |= {"org_id": people.acme.id, "owner_id": people.ann.id}
    for name, value in theirs.items():
        arguments = put_arguments(people.bolt, [vector(1)])
        arguments["chunks"][0][name] = value
        assert people.bob.store(arguments).status_code in (200, 400)
    assert world.sql("select count(*) from rag.chunks where org_id = %s", people.acme.id) == [(2,)]
    owned = "select count(*) from rag.chunks where org_id = %s and owner_id is not null"
    assert world.sql(owned, people.bolt.id) == [(0,)]
    assert library.secrets(MATCH, people.ann) == {"acme", "ann"}
    assert library.secrets(MATCH, people.alf) == {"acme"}
