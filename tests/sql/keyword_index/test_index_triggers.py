"""The keyword index follows the chunks: after any put, replacement, fold or deletion."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.actors import MODEL, World
from tests.conftest import People
from tests.process_faults import wait_for_waiters
from tests.sql import passages
from tests.sql.search.test_bm25 import terms_of
from tests.sql.search_oracle import WORDS, Library
from tests.sql.sql_as_user import become

TABLES = ("document_terms", "term_segments", "term_blocks")
ORGS = "org_id = any (%s::uuid[])"
# What each segment must hold: the terms of its documents, those that wait for their removal among them.
EXPECTED = f"""
    select org_id, segment, term, count(distinct number), count(*),
      array_agg(distinct (place >> 54 << 16)::integer | number)
    from rag.document_terms, unnest(terms, places) as entry (term, place)
    where {ORGS} and pending is distinct from 1 group by 1, 2, 3
"""
LISTED = f"""
    select org_id, segment, terms[i], ends[i] - coalesce(ends[i - 1], 0), chunks[i],
      array(select e from unnest(entries[coalesce(ends[i - 1], 0) + 1 : ends[i]]) as e order by e)
    from rag.term_blocks, generate_series(1, cardinality(terms)) as i where {ORGS}
"""
EXPECTED_TOTALS = f"""
    select org_id, segment, config, collection_id, owner_id, embedding_model, count(*),
      sum(chunks)::bigint, sum(length)::bigint
    from rag.document_terms where {ORGS} and pending is distinct from 1 group by 1, 2, 3, 4, 5, 6
"""
TOTALS = f"""
    select org_id, segment, config, collection_id, owner_id, embedding_model, documents, chunks, length
    from rag.term_segments where {ORGS}
"""
UNORDERED = f"""
    select segment, first from rag.term_blocks, generate_series(1, cardinality(terms)) as i
    where {ORGS} and (terms[i] <= terms[i - 1] or terms[i] < first or ends[i] <= coalesce(ends[i - 1], 0)
      or entries[coalesce(ends[i - 1], 0) + 1 : ends[i]]
        <> array(select e from unnest(entries[coalesce(ends[i - 1], 0) + 1 : ends[i]]) as e order by e desc))
"""


def drift(world: World, people: People) -> list[tuple[Any, ...]]:
    """Where the segments and the terms of their documents differ."""
    orgs = [[people.acme.id, people.bolt.id]]
    with psycopg.connect(world.stack.database_url()) as connection:

        def rows(query: str) -> Counter[str]:
            return Counter(map(str, connection.execute(query.encode(), orgs).fetchall()))

        differences = rows(UNORDERED)
        for expected, present in ((EXPECTED, LISTED), (EXPECTED_TOTALS, TOTALS)):
            differences += rows(expected) - rows(present)
            differences += rows(present) - rows(expected)
        return sorted(differences)


def folded(world: World) -> int:
    """The number of folded documents."""
    return int(world.sql("select count(*) from rag.document_terms where pending is null")[0][0])


def assert_terms(world: World, library: Library) -> None:
    """Fails unless the index has exactly the terms of the chunks."""
    expected = terms_of(world, library.passages)
    words = list({term for counted in expected.values() for term in counted})
    rows = world.sql("select word, rag.term_key(word) from unnest(%s::text[]) as word", words)
    keys = dict(rows)
    rows = world.sql(
        "select chunks.id::text, term, place & 65535, (place >> 16) & 65535 "
        "from rag.document_terms as stored cross join unnest(terms, places) as entry (term, place) "
        "join rag.chunks on chunks.org_id = stored.org_id and chunks.document_id = stored.document_id "
        f"and chunks.ordinal = (place >> 32) & 4194303 where stored.{ORGS} and pending is distinct from -1",
        [library.people.acme.id, library.people.bolt.id],
    )
    by_name: dict[str, Counter[int]] = {chunk_id: Counter() for chunk_id in expected}
    for chunk_id, term, occurrences, length in rows:
        assert length == expected[chunk_id].total()
        by_name[chunk_id][term] = occurrences
    assert by_name == {
        chunk_id: Counter({keys[term]: count for term, count in counted.items()})
        for chunk_id, counted in expected.items()
    }


@pytest.mark.parametrize("seed", range(2))
def test_the_index_follows_the_chunks_after_any_writes(world: World, seed: int):
    library = Library(world, seed)
    people = library.people
    assert_terms(world, library)
    assert drift(world, people) == []
    world.as_user(people.ada, "delete from rag.collections where name = 'notes' and owner_id is null")
    assert drift(world, people) == []
    for documents in library.documents.values():
        world.sql("delete from rag.documents where id = %s", documents[0].document_id)
    orgs = [people.acme.id, people.bolt.id]
    for table in TABLES:
        assert world.sql(f"select count(*) from rag.{table} where {ORGS}", orgs) == [(0,)], table


@pytest.mark.parametrize("seed", range(2))
def test_segments_follow_their_documents_through_folds_merges_and_removals(
    world: World, people: People, seed: int
):
    draw = random.Random(seed)  # noqa: S311  # not a secret
    words = [f"w{number}" for number in range(60)]
    before = folded(world)
    for number in range(60):
        texts = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(draw.choice([1, 7, 40]))]
        names = draw.sample(range(400), len(texts))
        documents = [
            {"external_id": f"n{name}", "title": "T", "content": text, "embedding_model": MODEL,
             "chunks": passages.passages([text])}
            for name, text in zip(names, texts, strict=True)
        ]  # fmt: skip
        world.as_user(people.ann, "select public.rag_put_documents('default', %s)", Jsonb(documents))
        if number % 3 == 0:
            world.as_user(people.ann, "delete from rag.documents where external_id = %s", f"n{names[0]}")
    assert drift(world, people) == []
    assert folded(world) - before > 100
    assert world.sql(
        f"select count(*) from rag.document_terms where {ORGS} and pending = -1", [people.acme.id]
    ) == [(0,)]


def test_a_key_that_deletes_a_collection_deletes_its_postings(world: World, people: People):
    passages.put(world, people.ann, "in the collection", collection="gone")
    passages.put(world, people.ann, "in another one")
    key = {"scopes": ["collections:manage"]}
    world.as_user(people.ann, "delete from rag.collections where name = 'gone'", rag=key)
    assert drift(world, people) == []
    assert world.sql("select count(*) from rag.document_terms where org_id = %s", people.acme.id) == [(1,)]


def test_a_deleted_org_has_no_terms_although_a_writer_ends_later(world: World, people: People):
    passages.put_many(world, people.ann, [f"one {number}" for number in range(40)])
    document_id = passages.put(world, people.ann, "one")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(world.stack.database_url()) as writer:
        become(writer, people.ann)
        writer.execute("update rag.documents set title = 'Another' where id = %s", [document_id])
        deletion = pool.submit(world.sql, "delete from rag.orgs where id = %s", people.acme.id)
        wait_for_waiters(world.stack, 1)
        writer.commit()
        deletion.result()
    for table in TABLES:
        rows = f"select count(*) from rag.{table} where org_id = %s"
        assert world.sql(rows, people.acme.id) == [(0,)], table


@pytest.mark.postgres
def test_an_org_deleted_by_a_deployer_s_function_has_no_terms(world: World, people: People):
    """Before Postgres 18, deferred triggers run as the function's caller, who no longer sees the org."""
    passages.put_many(world, people.ann, [f"one {number}" for number in range(40)])
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
    for table, key in {"orgs": "id", **dict.fromkeys(TABLES, "org_id")}.items():
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


def put_batches(world: World, people: People, seed: int) -> None:
    """Puts of forty documents, which fold the tail, beside the other writers of the same class."""
    mine = World(world.stack)
    try:
        for number in range(12):
            texts = [f"{' '.join(WORDS[seed:])} {number} {place}" for place in range(40)]
            passages.put_many(mine, people.ann, texts)
    finally:
        mine.close()


def test_concurrent_writers_and_folding_neither_deadlock_nor_drift(world: World, people: People):
    passages.put(world, people.ann, "w1")
    with ThreadPoolExecutor(6) as pool:
        tasks = [pool.submit(write, world, people, seed) for seed in range(4)]
        tasks += [pool.submit(put_batches, world, people, seed) for seed in range(2)]
        for task in tasks:
            task.result()
    assert drift(world, people) == []


def test_a_document_deleted_during_a_fold_is_not_found_and_leaves_with_the_next_write(
    world: World, people: People
):
    passages.put_many(world, people.ann, [f"common thing{number}" for number in range(40)])
    gone = passages.put(world, people.ann, "common vanishing")
    others = [passages.put(world, people.ann, f"common other{number}") for number in range(3)]
    passages.put_many(world, people.ann, [f"common more{number}" for number in range(40)])
    with psycopg.connect(world.stack.database_url()) as writer:
        become(writer, people.ann)
        # This one folds the class until it ends.
        writer.execute("delete from rag.documents where id = %s", [others[0]])
        assert passages.delete(world, people.ann, gone)
        assert passages.search(world, people.ann, "vanishing") == []
        assert len(passages.search(world, people.ann, "common", top_k=100)) == 83
        writer.commit()
    assert len(passages.search(world, people.ann, "common", top_k=100)) == 82
    waiting = f"select count(*) from rag.document_terms where {ORGS} and pending = -1"
    assert world.sql(waiting, [people.acme.id]) == [(1,)]
    passages.delete(world, people.ann, others[1])
    assert world.sql(waiting, [people.acme.id]) == [(0,)]
    assert drift(world, people) == []


def test_a_fold_that_is_rolled_back_changes_nothing(world: World, people: People):
    passages.put_many(world, people.ann, [f"common thing{number}" for number in range(30)])
    with psycopg.connect(world.stack.database_url()) as writer:
        become(writer, people.ann)
        for number in range(3):
            writer.execute(
                "update rag.documents set title = %s where org_id = %s", [f"t{number}", people.acme.id]
            )
        writer.rollback()
    assert drift(world, people) == []
    assert len(passages.search(world, people.ann, "common", top_k=100)) == 30


def test_a_class_has_few_segments_and_a_short_tail(world: World, people: People):
    for number in range(150):
        passages.put(world, people.ann, f"again thing{number}")
    segments = f"select count(*), max(documents) from rag.term_segments where {ORGS}"
    ((count, largest),) = world.sql(segments, [people.acme.id])
    assert (count, largest) == (1, 132)
    tail = f"select count(*) from rag.document_terms where {ORGS} and pending = 1"
    assert world.sql(tail, [people.acme.id]) == [(18,)]
    assert drift(world, people) == []


def test_no_member_reads_or_writes_the_index_of_private_documents_of_others(world: World, people: People):
    passages.put_many(world, people.ann, [f"common thing{number}" for number in range(40)], private=True)
    passages.put(world, people.ann, "common vanishing", private=True)
    for table in TABLES:
        ((row, *_), *_) = world.sql(
            f"select to_jsonb(stored) from rag.{table} as stored where owner_id = %s", people.ann.id
        )
        for person in (people.alf, people.bob):
            assert (
                world.as_user(person, f"select 1 from rag.{table} where owner_id = %s", people.ann.id) == []
            )
            world.as_user(person, f"delete from rag.{table}")
            world.as_user(person, f"update rag.{table} set owner_id = null")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                world.as_user(
                    person,
                    f"insert into rag.{table} select (jsonb_populate_record(null::rag.{table}, %s)).*",
                    Jsonb(row | {"segment": 0}),
                )  # fmt: skip
    assert drift(world, people) == []
    assert len(passages.search(world, people.ann, "common", top_k=100)) == 41


def test_a_fold_leaves_rows_that_another_member_put_into_its_segment(world: World, people: People):
    """A member may write rows of shared documents only, whichever segment they name."""
    passages.put_many(world, people.ann, [f"common thing{number}" for number in range(33)])
    shared = f"select min(segment) from rag.term_segments where {ORGS}"
    ((segment,),) = world.sql(shared, [people.acme.id])
    passages.put(world, people.alf, "stranger", private=True)
    world.as_user(
        people.alf,
        "update rag.document_terms set segment = %s, number = 5000, pending = null where owner_id = %s",
        segment,
        people.alf.id,
    )
    for number in range(3):
        passages.put_many(world, people.ada, [f"common more{number} {place}" for place in range(33)])
    assert passages.search(world, people.ann, "stranger") == []
    rows = f"select count(*) from rag.document_terms where {ORGS} and owner_id is not null and number = 5000"
    assert world.sql(rows, [people.acme.id]) == [(1,)]
