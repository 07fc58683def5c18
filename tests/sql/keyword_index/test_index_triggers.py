"""Postings and counts follow the chunks: after any put, replacement, fold or deletion."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.actors import World
from tests.conftest import People
from tests.process_faults import wait_for_waiters
from tests.sql import passages
from tests.sql.search.test_bm25 import terms_of
from tests.sql.search_oracle import WORDS, Library
from tests.sql.sql_as_user import become

RECOUNTED = """
    select term, collection_id, owner_id, count(*) as documents, sum(cardinality(places)) as chunks,
      sum(case when starts_with(term, ' ') then length else 0 end) as length
    from rag.postings where org_id = any (%(orgs)s::uuid[]) group by 1, 2, 3
"""
COUNTED = """
    select term, collection_id, owner_id, sum(documents), sum(chunks), sum(length)
    from rag.term_counts where org_id = any (%(orgs)s::uuid[]) group by 1, 2, 3
    having sum(documents) <> 0 or sum(chunks) <> 0 or sum(length) <> 0
"""
FOLDED = (
    "select rag.fold_term_counts(org_id, collection_id, owner_id, array_agg(distinct term)) "
    "from rag.term_counts where org_id = any (%s::uuid[]) group by org_id, collection_id, owner_id"
)


def drift(world: World, people: People) -> list[tuple[Any, ...]]:
    """Where the log of counts and the postings differ."""
    orgs = {"orgs": [people.acme.id, people.bolt.id]}
    with psycopg.connect(world.stack.database_url()) as connection:
        counted = set(connection.execute(COUNTED.encode(), orgs).fetchall())
        return sorted(counted ^ set(connection.execute(RECOUNTED.encode(), orgs).fetchall()), key=str)


def assert_postings(world: World, library: Library) -> None:
    """Fails unless they have exactly the terms of the chunks."""
    expected = terms_of(world, library.passages)
    rows = world.sql(
        "select chunks.id::text, term, place & 65535, (place >> 16) & 65535 from rag.postings "
        "cross join unnest(places) as place join rag.chunks on chunks.org_id = postings.org_id "
        "and chunks.document_id = postings.document_id and chunks.ordinal = place >> 32 "
        "where postings.org_id = any (%s::uuid[])",
        [library.people.acme.id, library.people.bolt.id],
    )
    by_name: dict[str, Counter[str]] = {chunk_id: Counter() for chunk_id, _, _, _ in rows}
    for chunk_id, term, occurrences, length in rows:
        assert length == expected[chunk_id].total()
        if not term.startswith(" "):
            by_name[chunk_id][term] = occurrences
    assert by_name == expected


@pytest.mark.parametrize("seed", range(2))
def test_postings_match_the_chunks_and_counts_the_postings_after_any_writes(world: World, seed: int):
    library = Library(world, seed)
    people = library.people
    assert_postings(world, library)
    orgs = [people.acme.id, people.bolt.id]
    assert drift(world, people) == []
    world.as_user(people.ada, "delete from rag.collections where name = 'notes' and owner_id is null")
    assert drift(world, people) == []
    world.sql(FOLDED, orgs)
    assert drift(world, people) == []
    rows_of_a_term = (
        "select count(*) from rag.term_counts where org_id = any (%s::uuid[]) "
        "group by org_id, term, collection_id, owner_id"
    )
    assert set(world.sql(rows_of_a_term, orgs)) == {(1,)}
    for documents in library.documents.values():
        world.sql("delete from rag.documents where id = %s", documents[0].document_id)
    world.sql(FOLDED, orgs)
    assert world.sql(rows_of_a_term, orgs) == []


def test_a_key_that_deletes_a_collection_deletes_its_postings(world: World, people: People):
    passages.put(world, people.ann, "in the collection", collection="gone")
    passages.put(world, people.ann, "in another one")
    key = {"scopes": ["collections:manage"]}
    world.as_user(people.ann, "delete from rag.collections where name = 'gone'", rag=key)
    assert drift(world, people) == []
    assert world.sql("select 1 from rag.postings where term = 'collect'") == []


def test_a_deleted_org_has_no_counts_although_a_writer_ends_later(world: World, people: People):
    document_id = passages.put(world, people.ann, "one")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(world.stack.database_url()) as writer:
        become(writer, people.ann)
        writer.execute("update rag.documents set title = 'Another' where id = %s", [document_id])
        deletion = pool.submit(world.sql, "delete from rag.orgs where id = %s", people.acme.id)
        wait_for_waiters(world.stack, 1)
        writer.commit()
        deletion.result()
    for table in ("postings", "term_counts"):
        rows = f"select count(*) from rag.{table} where org_id = %s"
        assert world.sql(rows, people.acme.id) == [(0,)], table


@pytest.mark.postgres
def test_an_org_deleted_by_a_deployer_s_function_has_no_counts(world: World, people: People):
    """Before Postgres 18, deferred triggers run as the function's caller, who no longer sees the org."""
    passages.put(world, people.ann, "one")
    passages.put(world, people.alf, "one of a private document", private=True)
    world.sql("""
        create function public.delete_org(org_id uuid) returns void
        language plpgsql security definer set search_path = ''
        as $$
        begin
          perform set_config('request.jwt.claims', '', true);
          delete from rag.orgs where id = org_id;
        end;
        $$
    """)
    try:
        world.as_user(people.ada, "select public.delete_org(%s)", people.acme.id)
    finally:
        world.sql("drop function public.delete_org")
    for table, key in {"orgs": "id", "postings": "org_id", "term_counts": "org_id"}.items():
        rows = f"select count(*) from rag.{table} where {key} = %s"
        assert world.sql(rows, people.acme.id) == [(0,)], table


def write(world: World, people: People, seed: int) -> None:
    """Puts, replacements and deletes of a few names; the first writer deletes the collection now and then."""
    draw = random.Random(seed)  # noqa: S311  # not a secret
    actor = [people.ann, people.alf, people.ada, people.kim][seed]
    mine = World(world.stack)
    try:
        for number in range(50):
            texts = [" ".join(draw.choices(WORDS, k=5)) for _ in range(2)]
            collection, name = "gone" if number % 5 == 0 else "default", f"name {draw.randint(1, 6)}"
            fields: dict[str, Any] = {"title": f"t {number}", "collection": collection, "external_id": name}
            try:
                passages.put(mine, actor, *texts, **fields)
            except (psycopg.errors.ForeignKeyViolation, psycopg.errors.InsufficientPrivilege):
                # The collection went away in between.
                assert collection == "gone"
            if seed == 0 and number % 5 == 2:
                mine.as_user(actor, "delete from rag.collections where name = 'gone'")
            if number % 7 == 3:
                mine.as_user(actor, "delete from rag.documents where external_id = %s", name)
    finally:
        mine.close()


def fold(world: World, people: People) -> None:
    with psycopg.connect(world.stack.database_url(), autocommit=True) as connection:
        for _ in range(40):
            with connection.transaction():
                become(connection, people.ada)
                connection.execute(FOLDED.encode(), [[people.acme.id]])


def test_concurrent_writers_and_folding_neither_deadlock_nor_drift(world: World, people: People):
    passages.put(world, people.ann, "w1")
    with ThreadPoolExecutor(6) as pool:
        tasks = [pool.submit(write, world, people, seed) for seed in range(4)]
        tasks += [pool.submit(fold, world, people) for _ in range(2)]
        for task in tasks:
            task.result()
    assert drift(world, people) == []


def test_a_repeatedly_written_term_has_few_count_rows(world: World, people: People):
    for _ in range(100):
        passages.put(world, people.ann, "again", external_id="x")
    rows = "select count(*) from rag.term_counts where org_id = %s and term = 'again'"
    assert world.sql(rows, people.acme.id)[0][0] < 100
    assert drift(world, people) == []
