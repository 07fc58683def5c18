"""Models with their own number of dimensions: storage, index, refused vectors."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from local.stack import Stack
from local.tools import migrations
from shared.documents.snapshots.jsonl import to_database
from tests.actors import MODEL, Actor, World, vector
from tests.databases import own_database
from tests.sql import passages

SIZES = {"tiny": 256, "small": 384, "large": 3072}
# Chunks of each model.
CHUNKS = 60


@pytest.fixture(scope="module")
def sized(stack: Stack) -> Iterator[tuple[World, Actor]]:
    """A member whose org has chunks of three models with sizes of their own and of one without, in a database
    of its own."""
    database = own_database(stack, "sized")
    world = World(stack, database)
    ann = world.user(world.org())
    world.sql("update rag.settings set other_embedding_models = %s", [MODEL, *SIZES])
    for model, size in SIZES.items():
        world.sql("select rag.set_dimensions(%s, %s)", model, size)
    for model in (MODEL, *SIZES):
        texts = [f"{model} {number}" for number in range(CHUNKS)]
        vectors = [embedding(model, number) for number in range(CHUNKS)]
        passages.put(world, ann, *texts, vectors=vectors, embedding_model=model, lang="en")
    passages.add_to_index(world)
    world.sql("vacuum analyze rag.chunks")
    yield world, ann
    world.close()
    migrations.drop_database(stack.postgres, database)


def embedding(model: str, seed: int) -> list[float]:
    """As the model returns it: of the size that was set, and of few directions, so that an HNSW index finds
    neighbours."""
    values = vector(seed, 16)
    size = SIZES.get(model, len(values))
    return [*values, *[0.0] * (size - len(values))][:size]


def search(world: World, member: Actor, model: str, needle: Sequence[float]) -> list[tuple[str, bool]]:
    rows = passages.match(world, member, needle, 10, model=model)
    return [(row["content"], row["exact"]) for row in rows]


def scans(world: World, model: str) -> int:
    world.sql("select pg_stat_force_next_flush()")
    index = f"chunks_by_embedding_{SIZES.get(model, 1536)}"
    ((count,),) = world.sql("select idx_scan from pg_stat_user_indexes where indexrelname = %s", index)
    return int(count)


def test_an_embedding_takes_the_space_of_its_dimensions(sized: tuple[World, Actor]):
    world, _ = sized
    rows = world.sql(
        "select embedding_model, extensions.vector_dims(embedding), max(pg_column_size(embedding)), count(*) "
        "from rag.chunks group by 1, 2"
    )
    expected = {(model, size, 8 + 2 * size, CHUNKS) for model, size in {**SIZES, MODEL: 1536}.items()}
    assert set(rows) == expected


@pytest.mark.parametrize("model", [MODEL, *SIZES])
@pytest.mark.parametrize("filters", [{}, {"lang": "en"}], ids=str)
def test_each_model_is_searched_exactly_and_by_its_own_index(
    sized: tuple[World, Actor], model: str, filters: dict[str, Any]
):
    world, ann = sized
    needle = embedding(model, 1000)
    exact = search(world, ann, model, needle)
    assert len(exact) == 10
    assert all(content.startswith(f"{model} ") and is_exact for content, is_exact in exact)
    before = scans(world, model)
    with passages.deployed_with(world, exact_rows=0):
        rows = passages.match(world, ann, needle, 10, model=model, **filters)
    assert [row["content"] for row in rows] == [content for content, _ in exact]
    assert not any(row["exact"] for row in rows)
    assert scans(world, model) > before


@pytest.mark.parametrize("model", ["tiny", "small"])
def test_zeros_after_the_dimensions_are_left_out(sized: tuple[World, Actor], model: str):
    world, ann = sized
    needle = embedding(model, 1000)
    padded = [*needle, *[0.0] * (1536 - len(needle))]
    assert search(world, ann, model, padded) == search(world, ann, model, needle)


@pytest.mark.parametrize("model", ["tiny", "large"])
@pytest.mark.parametrize(
    "function", ["rag_match", "rag_search", "rag_similar", "rag_graph_search", "rag_put_documents"]
)
def test_another_number_of_dimensions_is_refused(sized: tuple[World, Actor], model: str, function: str):
    world, ann = sized
    size = SIZES.get(model, 1536)
    text: dict[str, Any] = {} if function == "rag_match" else {"query_text": "x", "mode": "hybrid"}

    def call(wrong: list[float]) -> object:
        if function == "rag_put_documents":
            return passages.put(world, ann, "x", vectors=[wrong], embedding_model=model)
        return passages.call(world, ann, function, query_vector=wrong, filters={"model": model}, **text)

    for wrong in ([0.1] * (size - 1), [0.1] * (size + 1), [*[0.0] * size, 1.0]):
        with pytest.raises(psycopg.Error, match=f"must have {size} dimensions, not {len(wrong)}"):
            call(wrong)


@pytest.mark.parametrize("model", [MODEL, *SIZES])
def test_what_resembles_a_stored_document_is_found_in_its_model(sized: tuple[World, Actor], model: str):
    world, ann = sized
    with passages.deployed_with(world, embedding_model=model):
        ((subject,),) = world.sql("select id::text from rag.chunks where content = %s", f"{model} 7")
        rows = passages.call(world, ann, "rag_similar", chunk_id=subject, top_k=5)
    assert len(rows) == 5
    assert all(row["content"].startswith(f"{model} ") for row in rows)


def test_a_number_is_set_before_the_first_embedding(sized: tuple[World, Actor]):
    world, ann = sized
    for model, size in (("small", 768), (MODEL, 384)):
        with pytest.raises(psycopg.Error, match=f"There are embeddings of {model} with another number"):
            world.sql("select rag.set_dimensions(%s, %s)", model, size)
    # The same number again changes nothing.
    world.sql("select rag.set_dimensions('small', 384)")
    assert world.sql("select embedding_dimensions from rag.settings") == [(SIZES,)]
    for invalid in (255, 3073, 0, -1, None):
        with pytest.raises(psycopg.errors.CheckViolation):
            world.sql("select rag.set_dimensions('next', %s::integer)", invalid)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.as_user(ann, "select rag.set_dimensions('next', 384)")


@pytest.mark.parametrize("model", [MODEL, *SIZES])
def test_a_snapshot_keeps_every_value(sized: tuple[World, Actor], model: str):
    world, ann = sized
    rows = world.sql(
        "select embedding::text, rag.snapshot_chunk(chunks) ->> 'embedding' from rag.chunks as chunks "
        "where embedding_model = %s and content like '%% 7'", model,
    )  # fmt: skip
    ((stored, saved),) = rows
    loaded = json.loads(to_database(saved))
    passages.put(world, ann, "loaded", vectors=[loaded], embedding_model=model)
    again = world.sql(
        "delete from rag.chunks where embedding_model = %s and content = 'loaded' returning embedding::text",
        model,
    )
    assert again == [(stored,)]
