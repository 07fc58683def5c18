"""The write path: a document and its chunks go in, are replaced or go away as one, for every reader."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.actors import Actor, Org, World, put_arguments, store_arguments, vector
from tests.conftest import People
from tests.sql import passages
from tests.sql.sql_as_user import become


def rows_of(world: World, org: Org) -> tuple[int, int]:
    """How many documents and chunks the org has, as the deployer counts."""
    count = "(select count(*) from rag.{} where org_id = %s)"
    (row,) = world.sql(f"select {count.format('documents')}, {count.format('chunks')}", org.id, org.id)
    return row[0], row[1]


def put(actor: Actor, org: Org | None, seeds: range, **fields: Any) -> httpx.Response:
    """A document with a chunk for each seed, as PostgREST answers."""
    return actor.store(put_arguments(org, [vector(seed) for seed in seeds], **fields))


def test_a_second_put_of_an_external_id_replaces_the_document(people: People, world: World):
    times = "select created_at, updated_at from rag.documents where org_id = %s"
    (first,) = put(people.ann, people.acme, range(5), external_id="x", title="old", lang="en").json()
    ((created, updated),) = world.sql(times, people.acme.id)
    (second,) = put(people.alf, people.acme, range(10, 12), external_id="x", title="new").json()
    ((created_after, updated_after),) = world.sql(times, people.acme.id)
    assert second == {**first, "replaced": True, "chunk_count": 2}
    assert created == created_after == updated < updated_after
    assert rows_of(world, people.acme) == (1, 2)
    # What the new one does not say is gone, not left from the old one.
    rows = people.ann.match(vector(1))
    assert [(row["title"], row["lang"]) for row in rows] == [("new", None), ("new", None)]


def test_an_admin_s_put_does_not_replace_a_member_s_private_document(people: People, world: World):
    people.ann.put([vector(1)], external_id="x", private=True, title="ann's")
    for private in (True, False):
        (row,) = put(people.ada, people.acme, range(1), external_id="x", private=private).json()
        assert row["replaced"] is False
    assert [match["title"] for match in people.ann.match(vector(1))].count("ann's") == 1
    assert rows_of(world, people.acme) == (3, 3)


def test_a_member_cannot_write_private_rows_for_another_user(people: People, world: World):
    """There is no field to say it in: the writer is always the owner."""
    forged = dict.fromkeys(("owner_id", "user_id", "created_by"), people.ann.id)
    people.alf.put([vector(1)], private=True, **forged)
    people.alf.put([vector(1)], **forged)
    for table in ("documents", "chunks"):
        owners = world.sql(f"select owner_id::text from rag.{table} where org_id = %s", people.acme.id)
        assert sorted(owners, key=str) == [(people.alf.id,), (None,)]
    assert len(people.ann.match(vector(1))) == 1


def test_an_id_in_the_document_is_ignored(people: People, world: World):
    """Neither another's document nor another's collection is written to by naming its id."""
    bobs = people.bob.put([vector(1)], title="bob's")
    ((home,),) = world.sql("select collection_id::text from rag.documents where id = %s", bobs)
    for name, value in (("id", bobs), ("document_id", bobs), ("collection_id", home)):
        assert people.ann.put([vector(2)], **{name: value}, title="ann's") != bobs
    assert [match["title"] for match in people.bob.match(vector(1))] == ["bob's"]
    assert rows_of(world, people.bolt) == (1, 1)


def test_another_org_s_id_gets_the_response_of_a_missing_one(people: People):
    """So no caller learns which orgs exist."""
    real, invented = put(people.ann, people.bolt, range(1)), put(people.ann, Org(str(uuid4()), ""), range(1))
    assert (real.status_code, real.json()) == (invented.status_code, invented.json())


def broken(**fields: Any) -> Callable[[list[dict[str, Any]]], Any]:
    """The last of the chunks, with other values."""
    return lambda chunks: [*chunks[:-1], {**chunks[-1], **fields}]


MALFORMED: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "a reversed span": broken(span_start=5, span_end=4),
    "a negative span": broken(span_start=-1),
    "a negative token count": broken(token_count=-1),
    "a token count beyond an integer": broken(token_count=2**31),
    "a token count in words": broken(token_count="many"),
    "no embedding": broken(embedding=None),
    "too few dimensions": broken(embedding=[0.1] * 384),
    "a zero vector": broken(embedding=[0.0] * 1536),
    "a vector too small for half precision": broken(embedding=[1e-30] * 1536),
    "a vector too large for half precision": broken(embedding=[1e6] * 1536),
    "not a number": broken(embedding="[" + ",".join(["NaN"] * 1536) + "]"),
    "a chunk that is no object": lambda chunks: [*chunks, "text"],
    "chunks that are no array": lambda chunks: {"0": chunks[0]},
}


def test_a_malformed_chunk_is_refused_and_keeps_the_old_version(
    people: People, world: World, subtests: pytest.Subtests
):
    put(people.ann, people.acme, range(2), external_id="x", title="old")
    arguments = put_arguments(people.acme, [vector(seed) for seed in range(3)], external_id="x", title="new")
    for fault, change in MALFORMED.items():
        with subtests.test(fault=fault):
            chunks = change(arguments["chunks"])
            answer = people.ann.store({**arguments, "chunks": chunks})
            assert 400 <= answer.status_code < 500, answer.text
            assert rows_of(world, people.acme) == (1, 2)
            assert [match["title"] for match in people.ann.match(vector(1))] == ["old", "old"]


def test_a_reader_sees_the_old_document_until_the_new_one_is_complete(people: People):
    people.ann.put([vector(seed) for seed in range(3)], external_id="x", title="old")
    arguments = put_arguments(people.acme, [vector(seed) for seed in range(5)], external_id="x", title="new")
    with psycopg.connect(people.ann.stack.database_url()) as writer:
        become(writer, people.ann)
        documents = Jsonb(store_arguments(**arguments)["documents"])
        writer.execute("select public.rag_put_documents('default', %s)", [documents])
        assert [match["title"] for match in people.alf.match(vector(1))] == ["old"] * 3
        writer.commit()
    assert [match["title"] for match in people.alf.match(vector(1))] == ["new"] * 5


def test_concurrent_readers_never_see_half_a_document(people: People):
    finished = Event()
    versions = {"faq": range(3), "web": range(10, 15)}

    def write(kind: str) -> None:
        answer = put(people.ann, people.acme, versions[kind], external_id="x", title=kind, source_type=kind)
        assert answer.status_code == 200, answer.text

    def read(actor: Actor) -> set[tuple[tuple[str, str], ...]]:
        states = set()
        while not finished.is_set():
            states.add(tuple((match["title"], match["source_type"]) for match in actor.match(vector(1))))
        return states

    write("faq")
    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read, actor) for actor in (people.alf, people.kim)]
        try:
            for kind in ["web", "faq"] * 4:
                write(kind)
        finally:
            finished.set()
        states = set().union(*(reader.result() for reader in readers))
    assert states <= {(("faq", "faq"),) * 3, (("web", "web"),) * 5}
    assert states


def test_concurrent_writers_of_an_external_id_leave_one_complete_document(people: People, world: World):
    writers = [people.ann, people.alf, people.ada, people.kim] * 2
    barrier = Barrier(len(writers))
    vectors = [vector(seed) for seed in range(len(writers))]

    def write(number: int) -> httpx.Response:
        title = f"of {number + 1}"
        arguments = put_arguments(people.acme, vectors[: number + 1], external_id="x", title=title)
        barrier.wait()
        return writers[number].store(arguments)

    for _ in range(2):
        with ThreadPoolExecutor(len(writers)) as pool:
            answers = list(pool.map(write, range(len(writers))))
        assert [answer.status_code for answer in answers] == [200] * len(writers), [a.text for a in answers]
        assert len({answer.json()[0]["document_id"] for answer in answers}) == 1
        matches = people.ann.match(vector(1))
        assert [match["title"] for match in matches] == [f"of {len(matches)}"] * len(matches)
        assert sorted(match["ordinal"] for match in matches) == list(range(len(matches)))
        assert rows_of(world, people.acme) == (1, len(matches))


def test_a_concurrent_put_and_delete_leave_a_complete_document_or_none(people: People, world: World):
    for _ in range(5):
        document_id = people.ann.put([vector(seed) for seed in range(3)], external_id="x")
        with ThreadPoolExecutor(2) as pool:
            writing = pool.submit(put, people.alf, people.acme, range(5), external_id="x")
            deleting = pool.submit(people.ann.rpc, "rag_delete_document", {"document_id": document_id})
        assert (writing.result().status_code, deleting.result().status_code) == (200, 200)
        assert rows_of(world, people.acme) in ((0, 0), (1, 5))


def delete(actor: Actor, document_id: str | None, **claims: Any) -> Any:
    answer = actor.rpc("rag_delete_document", {"document_id": document_id}, token=actor.token(**claims))
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_private_document_can_be_deleted_by_its_owner_and_admins(people: People):
    first, second = (people.ann.put([vector(1)], private=True) for _ in range(2))
    assert delete(people.alf, first) is False
    assert len(people.ann.match(vector(1))) == 2
    assert delete(people.ann, first) is True
    assert delete(people.ada, second) is True
    assert people.ann.match(vector(1)) == []


def test_a_get_request_deletes_nothing(people: People, world: World):
    """PostgREST lets GET call functions, in a transaction that cannot write."""
    document_id = people.ann.put([vector(1)])
    path = f"/rest/v1/rpc/rag_delete_document?document_id={document_id}"
    assert people.ann.request("GET", path).status_code == 405
    assert rows_of(world, people.acme) == (1, 1)


def test_only_chunks_of_the_deployment_s_models_are_stored(people: People, world: World):
    """This holds for each function that stores chunks, but not for the deployer, who lists the models."""

    def refused(answer: httpx.Response) -> bool:
        return (answer.status_code, answer.json().get("details")) == (400, "unknown_embedding_model")

    unknown = put_arguments(people.acme, [vector(1)], embedding_model="unknown", external_id="x")
    assert refused(people.ann.store(unknown))
    documents = store_arguments(**unknown)["documents"]
    begun = {"name": "i", "overwrite": False, "documents": 1, "collection": {}}
    load = people.ann.rpc("rag_begin_load", begun).json()
    arguments = {"collection_id": load, "documents": documents, "first": 0}
    assert refused(people.ann.rpc("rag_load_documents", arguments))
    config = {"embedding_model": "unknown"}
    assert refused(people.ann.rpc("rag_create_collection", {"name": "b", "config": config}))
    assert refused(people.ann.rpc("rag_begin_load", {**begun, "name": "j", "collection": {"config": config}}))
    body = people.ann.rpc("rag_create_collection", {"name": "c"}).json()[0]["id"]
    assert refused(people.ann.rpc("rag_update_collection", {"collection_id": body, "config": config}))
    assert rows_of(world, people.acme) == (0, 0)

    with passages.deployed_with(world, other_embedding_models=["unknown"]):
        assert people.ann.store(unknown).status_code == 200
        # Where chunks are replaced, they are of the models of now.
        changed = {"collection_id": body, "config": config}
        assert people.ann.rpc("rag_update_collection", changed).status_code == 200
    assert refused(people.ann.store(unknown))
    world.sql("update rag.chunks set embedding_model = 'any' where org_id = %s", people.acme.id)
    # A config that names a former model is changed in other respects.
    renamed = {"collection_id": body, "name": "d", "config": {"chunk_size": 64}}
    assert people.ann.rpc("rag_update_collection", renamed).status_code == 200
