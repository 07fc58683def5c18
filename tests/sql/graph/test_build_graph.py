"""A collection enters the graph or leaves it in SQL: on request, and by its config."""

from typing import Any

import pytest

from tests.actors import Actor, World
from tests.conftest import People
from tests.sql import naming
from tests.sql.graph.extractions import TEXTS, call_with_lease, claim, collection, fail, keep, names
from tests.sql.naming import NamedChunk
from tests.sql.passages import passages, put
from tests.sql.reading import graph_rows, state


@pytest.fixture(autouse=True)
def _no_pending_extractions(no_jobs: None) -> None:
    """The queue is empty at the start of each test."""


def test_existing_documents_are_extracted_on_request(world: World, people: People):
    """Documents of before the graph have a row without a user, or none at all."""
    first, second = (put(world, people.ann, text, title="Reports") for text in TEXTS[:2])
    world.sql("update rag.jobs set state = 'failed' where id = %s", first)
    world.sql("delete from rag.jobs where id = %s", second)
    world.sql("delete from rag.title_entities where document_id = %s", second)
    read = naming.put(world, people.ann, "A", NamedChunk(TEXTS[2], ["Cyd Fox"]))
    assert claim(world) == []
    ((home,),) = world.sql("select collection_id from rag.documents where id = %s", first)
    assert people.alf.rpc("rag_build_graph", {"collection_id": str(home)}).json() == 2
    assert people.alf.rpc("rag_build_graph", {"collection_id": str(home)}).json() == 0
    claimed = claim(world)
    assert {row["document_id"] for row in claimed} == {first, second}
    assert {row["user_id"] for row in claimed} == {people.alf.id}
    for row in claimed:
        call_with_lease(world, people.alf, row, "select * from public.rag_open_extraction()")
        keep(world, people.alf, row, 0, names("Ann Lee"))
    assert world.sql("select entity from rag.title_entities where document_id = %s", second) == [("reports",)]
    assert state(world, read) == (1, 0, 0, False, False, None)


def test_given_up_documents_are_retried_on_request(world: World, people: People):
    document = put(world, people.ann, TEXTS[0])
    (row,) = claim(world)
    fail(world, people.ann, row, "extraction_failed", "No.", None)
    ((home,),) = world.sql("select collection_id from rag.documents where id = %s", document)
    assert people.ann.rpc("rag_build_graph", {"collection_id": str(home)}).json() == 1
    assert state(world, document) == (0, 0, 0, False, False, None)


def switch(actor: Actor, home: str, on: bool | None, token: str | None = None) -> Any:
    arguments = {"collection_id": home, "config": {"enable_knowledge_graph": on}}
    return actor.rpc("rag_update_collection", arguments, token=token)


def test_the_setting_removes_a_collection_from_the_graph_and_restores_it(world: World, people: People):
    home = collection(world, people.ann, "switched")
    chunk = NamedChunk(TEXTS[0], ["Ann Lee"], [("Ann Lee", "PART_OF", "Staff")])
    document = naming.put(world, people.ann, "Staff", chunk, collection="switched")
    other = naming.put(world, people.ann, "Staff", chunk)
    assert graph_rows(world, document) == 4
    assert switch(people.alf, home, False).status_code == 200
    assert (graph_rows(world, document), graph_rows(world, other)) == (0, 4)
    refused = people.alf.rpc("rag_build_graph", {"collection_id": home})
    assert (refused.status_code, refused.json()["details"]) == (409, "graph_off")
    # No config is the deployment's choice: in the graph.
    assert switch(people.alf, home, None).status_code == 200
    assert state(world, document) == (0, 0, 0, False, False, None)
    (row,) = claim(world)
    assert (row["document_id"], row["user_id"]) == (document, people.alf.id)


def test_the_worker_removes_the_results_of_many_documents(world: World, people: People):
    home = collection(world, people.ann, "many")
    chunk = passages(TEXTS[:1])[0] | NamedChunk(TEXTS[0], ["Ann Lee"]).keys()
    several = [
        {"title": f"Number {number}", "content": TEXTS[0], "embedding_model": "m",
         "external_id": str(number), "chunks": [chunk]}
        for number in range(230)
    ]  # fmt: skip
    people.ann.rpc("rag_put_documents", {"collection": "many", "documents": several})
    left = "select count(*) from rag.mentions where collection_id = %s"
    assert world.sql(left, home) == [(230,)]
    switch(people.ann, home, False)
    assert world.sql(left, home) == [(30,)]
    for _ in range(3):
        for row in claim(world, 10):
            assert call_with_lease(world, people.ann, row, "select * from public.rag_open_extraction()") == []
    assert world.sql(left, home) == [(0,)]
    assert world.sql("select count(*) from rag.title_entities where collection_id = %s", home) == [(0,)]
    assert claim(world) == []


def test_the_graph_setting_needs_the_right_to_write_documents(world: World, people: People):
    home = collection(world, people.ann, "scoped")
    document = naming.put(world, people.ann, "A", NamedChunk(TEXTS[0], ["Ann Lee"]), collection="scoped")
    token = people.ann.key_token(scopes=["collections:manage"])
    assert switch(people.ann, home, False, token).status_code == 403
    assert graph_rows(world, document) > 0
    # Setting the same value again changes nothing.
    assert switch(people.ann, home, True, token).status_code == 200
    refused = people.ann.rpc("rag_build_graph", {"collection_id": home}, token=token)
    assert (refused.status_code, refused.json()["details"]) == (403, "missing_scope")
