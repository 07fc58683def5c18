"""Filters of every kind, straight through PostgREST: what they find, and how wrong ones are refused."""

from typing import Any

import pytest

from tests.actors import MODEL, NOBODYS, Actor, vector
from tests.conftest import People

SHELF: dict[str, dict[str, Any]] = {
    "a call": {
        "source_type": "transcript", "lang": "en-GB", "occurred_at": "2026-01-01T00:00:00Z", "author": "ann",
        "origin": "phone", "state": "open", "labels": ["red", "blue"], "metadata": {"n": 1, "s": "1"},
    },
    "a mail": {
        "source_type": "email", "lang": "EN", "occurred_at": "2026-03-01T12:00:00+01:00", "author": "bob",
        "origin": "imap", "state": "closed", "labels": ["red"], "metadata": {"n": 1.0, "b": True},
    },
    "a page": {"lang": "english", "author": "Ann", "collection": "notes", "metadata": {"n": "1", "b": None}},
}  # fmt: skip


@pytest.fixture(scope="module")
def shelf(shared_people: People) -> Actor:
    for title, fields in SHELF.items():
        shared_people.ann.put([vector(1)], title=title, **fields)
    return shared_people.ann


FILTERS: list[tuple[dict[str, Any], str]] = [
    ({}, "call mail page"),
    ({"source_type": "email"}, "mail"),
    ({"source_types": ["email", "doc"]}, "mail page"),
    ({"source_types": []}, "call mail page"),
    ({"lang": "en"}, "call mail"),
    ({"lang": "en-G"}, ""),
    ({"date_from": "2026-01-01T00:00:00Z"}, "call mail"),
    ({"date_from": "2026-01-01T00:00:00Z", "date_to": "2026-03-01T11:00:00Z"}, "call mail"),
    ({"date_to": "2026-03-01T10:59:59Z"}, "call"),
    ({"authors": ["ann"]}, "call"),
    ({"authors": [None]}, ""),
    ({"origins": ["phone", "imap"]}, "call mail"),
    ({"states": ["open"]}, "call"),
    ({"labels": ["red"]}, "call mail"),
    ({"labels": ["blue", "green"]}, "call"),
    ({"metadata": {"n": 1}}, "call mail"),
    ({"metadata": {"n": "1"}}, "page"),
    ({"metadata": {"n": True}}, ""),
    ({"metadata": {"b": True}}, "mail"),
    ({"metadata": {"s": "1", "n": 2}}, ""),
    ({"labels": ["red"], "states": ["closed"], "source_types": ["email"]}, "mail"),
    # A kind of its own for each: an author is no label, and metadata is neither.
    ({"labels": ["ann"]}, ""),
    ({"metadata": {"author": "ann"}}, ""),
    ({"collection_id": NOBODYS}, ""),
    ({"org_id": NOBODYS}, ""),
    ({"model": "another"}, ""),
    ({"unheard": "of"}, "call mail page"),
]


def test_a_filter_matches_its_documents(shelf: Actor):
    for filters, entry in FILTERS:
        rows = shelf.match(vector(1), **{"model": MODEL, **filters})
        assert {row["title"] for row in rows} == {f"a {word}" for word in entry.split()}, filters


BAD_FILTERS: list[Any] = [
    [], "x", {"metadata": []}, {"org_id": "x"}, {"date_from": "x"}, {"authors": "ann"},
    {"collection_ids": ["x"]},
]  # fmt: skip


def test_a_malformed_filter_is_refused(shelf: Actor):
    for filters in BAD_FILTERS:
        answer = shelf.rpc("rag_match", {"query_vector": vector(1), "filters": filters})
        assert answer.status_code == 400, (filters, answer.text)
        if not isinstance(filters, dict) or "metadata" in filters:
            assert answer.json()["details"] == "invalid_filters"


def test_too_deep_metadata_filters_find_nothing_or_are_refused(shelf: Actor):
    """No metadata have more than 32 levels."""

    def nested(levels: int) -> dict[str, Any]:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return {"n": value}

    assert shelf.match(vector(1), metadata=nested(32)) == []
    answer = shelf.rpc("rag_match", {"query_vector": vector(1), "filters": {"metadata": nested(900)}})
    assert (answer.status_code, answer.json()["details"]) == (400, "unreadable_json")


def test_unknown_filters_are_named(shelf: Actor, subtests: pytest.Subtests):
    """In each row, and in a header, which an empty result has too, and which browsers may read."""
    direct = shelf.direct()
    unknown = {
        "orgid": shelf.org and shelf.org.id,
        "b\r\nX-Evil: 1": None,
        "Source Type": "doc",
        "z" * 200: 1,
    }
    names = ["Source?Type", "b??X-Evil??1", "orgid", "z" * 100]
    by_text = {"query_text": "x", "query_vector": vector(1)}
    for function, arguments in (
        ("rag_match", {"query_vector": vector(1)}),
        ("rag_search", by_text),
        ("rag_similar", by_text),
        ("rag_graph_search", by_text),
    ):
        operators = {"metadata": {"team": {"$nin": ["a"]}}}
        for known, is_empty in ((operators, False), ({"source_type": "none"}, True)):
            with subtests.test(function=function, is_empty=is_empty):
                answer = direct.rpc(function, {**arguments, "filters": {**known, **unknown}})
                assert answer.headers["x-rag-ignored-filters"].split(", ") == names
                assert "x-evil" not in answer.headers
                exposed = answer.headers["access-control-expose-headers"].lower()
                assert "x-rag-ignored-filters" in exposed
                body = answer.json()
                rows = body["matches"] if isinstance(body, dict) else body
                assert bool(rows) is not is_empty
                for one in [body] if isinstance(body, dict) else rows:
                    assert one["ignored_filters"] == names
        with subtests.test(function=function):
            answer = direct.rpc(function, {**arguments, "filters": operators})
            assert "x-rag-ignored-filters" not in answer.headers
            body = answer.json()
            for one in [body] if isinstance(body, dict) else body:
                assert one.get("ignored_filters") is None
