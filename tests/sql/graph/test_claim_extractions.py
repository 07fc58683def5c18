"""Claims of extractions in SQL: which documents are pending, in which order, and to which worker."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.actors import World
from tests.conftest import People
from tests.sql.graph.extractions import CLAIM, TEXTS, call_with_lease, claim, due, lost
from tests.sql.passages import put
from tests.sql.reading import mentions, named, state


@pytest.fixture(autouse=True)
def _no_pending_extractions(no_jobs: None) -> None:
    """The queue is empty at the start of each test."""


def test_documents_with_names_are_extracted_and_others_pending(world: World, people: People):
    without = put(world, people.ann, *TEXTS)
    chunks = named({TEXTS[0]: ["Ann Lee"]}, {TEXTS[1]: ["Bob Orr"]}, {TEXTS[2]: []})
    read = put(world, people.ann, *TEXTS, chunks=chunks)
    assert state(world, without) == (0, 0, 0, False, False, None)
    assert state(world, read) == (1, 0, 0, False, False, None)
    assert mentions(world, read) == [(0, "ann lee"), (1, "bob orr")]
    assert [row["document_id"] for row in claim(world)] == [without]
    assert claim(world) == []


def test_a_claim_leases_due_documents_in_order(world: World, people: People):
    documents = [put(world, people.ann, TEXTS[0]) for _ in range(4)]
    for late, document in enumerate(documents):
        due(world, document, ago=f"{late + 1} minutes")
    assert [row["document_id"] for row in claim(world, 3)] == documents[:0:-1]
    assert [row["document_id"] for row in claim(world)] == documents[:1]
    assert claim(world) == []
    assert state(world, documents[0]) == (0, 0, 1, True, False, None)


def test_a_busy_org_does_not_delay_another(world: World, people: People):
    for _ in range(6):
        put(world, people.ann, TEXTS[0])
    last = put(world, people.bob, TEXTS[0])
    claimed = claim(world, 3)
    assert len(claimed) == 3
    assert [row["org_id"] for row in claimed].count(people.bolt.id) == 1
    assert last in {row["document_id"] for row in claimed}


def test_two_workers_never_lease_one_document(world: World, people: People):
    documents = {put(world, people.ann, TEXTS[0]) for _ in range(40)}

    def work(_: int) -> list[str]:
        document_ids: list[str] = []
        with closing(World(world.stack)) as own:
            # Those that another is just claiming are passed over.
            while own.sql("select 1 from rag.extractions where lease is null limit 1"):
                document_ids += [row["document_id"] for row in claim(own, 3)]
        return document_ids

    with ThreadPoolExecutor(4) as pool:
        claimed = [document for some in pool.map(work, range(4)) for document in some]
    assert sorted(claimed) == sorted(documents)


def test_an_expired_lease_is_claimed_again_alone_and_finally_given_up(world: World, people: People):
    first, second = put(world, people.ann, TEXTS[0]), put(world, people.ann, TEXTS[1])
    claimed = {row["document_id"]: row for row in claim(world)}
    assert set(claimed) == {first, second}
    due(world, first, ago="1 minute")
    due(world, second)
    assert [row["document_id"] for row in claim(world)] == [first]
    assert lost(world, people.ann, claimed[first])
    assert call_with_lease(
        world, people.ann, claimed[second], "select rag.lock_leased(null::rag.extractions)"
    )
    due(world, second, ago="-1 hour")
    for attempt in range(3, 17):
        due(world, first)
        (row,) = claim(world)
        assert row["attempts"] == str(attempt)
    due(world, first)
    assert claim(world) == []
    assert state(world, first) == (0, 0, 16, False, True, "reading_failed")


BAD_CLAIMS: list[tuple[Any, ...]] = [
    (0, 60),
    (101, 60),
    (None, 60),
    (1, 4),
    (1, 3601),
]


def test_a_claim_is_limited_in_number_and_time(world: World, subtests: pytest.Subtests):
    for arguments in BAD_CLAIMS:
        with subtests.test(arguments=arguments):
            with pytest.raises(psycopg.Error) as refused:
                world.as_role("rag_worker", CLAIM, *arguments)
            assert refused.value.sqlstate == "PT400"


def test_the_worker_s_role_reads_no_names_and_no_text(world: World, people: People):
    put(world, people.ann, TEXTS[0], chunks=named({TEXTS[0]: ["Ann Lee"]}))
    for table in ("mentions", "title_entities", "relations"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_role("rag_worker", f"select from rag.{table}")
    columns = world.sql(
        "select attname from pg_attribute where attrelid = 'rag.chunks'::regclass and attnum > 0"
    )
    # With these three it extends the HNSW index (rag_extend_hnsw).
    for column in {name for (name,) in columns} - {"org_id", "id", "in_hnsw"}:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.as_role("rag_worker", f"select {column} from rag.chunks")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_role("rag_worker", "update rag.extractions set user_id = %s", people.bob.id)


def test_a_claim_reads_few_rows_whatever_is_done(world: World, people: People):
    """By the index, which those that are done are not in, nor those that were not requested."""
    world.sql(
        "insert into rag.documents (org_id, collection_id, title, content, content_hash) "
        "select %s, (select id from rag.collections where org_id = %s limit 1), 'x', 'x', repeat('0', 64) "
        "from generate_series(1, 500)",
        people.acme.id, put(world, people.ann, TEXTS[0]) and people.acme.id,
    )  # fmt: skip
    world.sql(
        "insert into rag.extractions (org_id, document_id, collection_id, user_id, is_extracted) "
        "select org_id, id, collection_id, case when random() < 0.5 then %s::uuid end, true "
        "from rag.documents where org_id = %s on conflict do nothing",
        people.ann.id, people.acme.id,
    )  # fmt: skip
    world.sql("analyze rag.extractions")
    plan = "\n".join(
        line
        for (line,) in world.as_role(
            "rag_worker",
            "explain (costs off) select org_id from rag.extractions where not is_extracted "
            "and user_id is not null and org_id = %s and due_at <= clock_timestamp() order by due_at limit 8",
            people.acme.id,
        )
    )
    assert "extractions_due" in plan
