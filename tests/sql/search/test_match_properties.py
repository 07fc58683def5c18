"""Every way of searching, held against a slow oracle over random libraries, people and filters."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.actors import MODEL, Actor, World, vector
from tests.sql import passages
from tests.sql.search_oracle import WORDS, Library, nearest, some_filters

PAGES = [1, 3, 10, 40, 100]


@pytest.fixture(scope="module")
def libraries(world: World) -> list[Library]:
    """For tests that only read."""
    return [Library(world, seed) for seed in range(2)]


def searches(
    library: Library, draw: random.Random, count: int
) -> Iterator[tuple[Actor, list[float], int, dict[str, Any]]]:
    """Who asks, with which vector, for how many, with which filters."""
    people = library.people
    collections = sorted({one.fields["collection_id"] for one in library.passages})
    for _ in range(count):
        actors = [people.ann, people.alf, people.ada, people.bob, people.kim, people.kim]
        person = draw.choice(actors)
        filters = some_filters(draw, people, collections)
        yield person, vector(draw.choice([1, 2, 1000, 1001])), draw.choice(PAGES), filters


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["chunk_id"] for row in rows]


def assert_a_list(rows: list[dict[str, Any]]) -> None:
    """Nothing twice, scores within 0 and 1, best first."""
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len(set(ids(rows))) == len(rows)


def test_a_match_has_the_oracle_s_first_rows_in_order(
    world: World, libraries: list[Library], subtests: pytest.Subtests
):
    for seed, library in enumerate(libraries):
        with subtests.test(seed=seed):
            draw = random.Random(100 + seed)  # noqa: S311  # not a secret
            for number, (person, needle, top_k, filters) in enumerate(searches(library, draw, 25)):
                left = library.left(person, filters)
                expected = nearest(needle, left)[:top_k]
                if number % 5 == 0:  # Some through PostgREST.
                    rows = person.match(needle, top_k, **{"model": MODEL, **filters})
                else:
                    rows = passages.match(world, person, needle, top_k, **filters)
                assert ids(rows) == expected, (filters, top_k)
                assert all(row["exact"] and row["considered"] == len(left) for row in rows)


def test_the_index_fills_every_page_after_filtering(
    world: World, libraries: list[Library], subtests: pytest.Subtests
):
    for seed, library in enumerate(libraries):
        with subtests.test(seed=seed):
            draw = random.Random(200 + seed)  # noqa: S311  # not a secret
            # Two thirds of the chunks are in the HNSW index, the others in its tail.
            world.sql("update rag.chunks set in_hnsw = get_byte(uuid_send(id), 15) %% 3 > 0")
            with passages.deployed_with(world, exact_rows=0):
                for person, needle, top_k, filters in searches(library, draw, 25):
                    left = library.left(person, filters)
                    rows = passages.match(world, person, needle, top_k, **filters)
                    assert len(rows) == min(top_k, len(left)), (filters, top_k)
                    assert set(ids(rows)) <= {one.chunk_id for one in left}
                    assert_a_list(rows)
                    if rows and rows[0]["exact"]:
                        assert ids(rows) == nearest(needle, left)[:top_k]


def test_a_keyword_page_has_every_chunk_with_the_words_up_to_its_size(
    world: World, libraries: list[Library], subtests: pytest.Subtests
):
    for seed, library in enumerate(libraries):
        with subtests.test(seed=seed):
            draw = random.Random(300 + seed)  # noqa: S311  # not a secret
            for person, _, top_k, filters in searches(library, draw, 25):
                words = draw.sample(WORDS, draw.randint(1, 3))
                left = library.left(person, filters)
                holding = {one.chunk_id for one in left if set(words) & set(one.text.split())}
                rows = passages.search(world, person, " ".join(words), top_k=top_k, filters=filters)
                assert set(ids(rows)) <= holding, (filters, words)
                assert len(rows) == min(top_k, len(holding)), (filters, words, top_k)
                assert_a_list(rows)


def test_other_modes_fill_every_page_after_filtering(
    world: World, libraries: list[Library], subtests: pytest.Subtests
):
    for seed, library in enumerate(libraries):
        with subtests.test(seed=seed):
            draw = random.Random(400 + seed)  # noqa: S311  # not a secret
            for person, needle, top_k, filters in searches(library, draw, 25):
                left = {one.chunk_id for one in library.left(person, filters)}
                arguments = {
                    "mode": draw.choice(["semantic", "hybrid", "hierarchical"]),
                    "half_life_days": draw.choice([None, 30]),
                    "expand_context": draw.choice([0, 2]),
                    "query_vector": needle,
                }
                words = " ".join(draw.sample([*WORDS, "unheard"], 2))
                rows = passages.search(world, person, words, top_k=top_k, filters=filters, **arguments)
                assert set(ids(rows)) <= left, (filters, arguments["mode"])
                assert len(rows) == min(top_k, len(left)), (filters, arguments["mode"], top_k)
                assert_a_list(rows)


def test_similar_results_fill_every_page_and_exclude_the_subject(
    world: World, libraries: list[Library], subtests: pytest.Subtests
):
    for seed, library in enumerate(libraries):
        with subtests.test(seed=seed):
            draw = random.Random(500 + seed)  # noqa: S311  # not a secret
            for person, _, top_k, filters in searches(library, draw, 15):
                visible = library.left(person, {})
                if not visible:
                    continue
                subject = draw.choice(visible)
                of_model = library.left(person, filters | {"model": MODEL})
                left = [one for one in of_model if one.document_id != subject.document_id]
                arguments: dict[str, Any] = {"top_k": top_k, "filters": filters}
                of_document = {**arguments, "document_id": subject.document_id}
                by_document = passages.similar(world, person, **of_document)
                assert len(by_document) == min(top_k, len(left))
                assert set(ids(by_document)) <= {one.chunk_id for one in left}
                by_result = passages.similar(world, person, **of_document, result="documents")
                documents = min(top_k, len({one.document_id for one in left}))
                assert len({row["document_id"] for row in by_result}) == len(by_result) == documents
                assert ids(by_result)[:1] == ids(by_document)[:1]
                by_chunk = passages.similar(world, person, **arguments, chunk_id=subject.chunk_id)
                assert subject.chunk_id not in ids(by_chunk)
                assert_a_list(by_document)
                assert_a_list(by_chunk)
