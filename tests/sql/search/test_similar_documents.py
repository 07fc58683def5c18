"""rag_similar: items like a text, a chunk or a document, and never the subject."""

from itertools import product
from typing import Any

import numpy as np

from tests.actors import NOBODYS, World, vector
from tests.conftest import People
from tests.sql import naming, passages


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["chunk_id"] for row in rows]


def test_similar_to_a_chunk_equals_a_match_of_its_vector_without_itself(world: World, people: People):
    passages.put(world, people.ann, *map(str, range(10)))
    rows = passages.match(world, people.ann, vector(3))
    similar = passages.similar(world, people.ann, chunk_id=rows[0]["chunk_id"], top_k=100)
    assert ids(similar) == ids(rows)[1:]
    assert [row["score"] for row in similar] == [row["similarity"] for row in rows[1:]]


def test_similar_to_a_document_uses_the_mean_of_its_chunks(world: World, people: People):
    subject = passages.put(world, people.ann, "a", "b", vectors=[vector(1), vector(2)])
    passages.put(world, people.ann, *map(str, range(20)))
    mean = np.mean([vector(1), vector(2)], axis=0).tolist()
    expected = [row for row in passages.match(world, people.ann, mean) if row["document_id"] != subject]
    assert ids(passages.similar(world, people.ann, document_id=subject, top_k=100)) == ids(expected)


def test_a_document_of_many_equal_chunks_does_not_hide_the_others(world: World, people: People):
    """More of them than the index ever keeps in sight, and more than are fetched at first."""
    subject = passages.put(world, people.ann, "x", vectors=[vector(1)])
    passages.put(world, people.ann, *["x"] * 450, vectors=[vector(1)] * 450)
    others = {passages.put(world, people.ann, "x", vectors=[vector(seed)]) for seed in (2, 3, 4)}
    passages.add_to_index(world)
    for exact_rows in (0, 10_000):
        with passages.deployed_with(world, exact_rows=exact_rows):
            rows = passages.similar(world, people.ann, document_id=subject, result="documents", top_k=100)
        assert {row["document_id"] for row in rows} > others, exact_rows
        assert len(rows) == 4, exact_rows


MODES = ["semantic", "keyword", "hybrid"]


def shelf(world: World, people: People) -> list[str]:
    """Ann's documents; the nearer to the first, the fewer of its words they have."""
    texts = ["pump valve motor", "pump valve", "pump", "valve", "boiler"]
    documents = []
    for number, text in enumerate(texts):
        near = [one + 0.1 * (5 - number) * other for one, other in zip(vector(1), vector(2), strict=True)]
        documents.append(passages.put(world, people.ann, text, "nothing", vectors=[near, vector(9)]))
    return documents


def test_a_subject_is_never_similar_to_itself_in_any_mode(world: World, people: People):
    first, second, *_ = documents = shelf(world, people)
    chunk_id = naming.chunk_ids(world, first)[0]
    for mode, result in product(MODES, ("chunks", "documents")):
        request: dict[str, Any] = {"mode": mode, "result": result}
        rows = passages.similar(world, people.ann, document_id=first, **request)
        assert first not in {row["document_id"] for row in rows}, request
        assert mode == "semantic" or rows[0]["document_id"] == second, request
        rows = passages.similar(world, people.ann, chunk_id=chunk_id, top_k=100, **request)
        assert chunk_id not in ids(rows), request
        assert {row["document_id"] for row in rows} <= set(documents), request
        assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)


def test_similar_to_a_text_equals_a_search_for_it(world: World, people: People):
    shelf(world, people)
    for mode in MODES:
        request: dict[str, Any] = {"query_vector": vector(1), "mode": mode, "top_k": 6}
        results = passages.search(world, people.ann, "valve pump", **request)
        like = passages.similar(world, people.ann, query_text="valve pump", **request)
        assert passages.untimed(like) == passages.untimed(results), mode


def test_the_result_has_as_many_documents_as_exist(world: World, people: People):
    """One with a hundred chunks, each of which is likest, leaves room for all the others."""
    flood = passages.put(world, people.ann, *["pump valve"] * 100, vectors=[vector(1)] * 100)
    others = {passages.put(world, people.ann, "pump", vectors=[vector(seed)]) for seed in (2, 3, 4)}

    def assert_all(mode: str, **subject: Any) -> None:
        request: dict[str, Any] = {"result": "documents", "mode": mode, "top_k": 4, **subject}
        rows = passages.similar(world, people.ann, **request)
        assert {row["document_id"] for row in rows} == others | {flood}, request
        assert len(rows) == 4, request

    for mode in MODES:
        assert_all(mode, query_text="pump valve", query_vector=vector(1))
    # The text has as many documents that are like it; the two other subjects are one more.
    first = passages.put(world, people.ann, "pump valve", vectors=[vector(1)])
    (chunk_id,) = naming.chunk_ids(world, first)
    for mode in MODES:
        assert_all(mode, chunk_id=chunk_id)
        assert_all(mode, document_id=first)


def test_a_preferred_type_comes_first_among_equals(world: World, people: People):
    first = passages.put(world, people.ann, "pump", vectors=[vector(1)])
    for source_type in ("a", "b", "c"):
        passages.put(world, people.ann, "pump", vectors=[vector(1)], source_type=source_type)
    for mode, result, expected in product(MODES, ("chunks", "documents"), ("a", "b", "c")):
        request: dict[str, Any] = {"mode": mode, "result": result, "prefer": [expected], "top_k": 1}
        (row,) = passages.similar(world, people.ann, document_id=first, **request)
        assert row["source_type"] == expected, request


def test_an_excluded_chunk_takes_no_place_in_keyword_mode(world: World, people: People):
    passages.put(world, people.ann, *["pump"] * 50)
    rows = passages.similar(world, people.ann, query_text="pump", mode="keyword", top_k=100)
    assert len(rows) == 50
    request: dict[str, Any] = {"chunk_id": rows[0]["chunk_id"], "mode": "keyword"}
    assert len(passages.similar(world, people.ann, **request, top_k=49)) == 49
    assert len(passages.similar(world, people.ann, **request, top_k=100)) == 49


def test_a_long_document_is_compared_by_its_first_words(world: World, people: People):
    """And by no more than 10,000 characters."""
    subject = passages.put(world, people.ann, "pump " * 2000 + "valve")
    pump, _ = (passages.put(world, people.ann, text) for text in ("pump", "valve"))
    (row,) = passages.similar(world, people.ann, document_id=subject, mode="keyword")
    assert row["document_id"] == pump


def test_each_leg_reports_its_duration(world: World, people: People):
    first, *_ = shelf(world, people)
    for mode, nearest, words in (("semantic", True, False), ("keyword", False, True), ("hybrid", True, True)):
        row, *_ = passages.similar(world, people.ann, document_id=first, mode=mode, result="documents")
        assert (row["vector_ms"] is not None, row["lexical_ms"] is not None) == (nearest, words)


def test_the_subject_may_be_outside_the_filters_and_its_model_counts(world: World, people: People):
    cases: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]] = [
        ({"source_type": "email"}, {"source_type": "faq"}, {"source_type": "faq"}),
        ({"embedding_model": "another"}, {"embedding_model": "another"}, None),
    ]
    for of_subject, of_other, filters in cases:
        subject = passages.put(world, people.ann, "x", **of_subject)
        other = passages.put(world, people.ann, "x", **of_other)
        (row,) = passages.similar(world, people.ann, document_id=subject, filters=filters)
        assert row["document_id"] == other


def test_a_document_with_a_zero_mean_vector_is_refused(people: People):
    subject = people.ann.put([vector(1), [-value for value in vector(1)]])
    answer = people.ann.rpc("rag_similar", {"document_id": subject})
    assert (answer.status_code, answer.json()["details"]) == (400, "zero_vector")


def test_a_missing_subject_is_not_found(people: People):
    people.ann.put([vector(1)])
    for subject in (
        {"document_id": NOBODYS, "mode": "keyword"},
        {"chunk_id": NOBODYS},
        {"document_id": NOBODYS},
    ):
        answer = people.ann.rpc("rag_similar", subject)
        assert (answer.status_code, answer.json()["details"]) == (404, "subject_not_found")
