"""Which indexes the functions' own statements use, as a signed-in user: counted by Postgres, call by call.

Under row security only leakproof conditions enter an index; the rest would scan all rows.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from local.stack import Stack
from local.tools import migrations
from tests.actors import MODEL, Actor, World, vector
from tests.conftest import People
from tests.databases import own_database
from tests.sql import passages

# As many as make a scan of a table dearer than any index.
CROWD = """
    insert into rag.documents (org_id, collection_id, title, content, content_hash, labels)
    select org_id, id, 'T', 'pump ' || number || repeat(' text', 200), repeat('0', 64),
      array(select format('label %%s', number * 10 + place) from generate_series(1, 10) as place)
    from rag.collections, generate_series(1, 1500) as number where org_id = %(org)s;
    insert into rag.chunks (org_id, document_id, collection_id, ordinal, content, span_start,
      span_end, token_count, source_type, occurred_at, embedding_model, embedding)
    select documents.org_id, documents.id, documents.collection_id, 0, left(documents.content, 60), 0, 60, 1,
      case when starts_with(documents.content, 'pump 77') then 'email' else 'doc' end, now(), %(model)s, (
        select array_agg(sin(hashtext(documents.id::text || place))) || array_fill(0::float8, array[1520])
        from generate_series(1, 16) as place)
    from rag.documents where org_id = %(org)s and title = 'T';
"""


# The deployer, one of the small tenant and one of the large.
Crowd = tuple[World, Actor, Actor]


@pytest.fixture(scope="module")
def crowd(stack: Stack) -> Iterator[Crowd]:
    """A user with a hundred documents beside a tenant with thousands, in a database of their own."""
    database = own_database(stack, "planned")
    world = World(stack, database)
    small, large = world.org("small"), world.org("large")
    ann, bob = world.user(small), world.user(large)
    passages.put(world, bob, "x")
    with psycopg.connect(stack.database_url(database=database)) as connection:
        # An index is faster made of many rows than row by row.
        index = "select pg_get_indexdef('rag.chunks_by_embedding_1536'::regclass)"
        (definition,) = connection.execute(index).fetchone() or ("",)
        connection.execute("drop index rag.chunks_by_embedding_1536")
        for statement in CROWD.split(";")[:2]:
            connection.execute(statement.encode(), {"org": large.id, "model": MODEL})
        connection.execute(definition.encode())
    for number in range(100):
        fields: dict[str, Any] = {
            "collection": "notes" if number % 10 == 0 else "default",
            "labels": ["red"] if number < 5 else [],
            "metadata": {"n": number, "even": number % 2 == 0},
        }
        passages.put(world, ann, f"pump {number}", vectors=[vector(number)], **fields)
    world.sql(f"vacuum analyze {', '.join(f'rag.{table}' for table in sorted(LARGE))}")
    yield world, ann, bob
    world.close()
    migrations.drop_database(stack.postgres, database)


def uses(world: World, call: Callable[[], Any]) -> Counter[str]:
    """How often the call scanned each index of ours; and each table as a whole, by its name."""

    def counted() -> Counter[str]:
        world.sql("select pg_stat_force_next_flush()")
        rows = world.sql(
            "select indexrelname, idx_scan from pg_stat_user_indexes where schemaname = 'rag' "
            "union all select relname, seq_scan from pg_stat_user_tables where schemaname = 'rag'"
        )
        return Counter(dict(rows))

    before = counted()
    call()
    return counted() - before


def uses_and_rows(world: World, call: Callable[[], list[Any]]) -> tuple[Counter[str], list[Any]]:
    """The same, and the rows that the call returned."""
    rows: list[Any] = []
    return uses(world, lambda: rows.extend(call())), rows


def notes_of(world: World, actor: Actor) -> str:
    """The id of the collection of that name."""
    ((notes,),) = world.as_user(actor, "select id::text from rag.collections where name = 'notes'")
    return str(notes)


# Any of them finds an org's chunks; of one model and source type, chunks_by_scope reads no fewer.
BY_ORG = {
    "chunks_by_scope", "chunks_by_collection", "chunks_pkey",
    "chunks_org_id_document_id_ordinal_token_count_key",
}  # fmt: skip
LARGE = {"chunks", "documents", "document_terms", "term_segments", "term_blocks", "facets"}


def assert_uses(results: Counter[str], *indexes: str) -> None:
    assert set(indexes) <= set(results), results
    assert not LARGE & set(results), results


def org_of(actor: Actor) -> str:
    assert actor.org is not None
    return actor.org.id


@pytest.mark.parametrize(
    "filters", [{}, {"source_type": "doc"}, {"lang": "en"}, {"date_from": "2026-01-01T00:00:00Z"}], ids=str
)
def test_an_exact_match_of_a_small_org_reads_only_that_org(crowd: Crowd, filters: dict[str, Any]):
    world, ann, _ = crowd
    plan = uses(world, lambda: passages.match(world, ann, vector(1), 5, **filters))
    assert_uses(plan)
    assert plan["chunks_by_embedding_1536"] == 0
    assert sum(plan[index] for index in BY_ORG) > 0, plan


def test_an_exact_match_of_a_few_documents_uses_the_scope_s_index(crowd: Crowd):
    world, _, bob = crowd
    filters: dict[str, Any] = {"source_type": "email", "date_to": "2030-01-01T00:00:00Z"}
    plan, rows = uses_and_rows(world, lambda: passages.match(world, bob, vector(1), **filters))
    assert_uses(plan, "chunks_by_scope")
    assert plan["chunks_by_embedding_1536"] == 0
    assert len(rows) == 11


def test_a_match_uses_the_index_of_its_filters(crowd: Crowd):
    world, ann, _ = crowd
    in_notes = {"collection_id": notes_of(world, ann)}
    for filters, index in (({}, "term_segments_pkey"), (in_notes, "chunks_by_collection")):
        assert_uses(uses(world, partial(passages.match, world, ann, vector(1), 5, **filters)), index)
    plan, rows = uses_and_rows(world, lambda: passages.match(world, ann, vector(1), labels=["red"]))
    assert_uses(plan, "facets_by_value")
    assert len(rows) == 5


@pytest.mark.parametrize(
    ("metadata", "index", "count"),
    [
        ({"n": {"$in": [1, 2, 3, 4000]}}, "facets_by_value", 3),
        ({"n": {"$gte": 10, "$lt": 20}}, "facets_by_order", 10),
        ({"n": {"$gte": 10}, "even": {"$ne": True}}, "facets_by_order", 45),
        ({"n": {"$exists": False}, "even": {"$in": [True]}}, "facets_by_order", 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["semantic", "keyword"])
def test_operators_on_metadata_read_the_facets_by_their_indexes(
    crowd: Crowd, mode: str, metadata: dict[str, Any], index: str, count: int
):
    world, ann, _ = crowd
    arguments: dict[str, Any] = {"mode": mode, "query_vector": vector(1), "top_k": 100}
    arguments["filters"] = {"metadata": metadata}
    plan, rows = uses_and_rows(world, lambda: passages.search(world, ann, "pump", **arguments))
    assert_uses(plan, index)
    assert len(rows) == count


@pytest.mark.parametrize("filters", [{}, {"source_type": "doc"}], ids=str)
def test_a_large_org_is_searched_by_hnsw(crowd: Crowd, filters: dict[str, Any]):
    world, ann, _ = crowd
    with passages.deployed_with(world, exact_rows=0):
        plan = uses(world, lambda: passages.match(world, ann, vector(1), 5, **filters))
    assert_uses(plan, "chunks_by_embedding_1536")


def test_keywords_are_found_by_the_index_of_terms_or_document_by_document(crowd: Crowd):
    """The latter in few documents."""
    world, ann, _ = crowd
    plan = uses(world, lambda: passages.search(world, ann, "pump 7"))
    assert_uses(plan, "term_blocks_pkey", "document_terms_pkey", "term_segments_pkey")
    plan = uses(world, lambda: passages.search(world, ann, "pump 7", filters={"source_type": "doc"}))
    assert_uses(plan, "documents_by_scope", "document_terms_pkey")


def test_keywords_in_many_documents_use_the_index_of_terms_with_any_filters(crowd: Crowd):
    world, _, bob = crowd
    arguments: dict[str, Any] = {"top_k": 100, "filters": {"source_type": "doc"}}
    plan, rows = uses_and_rows(world, lambda: passages.search(world, bob, "pump 1234", **arguments))
    assert_uses(plan, "documents_by_scope", "term_blocks_pkey")
    assert rows[0]["content"].startswith("pump 1234 ")
    assert len(rows) == 100


def test_a_common_word_looks_up_only_the_candidates(crowd: Crowd):
    """Of 1,500 documents with the word."""
    world, _, bob = crowd
    rows = rows_read(world, "document_terms", lambda: passages.search(world, bob, "pump", top_k=1))
    assert 80 <= rows <= 200


def test_documents_of_another_model_are_not_looked_up(world: World, people: People):
    with passages.deployed_with(world, other_embedding_models=["another model"]):
        texts = [f"common {number}" for number in range(300)]
        passages.put_many(world, people.ann, texts, embedding_model="another model")
    passages.put(world, people.ann, "common")
    world.sql("analyze rag.document_terms")
    rows = rows_read(world, "document_terms", lambda: passages.search(world, people.ann, "common"))
    assert rows <= 20


def test_a_bound_key_reads_only_its_collection(crowd: Crowd):
    world, ann, _ = crowd
    notes = notes_of(world, ann)
    claims = {"rag": {"collection": notes}}
    arguments = {"query_vector": vector(1), "top_k": 5, "filters": {"model": MODEL}}
    plan, rows = uses_and_rows(world, lambda: passages.call(world, ann, "rag_match", claims, **arguments))
    assert_uses(plan, "chunks_by_collection")
    assert {row["collection_id"] for row in rows} == {notes}


@pytest.mark.parametrize("mode", ["hybrid", "hierarchical"])
def test_hybrid_search_scans_no_table(crowd: Crowd, mode: str):
    world, ann, _ = crowd
    arguments: dict[str, Any] = {"query_vector": vector(1), "expand_context": 1, "half_life_days": 9}
    plan = uses(world, lambda: passages.search(world, ann, "pump 7", mode=mode, **arguments))
    assert_uses(plan, "term_blocks_pkey", "document_terms_pkey", "documents_pkey")


@pytest.mark.parametrize("subject", ["chunk_id", "document_id"])
def test_similarity_search_scans_no_table(crowd: Crowd, subject: str):
    world, ann, _ = crowd
    row = passages.match(world, ann, vector(1), 1)[0]
    plan = uses(world, lambda: passages.similar(world, ann, **{subject: row[subject]}))
    assert_uses(plan)
    assert sum(plan[index] for index in BY_ORG) > 0, plan


def test_contents_are_looked_up_by_primary_key(crowd: Crowd):
    world, _, bob = crowd
    chunks = "select document_id::text, id::text from rag.chunks where org_id = %s limit 10"
    ids = [one for row in world.sql(chunks, org_of(bob)) for one in row]
    contents = "select public.rag_get_contents(org_id => %s, kinds => %s, ids => %s, chunks => true)"
    request = (org_of(bob), ["document", "chunk"] * 10, ids)
    plan = uses(world, lambda: world.as_user(bob, contents, *request))
    assert_uses(plan, "documents_pkey", "chunks_pkey", "chunks_org_id_document_id_ordinal_token_count_key")
    assert plan["chunks_by_scope"] + plan["chunks_by_collection"] + plan["documents_by_scope"] == 0


def test_documents_are_found_and_replaced_by_name_without_a_scan(crowd: Crowd):
    world, _, bob = crowd
    document = {"external_id": "named", "title": "N", "content": "n", "chunks": [], "embedding_model": MODEL}
    put = "select public.rag_put_documents('default', %s, %s)"
    world.as_user(bob, put, Jsonb([document]), False)
    names = "select public.rag_find_documents('default', array['named', 'x', 'y'])"
    for call in ((put, Jsonb([document]), False), (put, Jsonb([document]), True), (names,)):
        assert_uses(uses(world, partial(world.as_user, bob, *call)), "documents_external_id")


def test_the_test_would_detect_a_scan(crowd: Crowd):
    world, _, _ = crowd
    statement = "select count(*) from rag.chunks where content = ''"
    assert uses(world, lambda: world.sql(statement))["chunks"] == 1


def test_a_plan_made_with_empty_tables_scans_no_full_table(unanalyzed: World):
    """PostgREST's connections keep their plans; autovacuum may count the rows a minute later."""
    world, ann = unanalyzed, unanalyzed.user(unanalyzed.org())
    text = " ".join(f"a-{number}" for number in range(5000))

    def search() -> None:
        world.as_user(ann, "select 1 from rag_search(query_text => %s, mode => 'keyword')", text[:2000])

    def scanned() -> list[tuple[Any, ...]]:
        """The rows that sequential scans have read, by table."""
        world.sql("select pg_stat_force_next_flush()")
        return world.sql(
            "select relname, seq_tup_read from pg_stat_user_tables "
            "where schemaname = 'rag' and relname = any ('{document_terms,term_segments,term_blocks}') "
            "order by 1"
        )

    passages.put(world, ann, "a-1 a-2")
    world.sql("vacuum rag.document_terms, rag.term_segments, rag.term_blocks, rag.documents, rag.chunks")
    search()
    passages.put(world, ann, text)
    before = scanned()
    search()
    assert scanned() == before


@pytest.fixture
def unanalyzed(stack: Stack) -> Iterator[World]:
    """A database without statistics."""
    database = own_database(stack, "unanalyzed")
    with closing(World(stack, database)) as world:
        yield world
    migrations.drop_database(stack.postgres, database)


def rows_read(world: World, table: str, call: Callable[[], Any]) -> int:
    """The rows of the table that the call's scans read."""

    def read() -> int:
        world.sql("select pg_stat_force_next_flush()")
        statement = "select seq_tup_read + idx_tup_fetch from pg_stat_user_tables where relname = %s"
        return int(world.sql(statement, table)[0][0])

    before = read()
    call()
    return read() - before


def test_writes_without_statistics_read_only_their_own_rows(unanalyzed: World):
    """Of an org with many more; comparing each of its rows with each term took minutes."""
    world, ann = unanalyzed, unanalyzed.user(unanalyzed.org())
    texts = [
        " ".join(f"w{number * 7 % 2000}x" for number in range(place, place + 100)) for place in range(40)
    ]
    passages.put_many(world, ann, texts)
    passages.put(world, ann, "b", collection="notes")
    ((notes,),) = world.sql("select id from rag.collections where name = 'notes'")
    gone = "select id::text from rag.documents where content = %s"
    ((document_id,),) = world.sql(gone, texts[0])
    ((blocks,),) = world.sql("select count(*) from rag.term_blocks")
    # The block of each term, and each block twice.
    read = rows_read(world, "term_blocks", lambda: passages.delete(world, ann, document_id))
    assert read <= 101 + 3 * blocks

    world.sql(
        "insert into rag.documents (org_id, collection_id, external_id, title, content, content_hash) "
        "select org_id, id, number, 'T', 'x', repeat('0', 64) "
        "from rag.collections, generate_series(1, 300) as number where org_id = %s",
        org_of(ann),
    )
    inputs = Jsonb([{"external_id": str(number), "title": "T", "content": "x"} for number in range(1, 51)])
    resolving = (
        "select resolved.number from rag.collections as home "
        "cross join rag.resolve_documents(home, rag.new_documents(home, %s)) as resolved where home.id = %s"
    )
    places: list[Any] = []
    read = rows_read(world, "documents", lambda: places.extend(world.as_user(ann, resolving, inputs, notes)))
    assert read == len(places) == 50


@pytest.mark.parametrize("number", [1, 50, 2000])
def test_grants_are_read_once_and_every_search_keeps_its_indexes(crowd: Crowd, number: int):
    world, ann, _ = crowd
    org = org_of(ann)
    world.sql(
        "insert into rag.collections (org_id, name, restricted_by) "
        "select %s, 'restricted ' || n, gen_random_uuid() from generate_series(1, %s) as n", org, number,
    )  # fmt: skip
    world.sql("insert into rag.groups (org_id, name) select %s, n from generate_series(1, 200) as n", org)
    world.sql(
        "insert into rag.group_members (org_id, group_name, owner_id) "
        "select org_id, name, %s from rag.groups", ann.id,
    )  # fmt: skip
    world.sql(
        "insert into rag.collection_grants (org_id, collection_id, group_name, access) "
        "select org_id, id, 1 + row_number() over () %% 400, 'view' "
        "from rag.collections where restricted_by is not null"
    )
    world.sql("analyze rag.collections, rag.collection_grants, rag.group_members")
    searches: list[Callable[[], Any]] = [
        partial(passages.match, world, ann, vector(1), 5),
        partial(passages.search, world, ann, "pump 7", mode="keyword"),
        partial(passages.search, world, ann, "pump 7", query_vector=vector(1), mode="hybrid"),
    ]
    try:
        for search in searches:
            search()
            plan, rows = uses_and_rows(world, search)
            assert rows
            assert_uses(plan)
            for table in ("collection_grants", "group_members"):
                reads = sum(count for name, count in plan.items() if name.startswith(table))
                assert reads <= 1, plan
    finally:
        world.sql("delete from rag.groups")
        world.sql("delete from rag.collections where restricted_by is not null")
