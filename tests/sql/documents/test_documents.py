"""Documents: what a row may hold, and who sees, changes and owns it."""

from typing import Any

import psycopg
import pytest

from tests.actors import Actor, World, put_arguments, vector
from tests.conftest import People
from tests.sql.passages import match, put, search, written
from tests.sql.sql_as_user import run
from tests.verify.test_run import sql_of


def stored(world: World, document_id: str) -> dict[str, Any]:
    """The document's row, as the deployer sees it."""
    ((row,),) = world.sql("select to_jsonb(documents) from rag.documents where id = %s", document_id)
    return row  # type: ignore[no-any-return]


def count(world: World, people: People) -> int:
    ((number,),) = world.sql("select count(*) from rag.documents where org_id = %s", people.acme.id)
    return int(number)


def test_a_document_has_sensible_defaults(people: People, world: World):
    row = stored(world, people.ann.put([vector(1)], metadata=None, source_type=None))
    assert (row["source_type"], row["metadata"]) == ("doc", {})
    assert [row[name] for name in ("external_id", "uri", "lang", "occurred_at")] == [None] * 4


MALFORMED_FIELDS: list[dict[str, Any]] = [
    {"title": ""}, {"title": None}, {"title": "t" * 1001}, {"title": "a\u0000b"}, {"external_id": "e" * 501},
    {"source_type": "s" * 65}, {"uri": "u" * 2001}, {"lang": "l" * 36}, {"occurred_at": "yesterday-ish"},
    {"metadata": [1]}, {"content": None}, {"embedding_model": None}, {"embedding_model": "m" * 101},
    {"private": "perhaps"},
]  # fmt: skip


def test_a_malformed_document_is_refused_and_stores_nothing(people: People, world: World):
    for fields in MALFORMED_FIELDS:
        answer = people.ann.store(put_arguments(people.acme, [vector(1)], **fields))
        assert answer.status_code == 400, (fields, answer.text)
    others: list[Any] = [[], "text", 7, True, None, {}, {"title": "t"}]
    for document in others:
        answer = people.ann.rpc("rag_put_documents", {"collection": "default", "documents": [document]})
        assert answer.status_code in range(400, 500), (document, answer.text)
    assert count(world, people) == 0


def test_no_count_reveals_a_private_document_in_a_shared_collection(people: People):
    people.alf.put([vector(1)], collection="shared", title="for all")
    people.ann.put([vector(1)], collection="shared", title="private", private=True)
    for actor, titles in ((people.alf, {"for all"}), (people.ann, {"for all", "private"})):
        rows = actor.match(vector(1))
        assert {row["title"] for row in rows} == titles
        assert {row["considered"] for row in rows} == {len(titles)}


ATTACKS = [
    "select id from rag.documents where id = %(document)s",
    "update rag.documents set title = 'taken' where id = %(document)s returning id",
    "delete from rag.documents where id = %(document)s returning id",
    "select id from rag.chunks where document_id = %(document)s",
    "update rag.chunks set content = 'taken' where document_id = %(document)s returning id",
    "delete from rag.chunks where document_id = %(document)s returning id",
]


def test_rows_of_others_are_hidden_in_sql(people: People):
    """A private document from a member of its org, and an org's document from a member of another."""
    private, shared = people.ann.put([vector(1)], private=True), people.ann.put([vector(1)])
    for statement in ATTACKS:
        assert run(people.alf, statement, document=private) == [], statement
        for actor in (people.bob, people.sam):
            assert run(actor, statement, document=shared) == [], statement
        assert len(people.ann.match(vector(1))) == 2, statement


def test_rows_cannot_change_their_org_or_owner_in_sql(people: People):
    """The statements read no row, so that only a policy's check of the new row refuses them."""
    people.alf.put([vector(1)])
    for table in ("documents", "chunks"):
        for column, value in (("org_id", people.bolt.id), ("owner_id", people.ann.id)):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                run(people.alf, f"update rag.{table} set {column} = %(value)s", value=value)


def test_the_documented_statement_changes_owner_collection_and_language(people: People, world: World):
    statement = sql_of("operations.md", "Another owner, collection or language")[0]
    statement = statement.replace("<org>", people.acme.id)
    document_id = put(world, people.ann, "les chevaux mangent", private=True, external_id="x")
    put(world, people.ann, "z", collection="other")
    ((other,),) = world.as_user(people.ann, "select id::text from rag.collections where name = 'other'")

    def found(who: Actor, text: str, **filters: Any) -> list[str]:
        return [row["document_id"] for row in search(world, who, text, filters=filters, mode="keyword")]

    assert (found(people.ann, "mangent"), found(people.alf, "mangent")) == ([document_id], [])
    assert found(people.ann, "cheval") == []
    world.sql(
        statement.replace("owner_id = null", f"owner_id = '{people.alf.id}'").replace("<user>", people.ann.id)
    )
    assert (found(people.ann, "mangent"), found(people.alf, "mangent")) == ([], [document_id])
    assert document_id in {row["document_id"] for row in match(world, people.alf, written(0))}
    change = f"owner_id = null, collection_id = '{other}', lang = 'fr'"
    world.sql(statement.replace("owner_id = null", change).replace("<user>", people.alf.id))
    assert found(people.ann, "cheval", collection_id=other, lang="fr") == [document_id]
    assert_copies_match(world, people)


def test_the_documented_statements_give_a_private_collection_away(people: People, world: World):
    """To a member, with a name that says whose it is, and then to the org."""
    documents, collections, _ = [
        text.replace("<org>", people.acme.id)
        for text in sql_of("operations.md", "Another owner, collection or language")
    ]
    name = f"notes:u:{people.ann.id}"
    document_id = put(world, people.ann, "les chevaux mangent", collection=name, external_id="x")

    def found(who: Actor) -> list[str]:
        return [row["document_id"] for row in search(world, who, "mangent", mode="keyword")]

    assert (found(people.ann), found(people.alf)) == ([document_id], [])
    world.sql(documents.replace("<user>", people.ann.id))
    assert (found(people.ann), found(people.alf)) == ([document_id], [])
    to_alf = f"owner_id = '{people.alf.id}', name = regexp_replace(name, ':u:[^:]*$', ':u:{people.alf.id}')"
    rest = collections.partition(" where ")[2].replace("<user>", people.ann.id)
    world.sql(f"update rag.collections set {to_alf} where {rest}")
    also_private = documents.replace("owner_id is null", f"owner_id is null or owner_id = '{people.alf.id}'")
    world.sql(
        also_private.replace("owner_id = null", f"owner_id = '{people.alf.id}'").replace(
            "<user>", people.ann.id
        )
    )
    assert (found(people.ann), found(people.alf)) == ([], [document_id])
    world.sql(collections.replace("<user>", people.alf.id))
    world.sql(documents.replace("<user>", people.alf.id))
    assert found(people.ann) == found(people.alf) == [document_id]
    assert put(world, people.alf, "ils mangent", collection="notes", external_id="x") == document_id
    assert_copies_match(world, people, 1)


def test_the_documented_statement_adds_metadata_that_filters_find(people: People, world: World):
    statement = sql_of("operations.md", "Another owner, collection or language")[2]
    document_id = people.ann.put([vector(1)], metadata={"year": 2020, "team": "a"})
    home = stored(world, document_id)["collection_id"]
    chunks = "select id, embedding::text from rag.chunks where document_id = %s"
    before = world.sql(chunks, document_id)
    world.sql(statement.replace("<org>", people.acme.id).replace("<collection>", home))
    for metadata in ({"department": "HR"}, {"year": {"$gte": 2026}}, {"team": "a"}):
        (row,) = people.alf.match(vector(1), metadata=metadata)
        assert row["document_id"] == document_id
    assert people.alf.match(vector(1), metadata={"year": 2020}) == []
    assert world.sql(chunks, document_id) == before


def test_the_documented_statement_finds_documents_of_the_same_content(people: People, world: World):
    (statement,) = sql_of("ingestion.md", "Duplicates and versions")
    twins = [people.ann.put([vector(1)], collection=name, content="0 Hay") for name in ("a", "b")]
    people.ann.put([vector(1)], collection="a", content="0 Straw")
    ((_, ids, titles),) = world.sql(statement.replace("<org>", people.acme.id))
    assert ([*map(str, ids)], len(titles)) == (twins, 2)


def assert_copies_match(world: World, people: People, count: int = 2) -> None:
    """Filters read the chunk, responses show the document: they must say the same."""
    differing = world.sql(
        "select count(*) filter (where "
        "(chunks.owner_id, chunks.collection_id, chunks.source_type, chunks.lang, chunks.occurred_at) "
        "is distinct from (documents.owner_id, documents.collection_id, documents.source_type, "
        "documents.lang, documents.occurred_at)), count(*) "
        "from rag.chunks join rag.documents "
        "on documents.org_id = chunks.org_id and documents.id = chunks.document_id where chunks.org_id = %s",
        people.acme.id,
    )
    assert differing == [(0, count)]


def test_the_copied_columns_in_chunks_match_the_documents(people: People, world: World):
    people.ann.put([vector(1), vector(2)], source_type="faq", lang="de", occurred_at="2026-01-01T00:00:00Z")
    people.ann.put([vector(3)], private=True, collection="other")
    people.ann.put([vector(4)], external_id="x", lang="en")
    people.ann.put([vector(5)], external_id="x", lang="fr", source_type="web")
    assert_copies_match(world, people, 4)


NIL = "00000000-0000-0000-0000-000000000000"
CREATORS = """
    select documents.created_by::text, collections.created_by::text
    from rag.documents join rag.collections on collections.id = collection_id where documents.id = %s
"""


def test_the_creators_of_a_document_and_its_collection_are_stored(people: People, world: World):
    """Fields of the caller and later changes by other users do not change it."""
    forged = {"created_by": people.bob.id, "user_id": people.bob.id}
    document_id = people.ann.put([vector(1)], external_id="x", collection="new", **forged)
    assert people.alf.put([vector(2)], external_id="x", collection="new", **forged) == document_id
    change = {"document_id": document_id, "changes": {"title": "b", **forged}}
    assert people.alf.rpc("rag_update_document", change)
    assert world.sql(CREATORS, document_id) == [(people.ann.id, people.ann.id)]
    key = people.ann.key_token()
    body = people.ann.rpc("rag_create_collection", {"name": "by key", "private": True}, token=key).json()[0]
    assert (body["created_by"], body["owner_id"]) == (people.ann.id, people.ann.id)
    document = {"title": "x", "bytes": "eA==", **forged}
    row = people.ada.rpc("rag_add_document", {"collection_id": body["id"], "document": document}).json()[0]
    assert (row["created_by"], row["owner_id"]) == (people.ada.id, people.ann.id)


def test_the_anonymous_caller_and_the_deployer_create_as_the_nil_uuid(people: People, world: World):
    token = people.ann.token(rag={"org": people.acme.id, "scopes": ["documents:write"], "anonymous": True})
    documents = [{"title": "x", "content": "x", "embedding_model": "m", "chunks": []}]
    answer = people.ann.rpc("rag_put_documents", {"collection": "new", "documents": documents}, token=token)
    assert answer.status_code == 200, answer.text
    assert world.sql(CREATORS, answer.json()[0]["document_id"]) == [(NIL, NIL)]
    insertion = "insert into rag.collections (org_id, name) values (%s, 'seed') returning created_by::text"
    assert world.sql(insertion, people.acme.id) == [(NIL,)]


def test_being_the_creator_of_a_row_grants_nothing(people: People, world: World):
    document_id = people.ann.put([vector(1)], private=True)
    world.sql("update rag.documents set created_by = %s where id = %s", people.alf.id, document_id)
    assert people.alf.match(vector(1)) == []
    assert people.alf.rpc("rag_get_document", {"document_id": document_id}).status_code == 404
    assert len(people.ann.match(vector(1))) == 1


def test_an_invalid_part_of_a_document_is_refused(people: People):
    document_id = people.ann.put([vector(1)])
    for invalid in ({"offset": -1}, {"offset": None}, {"limit": 0}, {"limit": 100_001}, {"limit": None}):
        refused = people.ann.rpc("rag_read_document", {"document_id": document_id, **invalid})
        assert (refused.status_code, refused.json()["details"]) == (400, "invalid_page"), invalid
