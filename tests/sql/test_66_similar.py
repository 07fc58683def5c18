"""rag_similar: what is like a chunk or a document, and never the subject."""

from typing import Any

import numpy as np
import pytest

from tests.actors import NOBODYS, World, vector
from tests.conftest import People
from tests.sql import passages


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["chunk_id"] for row in rows]


def test_what_is_like_a_chunk_is_what_its_vector_matches_without_itself(world: World, people: People):
    passages.put(world, people.ann, *map(str, range(10)))
    rows = passages.match(world, people.ann, vector(3))
    similar = passages.similar(world, people.ann, chunk_id=rows[0]["chunk_id"], top_k=100)
    assert ids(similar) == ids(rows)[1:]
    assert [row["score"] for row in similar] == [row["similarity"] for row in rows[1:]]


def test_what_is_like_a_document_is_like_its_chunks_on_average(world: World, people: People):
    subject = passages.put(world, people.ann, "a", "b", vectors=[vector(1), vector(2)])
    passages.put(world, people.ann, *map(str, range(20)))
    mean = np.mean([vector(1), vector(2)], axis=0).tolist()
    expected = [row for row in passages.match(world, people.ann, mean) if row["document_id"] != subject]
    assert ids(passages.similar(world, people.ann, document_id=subject, top_k=100)) == ids(expected)


def test_documents_come_once_each_by_their_best_chunk(world: World, people: People):
    subject = passages.put(world, people.ann, "x", vectors=[vector(1)])
    documents = [
        passages.put(world, people.ann, *("x" * 5), vectors=[vector(seed)] * 5) for seed in (1, 2, 3, 4)
    ]
    rows = passages.similar(world, people.ann, document_id=subject, result="documents", top_k=3)
    assert len({row["document_id"] for row in rows}) == len(rows) == 3
    assert rows[0]["document_id"] == documents[0]
    assert subject not in {row["document_id"] for row in rows}


@pytest.mark.parametrize("exact_rows", [0, 10000])
def test_one_document_of_many_equal_chunks_does_not_hide_the_others(
    world: World, people: People, exact_rows: int
):
    """More of them than the index ever keeps in sight, and more than are fetched at first."""
    subject = passages.put(world, people.ann, "x", vectors=[vector(1)])
    passages.put(world, people.ann, *["x"] * 450, vectors=[vector(1)] * 450)
    others = {passages.put(world, people.ann, "x", vectors=[vector(seed)]) for seed in (2, 3, 4)}
    with passages.deployed_with(world, exact_rows=exact_rows):
        rows = passages.similar(world, people.ann, document_id=subject, result="documents", top_k=100)
    assert {row["document_id"] for row in rows} > others
    assert len(rows) == 4


def test_the_subject_may_stand_outside_the_filters(world: World, people: People):
    subject = passages.put(world, people.ann, "x", source_type="email")
    inside = passages.put(world, people.ann, "x", source_type="faq")
    (row,) = passages.similar(world, people.ann, document_id=subject, filters={"source_type": "faq"})
    assert row["document_id"] == inside


def test_only_chunks_of_the_subject_s_model_are_like_it(world: World, people: People):
    subject = passages.put(world, people.ann, "x", embedding_model="another")
    passages.put(world, people.ann, "x")
    other = passages.put(world, people.ann, "x", embedding_model="another")
    (row,) = passages.similar(world, people.ann, document_id=subject)
    assert row["document_id"] == other


def test_a_document_whose_chunks_cancel_out_is_refused(people: People):
    subject = people.ann.put([vector(1), [-value for value in vector(1)]])
    answer = people.ann.rpc("rag_similar", {"document_id": subject})
    assert (answer.status_code, answer.json()["details"]) == (400, "zero_vector")


@pytest.mark.parametrize(
    ("arguments", "status", "detail"),
    [
        ({}, 400, "invalid_subject"),
        ({"chunk_id": NOBODYS, "document_id": NOBODYS}, 400, "invalid_subject"),
        ({"chunk_id": NOBODYS, "result": "words"}, 400, "invalid_result"),
        ({"chunk_id": NOBODYS, "result": None}, 400, "invalid_result"),
        ({"chunk_id": NOBODYS, "top_k": 0}, 400, "invalid_top_k"),
        ({"chunk_id": NOBODYS, "top_k": None}, 400, "invalid_top_k"),
        ({"chunk_id": NOBODYS, "top_k": 301}, 400, "invalid_top_k"),
        ({"chunk_id": NOBODYS, "filters": []}, 400, "invalid_filters"),
        ({"chunk_id": NOBODYS}, 404, "subject_not_found"),
        ({"document_id": NOBODYS}, 404, "subject_not_found"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_a_typed_error(
    people: People, arguments: dict[str, Any], status: int, detail: str
):
    people.ann.put([vector(1)])
    answer = people.ann.rpc("rag_similar", arguments)
    assert (answer.status_code, answer.json()["code"], answer.json()["details"]) == (
        status,
        f"PT{status}",
        detail,
    )
