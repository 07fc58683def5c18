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
from tests.sql.search.test_match_plans import rows_read
from tests.sql.search_oracle import WORDS, Library
from tests.sql.sql_as_user import become

TABLES = ("document_terms", "term_segments", "term_blocks")
ORGS = "org_id = any (%s::uuid[])"
# What each segment must hold: the terms of its documents.
EXPECTED = f"""
    select org_id, collection_id, owner_id, segment, term, count(distinct number), count(*),
      array_agg(distinct (place >> 54 << 16)::integer | number)
    from rag.document_terms, unnest(terms, places) as entry (term, place)
    where {ORGS} and segment is not null group by 1, 2, 3, 4, 5
"""
LISTED = f"""
    select org_id, collection_id, owner_id, segment, terms[i], ends[i] - coalesce(ends[i - 1], 0), chunks[i],
      array(select e from unnest(entries[coalesce(ends[i - 1], 0) + 1 : ends[i]]) as e
        union all
        select (impact::integer << 16) | number::integer
        from unnest(impacts::real[]) with ordinality as each (impact, number)
        where impact > 0 and i = cardinality(terms)
        order by 1)
    from rag.term_blocks, generate_series(1, cardinality(terms)) as i where {ORGS}
"""
EXPECTED_TOTALS = f"""
    select org_id, segment, config, collection_id, owner_id, embedding_model, count(*),
      sum(chunks)::bigint, sum(length)::bigint
    from rag.document_terms where {ORGS} and segment is not null group by 1, 2, 3, 4, 5, 6
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


def new_document(text: str, **fields: Any) -> dict[str, Any]:
    """A document of one chunk."""
    chunks = passages.passages([text])
    return {"title": "A", "content": text, "embedding_model": MODEL, "chunks": chunks, **fields}


def drift(world: World, people: People) -> list[str]:
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
    return int(world.sql("select count(*) from rag.document_terms where segment is not null")[0][0])


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
        f"and chunks.ordinal = (place >> 32) & 4194303 where stored.{ORGS}",
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


def assert_no_terms(world: World, *orgs: str) -> None:
    for table in TABLES:
        assert world.sql(f"select count(*) from rag.{table} where {ORGS}", list(orgs)) == [(0,)], table


def test_the_index_follows_the_chunks_after_any_writes(world: World):
    library = Library(world, 0)
    people = library.people
    assert_terms(world, library)
    assert drift(world, people) == []
    world.as_user(people.ada, "delete from rag.collections where name = 'notes' and owner_id is null")
    assert drift(world, people) == []
    for documents in library.documents.values():
        world.sql("delete from rag.documents where id = %s", documents[0].document_id)
    assert_no_terms(world, people.acme.id, people.bolt.id)


def test_segments_follow_their_documents_through_folds_merges_and_removals(world: World, people: People):
    draw = random.Random(0)  # noqa: S311  # not a secret
    words = [f"w{number}" for number in range(60)]
    before = folded(world)
    for number in range(60):
        texts = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(draw.choice([1, 7, 40]))]
        names = draw.sample(range(400), len(texts))
        documents = [
            new_document(text, external_id=f"n{name}") for name, text in zip(names, texts, strict=True)
        ]
        world.as_user(people.ann, "select public.rag_put_documents('default', %s)", Jsonb(documents))
        if number % 3 == 0:
            world.as_user(people.ann, "delete from rag.documents where external_id = %s", f"n{names[0]}")
    assert drift(world, people) == []
    assert folded(world) - before > 100


def test_a_key_that_deletes_a_collection_deletes_its_postings(world: World, people: People):
    passages.put(world, people.ann, "in the collection", collection="gone")
    passages.put(world, people.ann, "in another one")
    key = {"scopes": ["collections:manage"]}
    world.as_user(people.ann, "delete from rag.collections where name = 'gone'", rag=key)
    assert drift(world, people) == []
    assert world.sql("select count(*) from rag.document_terms where org_id = %s", people.acme.id) == [(1,)]


CHANGE = "update rag.documents set title = 'Another' where id = %s"


LOCK = "select from rag.documents where id = %s for no key update"


@pytest.mark.parametrize(("begin", "end"), [(CHANGE, "select %s"), (LOCK, CHANGE)])
def test_a_deleted_org_has_no_terms_although_a_writer_ends_later(
    world: World, people: People, begin: str, end: str
):
    """The deletion locks documents before terms, so that a writer of a document does not wait for it."""
    passages.put_many(world, people.ann, [f"one {number}" for number in range(40)])
    document_id = passages.put(world, people.ann, "one")
    with ThreadPoolExecutor(1) as pool, psycopg.connect(world.stack.database_url()) as writer:
        become(writer, people.ann)
        writer.execute(begin.encode(), [document_id])
        deletion = pool.submit(world.sql, "delete from rag.orgs where id = %s", people.acme.id)
        wait_for_waiters(world.stack, 1)
        writer.execute(end.encode(), [document_id])
        writer.commit()
        deletion.result()
    assert_no_terms(world, people.acme.id)


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
    assert world.sql("select from rag.orgs where id = %s", people.acme.id) == []
    assert_no_terms(world, people.acme.id)


def write(world: World, people: People, seed: int) -> None:
    """Puts, replacements and deletes of a few names; the first writer deletes the collection now and then."""
    draw = random.Random(seed)  # noqa: S311  # not a secret
    actor = [people.ann, people.alf, people.ada, people.kim][seed]
    mine = World(world.stack)
    try:
        for number in range(30):
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
        for number in range(6):
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


def test_a_deletion_waits_for_a_fold_and_leaves_no_word(world: World, people: People):
    """However the writers end, a deleted document's words leave the index with its deletion."""
    for texts in (
        [f"common thing{number}" for number in range(28)],
        [f"common {number}" for number in range(4)],
    ):
        passages.put_many(world, people.ann, texts)
    ((first,), (second,)) = world.sql(
        f"select document_id::text from rag.document_terms where {ORGS} and segment is null limit 2",
        [people.acme.id],
    )
    with ThreadPoolExecutor(1) as pool, psycopg.connect(world.stack.database_url()) as writer:
        become(writer, people.ann)
        put_four = "select public.rag_put_documents('default', %s)"
        writer.execute(put_four, [Jsonb([new_document(f"common more{number}") for number in range(4)])])
        deletion = pool.submit(world.as_user, people.ann, "delete from rag.documents where id = %s", first)
        wait_for_waiters(world.stack, 1)
        writer.commit()
        deletion.result()
    assert len(passages.search(world, people.ann, "common", top_k=100)) == 35
    assert drift(world, people) == []
    last = "select max(document_id::text) from rag.document_terms where org_id = %s and segment is not null"
    ((third,),) = world.sql(last, people.acme.id)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(world.stack.database_url()) as writer:
        become(writer, people.ann)
        writer.execute("update rag.documents set title = 'other' where id = %s", [second])
        deletion = pool.submit(world.as_user, people.ann, "delete from rag.documents where id = %s", third)
        wait_for_waiters(world.stack, 1)
        writer.commit()
        deletion.result()
    assert len(passages.search(world, people.ann, "common", top_k=100)) == 34
    assert drift(world, people) == []


def test_a_class_has_few_segments_and_a_short_tail(world: World, people: People):
    """One segment of up to 256 chunks; above, three segments of like size become one."""
    segments = f"select count(*), max(documents) from rag.term_segments where {ORGS}"
    present = []
    for fold in range(9):
        passages.put_many(world, people.ann, [f"again thing{fold} {number}" for number in range(100)])
        present += world.sql(segments, [people.acme.id])
    # The second segment of 200 joins no other before the sixth fold.
    assert present[:5] == [(1, 100), (1, 200), (2, 200), (2, 200), (3, 200)]
    assert present[5:] == [(1, 600), (2, 600), (2, 600), (3, 600)]
    for number in range(18):
        passages.put(world, people.ann, f"again later{number}")
    tail = f"select count(*) from rag.document_terms where {ORGS} and segment is null"
    assert world.sql(tail, [people.acme.id]) == [(18,)]
    assert drift(world, people) == []


def test_small_classes_have_short_tails_and_one_segment_whose_lists_are_read_once(
    world: World, people: People
):
    """A search looks each word up once in each segment, names of several words among them."""
    for number in range(20):
        passages.put(world, people.ann, f"again thing{number} other{number % 7}")
        passages.put(world, people.ann, f"again thing{number} other{number % 3}", private=True)
    tails = f"select count(*) from rag.document_terms where {ORGS} and segment is null group by class"
    assert sum(count for (count,) in world.sql(tails, [people.acme.id])) <= 10
    ((blocks, segments),) = world.sql(
        f"select count(*), count(distinct segment) from rag.term_blocks where {ORGS}", [people.acme.id]
    )
    assert (blocks, segments) == (2, 2)

    def search() -> None:
        assert len(passages.search(world, people.ann, "again thing3 other2 other1 thing7", top_k=100)) == 40

    assert rows_read(world, "term_blocks", search) == 31 * segments
    assert drift(world, people) == []


def test_changes_of_many_documents_rewrite_each_block_once(world: World, people: People):
    """One by one, they would rewrite the blocks for each document."""
    # Reads: the block of each term, and each block three times.
    letters = [str(number).translate(str.maketrans("0123456789", "abcdefghij")) for number in range(300)]
    texts = [f"common thing{letters[number % 7]} thing{letters[number]}" for number in range(300)]
    ids = [f"n{number}" for number in range(300)]

    def put(title: str, names: list[str]) -> None:
        documents = [
            new_document(text, external_id=name, title=title)
            for text, name in zip(texts, ids, strict=True)
            if name in names
        ]
        world.as_user(people.ann, "select public.rag_put_documents('default', %s)", Jsonb(documents))

    put("first", ids)
    blocks = f"select count(*) from rag.term_blocks where {ORGS}"
    ((number,),) = world.sql(blocks, [people.acme.id])
    assert number >= 3
    assert rows_read(world, "term_blocks", lambda: put("second", ids[:20])) <= 30 + 3 * number
    some = "delete from rag.documents where external_id = any (%s)"
    read = rows_read(world, "term_blocks", lambda: world.as_user(people.ann, some, ids[100:200]))
    assert read <= 110 + 3 * number
    world.as_user(people.ann, "delete from rag.documents")
    assert world.sql(blocks, [people.acme.id])[0][0] == 0
    assert drift(world, people) == []


def test_a_change_that_is_not_of_words_writes_no_terms(world: World, people: People):
    passages.put(world, people.ann, "one", "two")
    before = world.sql("select xmin::text from rag.document_terms where org_id = %s", people.acme.id)
    world.as_user(people.ann, "update rag.documents set source_type = 'mail', updated_at = now()")
    world.as_user(people.ann, "update rag.chunks set source_type = 'mail'")
    # rag_worker may not write the index.
    world.as_role("rag_worker", "update rag.documents set status = 'failed'")
    assert world.sql("select xmin::text from rag.document_terms where org_id = %s", people.acme.id) == before
    world.as_user(people.ann, "update rag.chunks set content = 'three' where content = 'one'")
    assert passages.search(world, people.ann, "one") == []
    assert len(passages.search(world, people.ann, "three")) == 1


def test_a_segment_may_have_most_of_its_chunks(world: World, people: People):
    """A class has few segments, however its documents come."""
    fold = """
        with added as (
          insert into rag.document_terms (org_id, document_id, collection_id, embedding_model,
            config, chunks, length, terms, places)
          select org_id, gen_random_uuid(), id, 'm', 'english', 33, 33, '{1}', '{1}'
          from rag.collections, generate_series(1, 9) where org_id = %s
        ) select
    """
    passages.put(world, people.ann, "one")
    for _ in range(70):
        world.sql(fold, people.acme.id)
        world.sql(
            "select rag.fold_tail(org_id, class) from rag.document_terms where org_id = %s limit 1",
            people.acme.id,
        )
    ((segments, largest),) = world.sql(
        "select count(*), max(chunks) from rag.term_segments where org_id = %s", people.acme.id
    )
    assert largest > 4000
    assert segments <= 12


def test_a_chunk_has_an_ordinal_that_the_index_can_store(world: World, people: People):
    passages.put(world, people.ann, "one")
    world.as_user(people.ann, "update rag.chunks set ordinal = 4194303")
    assert len(passages.search(world, people.ann, "one")) == 1
    with pytest.raises(psycopg.errors.CheckViolation):
        world.as_user(people.ann, "update rag.chunks set ordinal = 4194304")


def test_a_document_of_many_chunks_is_indexed_in_one_pass(world: World, people: People):
    """The statement sorted the terms of the whole document once for each chunk."""
    words = [f"w{number}" for number in range(100)]
    texts = [" ".join(words[number % 50 : number % 50 + 50]) for number in range(400)]

    def temporary_bytes() -> int:
        world.sql("select pg_stat_force_next_flush()")
        return int(
            world.sql("select temp_bytes from pg_stat_database where datname = current_database()")[0][0]
        )

    document_id = passages.put(world, people.ann, *texts)
    before = temporary_bytes()
    call = "select rag.index_words(%s, %s) from set_config('rag.loads_words', 'true', true)"
    world.as_user(people.ann, call, people.acme.id, [document_id])
    assert temporary_bytes() - before < 1_000_000
    terms = "select cardinality(terms) from rag.document_terms where document_id = %s"
    assert world.sql(terms, document_id) == [(400 * 50,)]


def test_an_exchange_of_embeddings_waits_for_writers_and_moves_the_index_of_its_chunks(
    world: World, people: People
):
    """A replacement that has begun, and new documents of the former model in a class of their own."""
    passages.put_many(world, people.ann, [f"common thing{number}" for number in range(40)])
    replaced = passages.put(world, people.ann, "common again", external_id="x")
    world.sql(
        "insert into rag.other_embeddings select org_id, id, 'another model', embedding from rag.chunks "
        "where org_id = %s",
        people.acme.id,
    )
    exchange = "select rag.exchange_embeddings(%s, 'another model')"
    with (
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(world.stack.database_url()) as writer,
        psycopg.connect(world.stack.database_url()) as other,
    ):
        become(writer, people.ann)
        writer.execute("update rag.documents set title = 'Other' where id = %s", [replaced])
        become(other, people.ann)
        put = "select public.rag_put_documents('elsewhere', %s)"
        other.execute(put, [Jsonb([new_document(f"common new{number}") for number in range(40)])])
        exchanging = pool.submit(world.sql, exchange, people.acme.id)
        wait_for_waiters(world.stack, 1)
        writer.execute("update rag.chunks set content = 'common anew' where document_id = %s", [replaced])
        writer.commit()
        assert exchanging.result() == [(41,)]
        other.commit()
    models = (
        "select distinct chunks.embedding_model, terms.embedding_model from rag.chunks "
        "left join rag.document_terms as terms on terms.org_id = chunks.org_id "
        "and terms.document_id = chunks.document_id where chunks.org_id = %s order by 1"
    )
    assert world.sql(models, people.acme.id) == [(MODEL, MODEL), ("another model", "another model")]
    assert drift(world, people) == []
    for model, count in (("another model", 41), (MODEL, 40)):
        assert len(passages.search(world, people.ann, "common", top_k=100, filters={"model": model})) == count


def test_an_exchange_of_embeddings_gives_way_to_a_deletion_of_chunks(world: World, people: People):
    """The deletion has a chunk and wants its document, the exchange the other way round: a deadlock."""
    document_id = passages.put(world, people.ann, "common", "rare")
    world.sql(
        "insert into rag.other_embeddings select org_id, id, 'another model', embedding from rag.chunks "
        "where org_id = %s",
        people.acme.id,
    )
    exchange = "select rag.exchange_embeddings(%s, 'another model')"
    with psycopg.connect(world.stack.database_url()) as writer:
        become(writer, people.ann)
        writer.execute("select from rag.chunks where content = 'rare' for update")
        assert world.sql(exchange, people.acme.id) == [(-1,)]
        writer.execute("delete from rag.chunks where document_id = %s and content = 'rare'", [document_id])
        writer.commit()
    assert world.sql(exchange, people.acme.id) == [(1,)]
    assert drift(world, people) == []
    assert passages.search(world, people.ann, "rare", filters={"model": "another model"}) == []
