"""Attacks by what one member stores, against all others."""

import json
from typing import Any

import pytest

from tests.actors import put_arguments, vector
from tests.conftest import People


@pytest.mark.parametrize(
    "fields",
    [
        {"occurred_at": "infinity"},
        {"occurred_at": "-infinity"},
        {"occurred_at": "20000-01-01T00:00:00Z"},
        {"occurred_at": "0044-03-15 00:00:00+00 BC"},
        {"metadata": json.loads('{"a":' * 40 + "1" + "}" * 40)},
        {"metadata": {"number": 10**300}},
        {"metadata": {"blob": [f"{number:06}" for number in range(30_000)]}},
        {"uri": "javascript:alert(1)"},
        {"uri": "data:text/html,<script>alert(1)</script>"},
        {"title": "two\nlines"},
        {"title": "turned \u202e round"},
        {"title": "tagged \U000e0041"},
        {"source_type": "<b>"},
        {"lang": "!!"},
        {"content": "zero\u200bwidth"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_by_a_poisoned_document_put_straight_through_postgrest(people: People, fields: dict[str, Any]):
    """A member's document must not break, or deceive, the searches of everybody else in the org."""
    refused = people.ann.rpc("rag_put_document", put_arguments(people.acme, [vector(1)], **fields))
    assert refused.status_code == 400, refused.text
    assert people.alf.match(vector(1)) == []
    assert people.alf.search("anything").status_code == 200


def test_by_a_chunk_that_ends_behind_its_document(people: People):
    arguments = put_arguments(people.acme, [vector(1)])
    arguments["chunks"][0]["span_end"] = 5000
    refused = people.ann.rpc("rag_put_document", arguments)
    assert (refused.status_code, refused.json()["details"]) == (400, "span_outside")


def test_by_a_narrowing_claim_that_cannot_be_read(subtests: pytest.Subtests, people: People):
    """It counts for no org, and for no scope: a claim that narrows never fails open."""
    for claim in ["x", ["org"], 1, True, {"org": "x"}, {"org": ["x"]}, {"org": {}}]:
        with subtests.test(claim=claim):
            people.ann.put([vector(1)])
            arguments = {"query_vector": vector(1), "top_k": 5}
            answer = people.ann.rpc("rag_match", arguments, token=people.ann.token(rag=claim))
            if isinstance(claim, dict):
                assert (answer.status_code, answer.json()) == (200, [])
            else:
                assert (answer.status_code, answer.json()["details"]) == (403, "missing_scope")


def test_a_narrowing_claim_may_be_written_in_capitals(people: People):
    people.ann.put([vector(1)])
    token = people.ann.token(rag={"org": people.acme.id.upper()})
    arguments = {"query_vector": vector(1), "top_k": 5}
    assert len(people.ann.rpc("rag_match", arguments, token=token).json()) == 1
