"""Collections: made by the first document that names them, one of a name for the org and for each owner."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.actors import Actor, Org, World, put_arguments, vector
from tests.conftest import People
from tests.process_faults import wait_for_waiters
from tests.sql.sql_as_user import become


def collections(world: World, org: Org) -> list[tuple[Any, ...]]:
    """Name and owner of the org's collections, as the deployer sees them."""
    rows = "select name, owner_id::text from rag.collections where org_id = %s"
    return world.sql(f"{rows} order by name, owner_id nulls first", org.id)


def home_of(world: World, document_id: str) -> tuple[Any, ...]:
    """Of a document: its collection's name, the collection's owner, and its own owner."""
    (row,) = world.sql(
        "select name, collections.owner_id::text, documents.owner_id::text from rag.documents "
        "join rag.collections on collections.org_id = documents.org_id and collections.id = collection_id "
        "where documents.id = %s",
        document_id,
    )
    return row


def owns(world: World, actor: Actor, name: str) -> None:
    """The user makes a collection of their own."""
    assert actor.org is not None
    statement = "insert into rag.collections (org_id, owner_id, name) values (%s, %s, %s)"
    world.as_user(actor, statement, actor.org.id, actor.id, name)


def test_a_collection_is_created_by_its_first_document(people: People, world: World):
    """Private documents do not make it private."""
    assert collections(world, people.acme) == []
    document_id = people.ann.put([vector(1)], collection="handbook", private=True)
    assert home_of(world, document_id) == ("handbook", None, people.ann.id)
    assert home_of(world, people.alf.put([vector(1)], collection="handbook")) == ("handbook", None, None)
    assert collections(world, people.acme) == [("handbook", None)]
    assert home_of(world, people.ann.put([vector(1)])) == ("default", None, None)


def test_a_user_s_own_collection_takes_precedence_over_the_org_s(people: People, world: World):
    people.alf.put([vector(1)], collection="notes")
    owns(world, people.ann, "notes")
    own = people.ann.put([vector(2)], collection="notes")
    assert home_of(world, own) == ("notes", people.ann.id, people.ann.id)
    assert home_of(world, people.alf.put([vector(3)], collection="notes")) == ("notes", None, None)
    assert collections(world, people.acme) == [("notes", None), ("notes", people.ann.id)]


def test_a_name_is_unique_per_org_and_per_owner(people: People, world: World):
    people.ann.put([vector(1)], collection="notes")
    owns(world, people.ann, "notes")
    owns(world, people.alf, "notes")
    with pytest.raises(psycopg.errors.UniqueViolation):
        owns(world, people.ann, "notes")
    statement = "insert into rag.collections (org_id, name) values (%s, 'notes')"
    with pytest.raises(psycopg.errors.UniqueViolation):
        world.as_user(people.ann, statement, people.acme.id)


def test_the_length_of_a_collection_name_is_checked_and_a_name_stored_unchanged(people: People, world: World):
    for name in ["", "n" * 256]:
        arguments = put_arguments(people.acme, [vector(1)], collection=name)
        assert people.ann.store(arguments).status_code == 400
    assert collections(world, people.acme) == []
    names = ["notes", "Notes", " notes", "nötes", "'; drop table rag.collections; --", "%", "n_tes"]
    for name in names:
        people.ann.put([vector(1)], collection=name)
    assert {name for name, _ in collections(world, people.acme)} == set(names)


def test_concurrent_writers_of_a_new_name_create_one_collection(people: People, world: World):
    authors = [people.ann, people.alf, people.ada, people.kim] * 4

    def put(actor: Actor) -> str:
        return actor.put([vector(1)], collection="new")

    with ThreadPoolExecutor(len(authors)) as pool:
        documents = set(pool.map(put, authors))
    assert len(documents) == len(authors)
    assert collections(world, people.acme) == [("new", None)]
    assert len(people.ann.match(vector(1))) == len(authors)


def test_a_name_with_a_user_s_id_belongs_to_that_user(
    people: People, world: World, subtests: pytest.Subtests
):
    """This holds for a collection that is created, renamed, loaded, or created with its first document."""
    ann, bob, alf = people.ann.id, people.bob.id, people.alf.id
    cases: list[tuple[Actor, str, int, str | None]] = [
        (people.ann, f"x:u:{alf}", 403, "another_users_name"),
        (people.ann, f"x:u:{alf.upper()}", 403, "another_users_name"),
        (people.ann, f"x:u:{bob}", 403, "another_users_name"),
        (people.ann, "x:u:al", 403, "another_users_name"),
        (people.ada, "x:u:al", 400, "invalid_name"),
        (people.ann, f"x:u:{ann}", 200, None),
        (people.ada, f"x:u:{alf}", 200, None),
    ]
    for actor, name, status, detail in cases:
        with subtests.test(name=name, actor=actor.email):
            for private in (False, True):
                world.sql("delete from rag.collections where org_id = %s", people.acme.id)
                answer = actor.rpc("rag_create_collection", {"name": name, "private": private})
                assert answer.status_code == status, answer.text
                if status == 200:
                    owner = name.rpartition(":")[2]
                    assert collections(world, people.acme) == [(name, owner)]
                else:
                    assert answer.json()["details"] == detail
            begun = {"name": name, "overwrite": False, "documents": 1, "collection": {}}
            answer = actor.rpc("rag_begin_load", begun)
            if status == 403:
                assert (answer.status_code, answer.json()["details"]) == (403, detail)
            else:
                assert answer.status_code in (400, 409)


def test_a_collection_cannot_be_renamed_to_another_user_s_name(people: People, world: World):
    """A collection of the org takes no user's name either: that user would not find it by its name."""
    shared = people.ann.rpc("rag_create_collection", {"name": "shared"}).json()[0]["id"]
    own = people.ann.rpc("rag_create_collection", {"name": f"a:u:{people.ann.id}"}).json()[0]["id"]

    def renamed(actor: Actor, collection: str, name: str) -> tuple[int, str | None]:
        answer = actor.rpc("rag_update_collection", {"collection_id": collection, "name": name})
        return answer.status_code, answer.json().get("details") if answer.status_code != 200 else None

    assert renamed(people.ann, shared, f"x:u:{people.alf.id}") == (403, "another_users_name")
    assert renamed(people.ann, shared, f"x:u:{people.ann.id}") == (400, "invalid_name")
    assert renamed(people.ada, shared, f"x:u:{people.alf.id}") == (400, "invalid_name")
    assert renamed(people.ada, own, f"x:u:{people.alf.id}") == (400, "invalid_name")
    assert renamed(people.ann, own, f"b:u:{people.ann.id}") == (200, None)
    assert renamed(people.ann, own, "plain") == (200, None)


INSERT = (
    "insert into rag.documents (org_id, collection_id, title, content, content_hash) "
    "select org_id, id, 'on its way', '', repeat('0', 64) from rag.collections where name = 'busy'"
)
DELETE = "delete from rag.collections where name = 'busy'"


@pytest.mark.parametrize("statements", [(INSERT, DELETE), (DELETE, INSERT)])
def test_no_document_is_added_to_a_collection_during_its_deletion(
    people: People, world: World, statements: tuple[str, str]
):
    """Of a concurrent insert and deletion, the second waits for the first, and no document remains."""
    people.ann.put([vector(1)], collection="busy", private=True)
    url = world.stack.database_url()
    with psycopg.connect(url) as first, psycopg.connect(url) as second, ThreadPoolExecutor(1) as pool:
        become(first, people.alf)
        first.execute(statements[0].encode())
        become(second, people.alf)
        late = pool.submit(second.execute, statements[1].encode())
        wait_for_waiters(world.stack, 1)
        first.commit()
        if statements[1] == INSERT:
            with pytest.raises(psycopg.Error):
                late.result()
        else:
            late.result()
            second.commit()
    left = "select title from rag.documents where org_id = %s"
    assert world.sql(left, people.acme.id) == [("a document",)]
    undeleted = "select from rag.collections where org_id = %s and deleted_at is null"
    assert world.sql(undeleted, people.acme.id) == []
    # Nor later, though its owner sees it.
    world.as_user(people.alf, INSERT)
    with pytest.raises(psycopg.Error, match="The collection was deleted"):
        world.as_user(people.ann, INSERT)
    assert world.sql(left, people.acme.id) == [("a document",)]
