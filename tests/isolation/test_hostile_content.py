"""Attacks by what one member stores, against all others."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.actors import World, vector
from tests.conftest import People
from tests.sql import passages


def test_a_restricting_claim_is_case_insensitive(people: People):
    people.ann.put([vector(1)])
    token = people.ann.token(rag={"org": people.acme.id.upper()})
    arguments = {"query_vector": vector(1), "top_k": 5}
    assert len(people.ann.rpc("rag_match", arguments, token=token).json()) == 1


# Values that SQL refuses, for rows that bypass the constraints: table, constraint, assignment.
PLANTED = [
    ("chunks", "chunks_metadata_check", "metadata = '{\"page_number\": 1e5000}'"),
    ("chunks", "chunks_metadata_check", "metadata = '[]'"),
    ("documents", "documents_metadata_check", 'metadata = \'{"x": [1e5000], "page": 1e5000}\''),
    ("documents", "documents_metadata_check", "metadata = '[]'"),
    ("documents", "documents_processing_info_check", "processing_info = '{\"x\": 1e5000}'"),
    ("documents", "documents_occurred_at_check", "occurred_at = 'infinity'"),
    ("collections", "collections_config_check", 'config = \'{"chunk_size": "x", "chunk_overlap": -1}\''),
    ("collections", "collections_config_check", "config = '{\"chunk_size\": -1}'"),
    ("collections", "collections_config_check", "config = '[]'"),
    ("collections", "collections_metadata_check", "metadata = '{\"x\": 1e5000}'"),
]


def plant(world: World, table: str, constraint: str, change: str, collection: str) -> None:
    """Change the collection, or the rows in it, without a constraint, which remains for all other rows."""
    definition = "select pg_get_constraintdef(oid) from pg_constraint where conname = %s"
    ((rule,),) = world.sql(definition, constraint)
    column = "id" if table == "collections" else "collection_id"
    world.sql(
        f"begin; alter table rag.{table} disable trigger user, drop constraint {constraint};"
        f"update rag.{table} set {change} where {column} = '{collection}';"
        f"alter table rag.{table} enable trigger user, add constraint {constraint} {rule} not valid; commit"
    )


@pytest.fixture
def valid_again(people: People, world: World) -> Iterator[None]:
    """Afterwards the rows of the org are gone, and the constraints are valid as before."""
    yield
    world.sql("delete from rag.collections where org_id = %s", people.acme.id)
    for table, constraint in sorted({(table, constraint) for table, constraint, _ in PLANTED}):
        world.sql(f"alter table rag.{table} validate constraint {constraint}")


@pytest.mark.usefixtures("valid_again")
def test_a_row_that_bypassed_its_constraints_affects_only_itself(
    people: People, world: World, subtests: pytest.Subtests
):
    """Ann, and kim, who belongs to both orgs, still find, list and bring everything else."""
    text = "Kilns need clay."
    homes = [f"bad {number}" for number in range(len(PLANTED))]
    for name in (*homes, "good"):
        passages.put(world, people.ann, text, collection=name, title=name, external_id=name)
    ids = dict(world.sql("select name, id::text from rag.collections where org_id = %s", people.acme.id))
    for name, (table, constraint, change) in zip(homes, PLANTED, strict=True):
        plant(world, table, constraint, change, ids[name])

    whole_org = {"q": text, "scope": "org", "organizationId": people.acme.id, "topK": 50}
    searches: list[tuple[str, dict[str, Any]]] = [
        ("/api/rag/search", {"query_text": text, "top_k": 50}),
        ("/v1/search", whole_org),
        ("/v1/search", {**whole_org, "mode": "keyword"}),
        ("/api/v1/retrievals", {"query": text, "mode": "graph", "top_k": 50}),
    ]
    for actor in (people.ann, people.kim):
        for path, body in searches:
            with subtests.test(path=path, actor=actor.email):
                answer = actor.post(path, body)
                assert answer.status_code == 200, answer.text
                assert '"good"' in answer.text
    for name in homes[2:6]:
        places = (f"api/v1/documents?collection_id={ids[name]}", f"api/v1/knowledge/{name}/documents")
        for path in (f"/{place}" for place in (*places, f"indexes/{name}/documents")):
            with subtests.test(path=path):
                answer = people.ann.request("GET", path)
                assert answer.status_code == 200, answer.text
    for name in homes[6:]:
        with subtests.test(change=name):
            more = {"documents": [{"text": "More clay.", "document_id": "more"}]}
            assert people.ann.post(f"/api/v1/knowledge/{name}/documents", more).status_code == 201
    collections = people.ann.request("GET", "/api/v1/collections?limit=100")
    assert collections.status_code == 200, collections.text
    assert {"good", "bad 0", "bad 7"} <= {row["name"] for row in collections.json()["data"]}
    # The log of the stack's functions names the rows.
    ((chunk,),) = world.sql("select id::text from rag.chunks where metadata ? 'page_number'")
    log = (people.ann.stack.folder / "logs" / "gateway.log").read_text()
    for row in (chunk, ids[homes[6]], ids[homes[7]]):
        assert f"row {row} cannot be read" in log
