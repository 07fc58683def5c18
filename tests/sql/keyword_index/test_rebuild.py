"""The keyword index of an org, written anew in steps while searches go on."""

from collections.abc import Iterator

import pytest
from psycopg.types.json import Jsonb

from tests.actors import World
from tests.conftest import People
from tests.sql import passages
from tests.sql.keyword_index.test_index_triggers import TABLES, drift, new_document

FIRST = "00000000-0000-0000-0000-000000000000"
ROWS = (
    "select md5(string_agg(stored::text, '' order by stored::text)) from rag.{0} as stored where org_id = %s"
)


def steps(world: World, org_id: str) -> Iterator[str]:
    after = FIRST
    while last := world.sql("select rag.rebuild_keywords(%s, %s)", org_id, after)[0][0]:
        yield (after := last)


def titles(world: World, people: People, text: str) -> list[str]:
    return sorted(row["title"] for row in passages.search(world, people.ann, text))


def test_a_rebuilt_index_has_the_terms_of_its_documents_and_nothing_else(world: World, people: People):
    acme, bolt = people.acme.id, people.bolt.id
    member = world.user(people.bolt)
    for actor in (people.ann, member):
        documents = [new_document(f"common w{number}", title=f"{number}") for number in range(45)]
        world.as_user(actor, "select public.rag_put_documents('default', %s)", Jsonb(documents))
    passages.put(world, people.alf, "a private w1", title="private", private=True)
    world.sql(
        "update rag.document_terms set terms = terms[1:1], places = places[1:1] where org_id = %s", acme
    )
    world.sql(
        "insert into rag.document_terms (org_id, document_id, collection_id, embedding_model, config, "
        "chunks, length, terms, places) select org_id, gen_random_uuid(), collection_id, embedding_model, "
        "config, 1, 1, '{1}', '{1}' from rag.document_terms where org_id = %s limit 1", acme,
    )  # fmt: skip
    world.sql(
        "insert into rag.term_blocks (org_id, collection_id, segment, first, terms, ends, chunks, entries) "
        "select org_id, collection_id, gen_random_uuid(), first, terms, ends, chunks, entries "
        "from rag.term_blocks where org_id = %s", acme,
    )  # fmt: skip
    of_bolt = [world.sql(ROWS.format(table), bolt) for table in TABLES]
    assert drift(world, people)

    assert len(list(steps(world, acme))) == 1
    assert drift(world, people) == []
    assert titles(world, people, "w7") == ["7"]
    assert titles(world, people, "w1") == ["1"]
    assert len(passages.search(world, people.alf, "common", top_k=100)) == 45
    counted = "select count(*), count(distinct document_id) from rag.document_terms where org_id = %s"
    assert world.sql(counted, acme) == [(46, 46)]
    assert [world.sql(ROWS.format(table), bolt) for table in TABLES] == of_bolt


def test_each_step_has_about_a_thousand_chunks_and_searches_find_all_documents_between(
    world: World, people: People, subtests: pytest.Subtests
):
    for number in range(3):
        passages.put(world, people.ann, f"w{number}", title=f"{number}")
    world.sql(
        "insert into rag.chunks (org_id, document_id, collection_id, ordinal, content, span_start, span_end, "
        "token_count, source_type, embedding_model, embedding) "
        "select org_id, document_id, collection_id, number, 'common', 0, 6, 1, source_type, embedding_model, "
        "embedding from rag.chunks cross join generate_series(1, 600) as number where org_id = %s",
        people.acme.id,
    )
    found = {words: titles(world, people, words) for words in ("w0 w1 w2", "w0", "w2")}
    assert found["w0 w1 w2"] == ["0", "1", "2"]
    rebuilt = 0
    for _ in steps(world, people.acme.id):
        rebuilt += 1
        with subtests.test(step=rebuilt):
            assert {word: titles(world, people, word) for word in found} == found
            assert drift(world, people) == []
    assert rebuilt == 2
