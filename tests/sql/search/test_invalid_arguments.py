"""Invalid arguments of the searches in SQL: each is a typed error, whose detail names the argument."""

from typing import Any

import pytest

from tests.actors import NOBODYS, vector
from tests.conftest import People

VECTOR: dict[str, Any] = {"query_vector": vector(1)}
# Valid arguments of each function.
FUNCTIONS: dict[str, dict[str, Any]] = {
    "rag_match": VECTOR,
    "rag_search": {"query_text": "x", "mode": "hybrid", **VECTOR},
    "rag_judged_search": {"query_text": "x", **VECTOR},
    "rag_graph_search": {"query_text": "x", **VECTOR},
    "rag_similar": {"chunk_id": NOBODYS},
    "rag_graph_of": {"document_ids": [NOBODYS]},
}
BY_TEXT = "rag_search rag_judged_search rag_graph_search"
BY_VECTOR = f"rag_match {BY_TEXT}"
PAGES = f"{BY_VECTOR} rag_similar"
NO_VECTOR, OF_TEXT = {"query_vector": None}, {"chunk_id": None, "query_text": "x"}
TOO_MANY_LABELS: dict[str, Any] = {"filters": {"labels": ["x"] * 101}}
TOO_MANY_COLLECTIONS: dict[str, Any] = {"filters": {"collection_ids": [NOBODYS] * 101}}
# The detail, the functions, and the arguments that each function refuses with it.
ERRORS: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("invalid_top_k", PAGES, [{"top_k": top_k} for top_k in (0, -1, 301, 2_147_483_647, None)]),
    ("invalid_top_k", "rag_judged_search", [{"judged_top_k": 301}]),
    ("invalid_filters", PAGES, [{"filters": [1]}, TOO_MANY_LABELS, TOO_MANY_COLLECTIONS]),
    ("invalid_prefer", f"{BY_TEXT} rag_similar", [{"prefer": ["x"] * 101}]),
    ("wrong_dimensions", BY_VECTOR, [{"query_vector": [1.0] * 3}]),
    ("zero_vector", BY_VECTOR, [{"query_vector": [0.0] * 1536}]),
    ("invalid_mode", "rag_search rag_graph_search", [{"mode": mode} for mode in ("fuzzy", None, "")]),
    ("invalid_mode", "rag_judged_search", [{"mode": "graph"}]),
    ("missing_vector", BY_TEXT, [NO_VECTOR | {"mode": "semantic"}]),
    # A hybrid search in rag_search without a vector is one by keywords.
    ("missing_vector", "rag_judged_search rag_graph_search", [NO_VECTOR, NO_VECTOR | {"mode": "hybrid"}]),
    ("missing_vector", "rag_graph_search",
     [NO_VECTOR | {"mode": "hierarchical"}, NO_VECTOR | {"mode": "keyword", "judged_top_k": 10}]),
    ("missing_text", BY_TEXT,
     [{"mode": mode, "query_text": text} for mode in ("keyword", "hybrid") for text in ("", None)]),
    ("missing_text", "rag_graph_search",
     [{"mode": mode, "query_text": ""} for mode in ("graph", "semantic", "hierarchical")]),
    ("text_too_long", BY_TEXT, [{"query_text": "x" * 10_001}]),
    ("invalid_expand_context", BY_TEXT, [{"expand_context": chunks} for chunks in (-1, 11, None)]),
    ("invalid_half_life", BY_TEXT,
     [{"half_life_days": days} for days in (0, -1, 100_001, "NaN", "Infinity")]),
    ("invalid_hops", "rag_graph_search", [{"hops": hops} for hops in (0, 3, -1, None)]),
    ("invalid_hops", "rag_graph_of", [{"hops": hops} for hops in (-1, 3, None)]),
    ("invalid_ids", "rag_graph_of", [{"document_ids": [NOBODYS] * 101}, {"document_ids": None}]),
    ("invalid_result", "rag_similar", [{"result": "words"}, {"result": None}]),
    ("invalid_mode", "rag_similar", [{"mode": None}, {**OF_TEXT, "mode": "hierarchical"}]),
    ("invalid_subject", "rag_similar",
     [{"chunk_id": None}, {"document_id": NOBODYS}, {"query_text": "x"}, VECTOR]),
    ("missing_vector", "rag_similar", [{**OF_TEXT, "mode": mode} for mode in ("semantic", "hybrid")]),
    ("missing_text", "rag_similar", [{"chunk_id": None, "mode": "hybrid", **VECTOR}]),
    ("text_too_long", "rag_similar", [{**OF_TEXT, "query_text": "x" * 10_001, "mode": "keyword"}]),
]  # fmt: skip


def test_an_invalid_argument_is_a_typed_error(shared_people: People, subtests: pytest.Subtests):
    for detail, functions, cases in ERRORS:
        for function in functions.split():
            org = {"org_id": shared_people.acme.id} if function == "rag_graph_of" else {}
            for wrong in cases:
                with subtests.test(function=function, detail=detail, wrong=str(wrong)[:60]):
                    answer = shared_people.ann.rpc(function, {**FUNCTIONS[function], **org, **wrong})
                    error = answer.json()
                    assert (answer.status_code, error["code"], error["details"]) == (400, "PT400", detail)
