"""What the graph's look-ups read, as a signed-in user: by index, and no more than so many rows, though a name
be in every document of a large org."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from local.stack import Stack
from local.tools import migrations
from tests.actors import MODEL, Actor, World
from tests.databases import own_database
from tests.sql import naming, passages
from tests.sql.naming import NamedChunk
from tests.sql.search.test_match_plans import uses

# Two thousand documents of four chunks; each chunk names Everywhere and a thing, and says that the one is a
# part of the other. As the triggers and functions would write it, only faster.
CROWD = """
    set local session_replication_role = replica;
    insert into rag.documents (org_id, collection_id, title, content, content_hash)
    select org_id, id, 'Everywhere ' || number, 'x', repeat('0', 64)
    from rag.collections, generate_series(1, 2000) as number where org_id = %(org)s;
    insert into rag.chunks (org_id, document_id, collection_id, ordinal, content, span_start,
      span_end, token_count, source_type, embedding_model, embedding)
    select documents.org_id, documents.id, documents.collection_id, ordinal, 'x', 0, 1, 1, 'doc', %(model)s,
      array_fill(0.1, array[1536])
    from rag.documents, generate_series(0, 3) as ordinal where org_id = %(org)s and content = 'x'
      and title ~ '^Everywhere';
    insert into rag.title_entities (org_id, document_id, entity, collection_id, name, weight, sound, ending)
    select org_id, documents.id, entity, collection_id, title, weight, sound, reverse(sound)
    from rag.documents,
      lateral (values (rag.entity_key(title), 1), ('everywhere', 0.6)) as named (entity, weight),
      rag.phonetic_key(entity) as sound
    where org_id = %(org)s and title ~ '^Everywhere';
    insert into rag.mentions (org_id, document_id, ordinal, entity, collection_id, name, kind, surfaces,
      weight, sound, ending)
    select org_id, document_id, ordinal, entity, collection_id, entity, 'name', '{}', 0.5, sound,
      reverse(sound)
    from rag.chunks,
      lateral (values ('everywhere'), ('thing ' || left(document_id::text, 3))) as named (entity),
      rag.phonetic_key(entity) as sound
    where org_id = %(org)s and content = 'x'
    on conflict do nothing;
    insert into rag.relations (org_id, document_id, ordinal, subject, type, object, collection_id, confidence)
    select org_id, document_id, ordinal, 'everywhere', 'PART_OF', entity, collection_id, 0.9
    from rag.mentions where org_id = %(org)s and entity ~ '^thing';
"""
TABLES = {"title_entities", "mentions", "relations", "jobs", "chunks"}
BY_NAME = ("title_entities_by_entity", "mentions_by_entity")
ALIASES = ("relations_aliases_by_subject", "relations_aliases_by_object")
BY_SOUND = ("title_entities_by_sound", "title_entities_by_ending", "mentions_by_sound", "mentions_by_ending")
Crowd = tuple[World, Actor, Actor]


@pytest.fixture(scope="module")
def crowd(stack: Stack) -> Iterator[Crowd]:
    """A user of an org with a few documents, and one of an org where one name is in every document."""
    database = own_database(stack, "reached")
    world = World(stack, database)
    ann, bob = world.user(world.org("small")), world.user(world.org("large"))
    owned = NamedChunk("x", ["Everywhere", "Kestrel"], [("Billing", "OWNED_BY", "Kestrel")])
    naming.put(world, ann, "Billing", owned)
    naming.put(world, ann, "Kestrel", NamedChunk("x", ["Oslo"]))
    naming.put(world, bob, "Heron", NamedChunk("y", ["Everywhere"], [("Heron", "PART_OF", "Everywhere")]))
    assert bob.org
    with psycopg.connect(stack.database_url("supabase_admin", database)) as connection:
        # Of vectors that are all the same.
        connection.execute("drop index rag.chunks_by_embedding_1536")
        for statement in CROWD.split(";")[:-1]:
            connection.execute(statement.encode(), {"org": bob.org.id, "model": MODEL})
    world.sql("vacuum analyze rag.chunks, rag.documents, rag.title_entities, rag.mentions, rag.relations")
    yield world, ann, bob
    world.close()
    migrations.drop_database(stack.postgres, database)


def assert_uses(result: Counter[str], *indexes: str) -> None:
    assert set(indexes) <= set(result), result
    assert not TABLES & set(result), result


def rows_read(world: World, call: Callable[[], Any]) -> Counter[str]:
    """How many rows the call took of each of the graph's tables, by index or by scanning."""
    read = (
        "select relname, coalesce(idx_tup_fetch, 0) + seq_tup_read + coalesce((select sum(idx_tup_read) "
        "from pg_stat_user_indexes as by where by.relid = tables.relid), 0) "
        "from pg_stat_user_tables as tables where schemaname = 'rag'"
    )

    def counted() -> Counter[str]:
        world.sql("select pg_stat_force_next_flush()")
        return Counter({name: int(count) for name, count in world.sql(read)})

    before = counted()
    call()
    return counted() - before


def graph(world: World, actor: Actor, question: str, **arguments: Any) -> Callable[[], Any]:
    return lambda: naming.graph(world, actor, question, mode="keyword", query_vector=None, **arguments)


@pytest.mark.parametrize("who", ["small", "large"])
def test_names_and_their_aliases_use_indexes(crowd: Crowd, who: str):
    world, ann, bob = crowd
    result = uses(world, lambda: naming.link(world, ann if who == "small" else bob, "where is everywhere"))
    assert_uses(result, *BY_NAME, *ALIASES)


def test_misspelled_names_use_the_phonetic_indexes(crowd: Crowd):
    world, _, bob = crowd
    linked: dict[str, float] = {}
    assert_uses(uses(world, lambda: linked.update(naming.link(world, bob, "Where is Hieron?"))), *BY_SOUND)
    assert set(linked) == {"heron"}


@pytest.mark.parametrize("filters", [{}, {"source_type": "doc"}, {"metadata": {"a": 1}}], ids=str)
@pytest.mark.parametrize("who", ["small", "large"])
def test_no_query_of_any_caller_scans_a_table(crowd: Crowd, who: str, filters: dict[str, Any]):
    world, ann, bob = crowd
    actor = ann if who == "small" else bob
    assert_uses(uses(world, graph(world, actor, "Everywhere, Heron and Kestral", filters=filters)), *BY_NAME)


QUESTIONS = ["Everywhere", "Where is Everywhere, and who owns Heron?", "everywhere " * 60, "Evrywhere"]


@pytest.mark.parametrize("question", QUESTIONS, ids=len)
def test_a_name_in_every_document_reads_a_bounded_part(crowd: Crowd, question: str):
    """It has twelve rows a document."""
    world, _, bob = crowd
    ((rows,),) = world.sql("select count(*) from rag.mentions where entity = 'everywhere'")
    assert rows > 8000
    linked: dict[str, float] = {}
    result = rows_read(world, lambda: linked.update(naming.link(world, bob, question)))
    assert "everywhere" in linked
    assert sum(result[table] for table in TABLES) < 2500, result
    for hops in (1, 2):
        result = rows_read(world, graph(world, bob, question, hops=hops))
        assert sum(result[table] for table in TABLES) < 6000, result


def test_the_settings_raise_the_bound(crowd: Crowd):
    world, _, bob = crowd
    read = []
    for most in (10, 10_000):
        with passages.deployed_with(world, mentions_read=most):
            read.append(rows_read(world, graph(world, bob, "Everywhere", hops=1))["mentions"])
    assert read[0] < 500
    assert read[1] > 8000


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_a_document_s_graph_reads_a_bounded_part(crowd: Crowd, hops: int):
    world, _, bob = crowd
    ((document_id,),) = world.sql("select id::text from rag.documents where title = 'Everywhere 7'")
    statement = "select public.rag_graph_of(%s, array[%s]::uuid[], null, %s)"

    def around() -> None:
        world.as_user(bob, statement, bob.org and bob.org.id, document_id, hops)

    by_ends = ("relations_by_subject", "relations_by_object") if hops else ("relations_pkey",)
    assert_uses(uses(world, around), *by_ends, *BY_NAME)
    result = rows_read(world, around)
    assert sum(result[table] for table in TABLES) < 6000, result


def test_the_names_of_the_only_org_are_looked_up_by_index(crowd: Crowd):
    """The planner takes each name for frequent. The last test of the module: it deletes the other org."""
    world, ann, bob = crowd
    assert ann.org
    world.sql("delete from rag.collections where org_id = %s", ann.org.id)
    world.sql("delete from rag.orgs where id = %s", ann.org.id)
    world.sql("vacuum analyze rag.title_entities, rag.mentions")
    # Hundreds of runs of words are no name.
    result = rows_read(world, lambda: naming.link(world, bob, "where is " * 29 + "everywhere"))
    assert sum(result[table] for table in TABLES) < 2500, result
