"""rag_similar: items like a text, a chunk or a document, and never the subject."""

from itertools import product
from typing import Any

import numpy as np
import pytest

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


def test_a_document_of_many_equal_chunks_does_not_hide_the_others(
    world: World, people: People, subtests: pytest.Subtests
):
    """More of them than the index ever keeps in sight, and more than are fetched at first."""
    subject = passages.put(world, people.ann, "x", vectors=[vector(1)])
    passages.put(world, people.ann, *["x"] * 450, vectors=[vector(1)] * 450)
    others = {passages.put(world, people.ann, "x", vectors=[vector(seed)]) for seed in (2, 3, 4)}
    passages.add_to_index(world)
    for exact_rows in (0, 10_000):
        with subtests.test(exact_rows=exact_rows), passages.deployed_with(world, exact_rows=exact_rows):
            rows = passages.similar(world, people.ann, document_id=subject, result="documents", top_k=100)
            assert {row["document_id"] for row in rows} > others
            assert len(rows) == 4


MODES = ["semantic", "keyword", "hybrid"]


def shelf(world: World, people: People) -> list[str]:
    """Ann's documents; the nearer to the first, the fewer of its words they have."""
    texts = ["pump valve motor", "pump valve", "pump", "valve", "boiler"]
    documents = []
    for number, text in enumerate(texts):
        near = [one + 0.1 * (5 - number) * other for one, other in zip(vector(1), vector(2), strict=True)]
        documents.append(passages.put(world, people.ann, text, "nothing", vectors=[near, vector(9)]))
    return documents


def test_a_subject_is_never_similar_to_itself_in_any_mode(
    world: World, people: People, subtests: pytest.Subtests
):
    first, second, *_ = documents = shelf(world, people)
    chunk_id = naming.chunk_ids(world, first)[0]
    for mode, result in product(MODES, ("chunks", "documents")):
        with subtests.test(mode=mode, result=result):
            request: dict[str, Any] = {"mode": mode, "result": result}
            rows = passages.similar(world, people.ann, document_id=first, **request)
            assert first not in {row["document_id"] for row in rows}
            assert mode == "semantic" or rows[0]["document_id"] == second
            rows = passages.similar(world, people.ann, chunk_id=chunk_id, top_k=100, **request)
            assert chunk_id not in ids(rows)
            assert {row["document_id"] for row in rows} <= set(documents)
            assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)


def test_similar_to_a_text_equals_a_search_for_it(world: World, people: People, subtests: pytest.Subtests):
    shelf(world, people)
    text, needle = "valve pump", vector(1)
    for mode in MODES:
        with subtests.test(mode=mode):
            request: dict[str, Any] = {"query_vector": needle, "mode": mode, "top_k": 6}
            results = passages.search(world, people.ann, text, **request)
            like = passages.similar(world, people.ann, query_text=text, **request)
            assert passages.untimed(like) == passages.untimed(results)


def test_the_result_has_as_many_documents_as_exist(world: World, people: People, subtests: pytest.Subtests):
    """One with hundreds of chunks, each of which is likest, leaves room for all the others."""
    flood = passages.put(world, people.ann, *["pump valve"] * 300, vectors=[vector(1)] * 300)
    others = {passages.put(world, people.ann, "pump", vectors=[vector(seed)]) for seed in (2, 3, 4)}

    def assert_all(mode: str, **subject: Any) -> None:
        request: dict[str, Any] = {"result": "documents", "mode": mode, "top_k": 4, **subject}
        rows = passages.similar(world, people.ann, **request)
        assert {row["document_id"] for row in rows} == others | {flood}
        assert len(rows) == 4

    for mode in MODES:
        with subtests.test(mode=mode, subject="text"):
            assert_all(mode, query_text="pump valve", query_vector=vector(1))
    # The text has as many documents that are like it; the two other subjects are one more.
    first = passages.put(world, people.ann, "pump valve", vectors=[vector(1)])
    (chunk_id,) = naming.chunk_ids(world, first)
    for mode in MODES:
        with subtests.test(mode=mode, subject="chunk"):
            assert_all(mode, chunk_id=chunk_id)
        with subtests.test(mode=mode, subject="document"):
            assert_all(mode, document_id=first)


def test_a_preferred_type_comes_first_among_equals(world: World, people: People, subtests: pytest.Subtests):
    first = passages.put(world, people.ann, "pump", vectors=[vector(1)])
    for source_type in ("a", "b", "c"):
        passages.put(world, people.ann, "pump", vectors=[vector(1)], source_type=source_type)
    for mode, result, expected in product(MODES, ("chunks", "documents"), ("a", "b", "c")):
        with subtests.test(mode=mode, result=result, wanted=expected):
            request: dict[str, Any] = {"mode": mode, "result": result, "prefer": [expected], "top_k": 1}
            (row,) = passages.similar(world, people.ann, document_id=first, **request)
            assert row["source_type"] == expected


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


ERRORS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 400, "invalid_subject"),
    ({"chunk_id": NOBODYS, "document_id": NOBODYS}, 400, "invalid_subject"),
    ({"chunk_id": NOBODYS, "result": "words"}, 400, "invalid_result"),
    ({"chunk_id": NOBODYS, "result": None}, 400, "invalid_result"),
    ({"chunk_id": NOBODYS, "top_k": 0}, 400, "invalid_top_k"),
    ({"chunk_id": NOBODYS, "top_k": None}, 400, "invalid_top_k"),
    ({"chunk_id": NOBODYS, "top_k": 301}, 400, "invalid_top_k"),
    ({"chunk_id": NOBODYS, "filters": []}, 400, "invalid_filters"),
    ({"chunk_id": NOBODYS, "filters": {"labels": ["x"] * 101}}, 400, "invalid_filters"),
    ({"chunk_id": NOBODYS, "prefer": ["x"] * 101}, 400, "invalid_prefer"),
    ({"chunk_id": NOBODYS, "query_text": "x"}, 400, "invalid_subject"),
    ({"document_id": NOBODYS, "query_vector": vector(1)}, 400, "invalid_subject"),
    ({"query_text": "x"}, 400, "missing_vector"),
    ({"query_text": "x", "mode": "hybrid"}, 400, "missing_vector"),
    ({"query_vector": vector(1), "mode": "hybrid"}, 400, "missing_text"),
    ({"query_text": "x" * 10_001, "mode": "keyword"}, 400, "text_too_long"),
    ({"query_text": "x", "mode": "hierarchical"}, 400, "invalid_mode"),
    ({"chunk_id": NOBODYS, "mode": None}, 400, "invalid_mode"),
    ({"document_id": NOBODYS, "mode": "keyword"}, 404, "subject_not_found"),
    ({"chunk_id": NOBODYS}, 404, "subject_not_found"),
    ({"document_id": NOBODYS}, 404, "subject_not_found"),
]


def test_an_invalid_argument_is_a_typed_error(people: People, subtests: pytest.Subtests):
    people.ann.put([vector(1)])
    for arguments, status, detail in ERRORS:
        with subtests.test(arguments=str(arguments)[:60], detail=detail):
            answer = people.ann.rpc("rag_similar", arguments)
            error = answer.json()
            assert (answer.status_code, error["code"], error["details"]) == (status, f"PT{status}", detail)
