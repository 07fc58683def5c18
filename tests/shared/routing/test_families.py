"""Families of documents, told by anybody's question."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shared.fields import Fields
from shared.routing.families import KINDS, Family, family_of

TOLD = [
    ("billing incidents", Family.INCIDENTS, "incidents"),
    ("who owns the billing service and related incidents?", Family.INCIDENTS, "incidents"),
    ("root cause of the crash", Family.INCIDENTS, "root cause"),
    ("was there a sev1 in checkout", Family.INCIDENTS, "sev1"),
    ("open jira tickets for checkout", Family.TICKETS, "jira"),
    ("bugs in the parser", Family.TICKETS, "bugs"),
    ("pull requests about retries", Family.CODE, "pull requests"),
    ("PRs about retries", Family.CODE, "PRs"),
    ("where is retry_count implemented", Family.CODE, "implemented"),
    ("stack trace of the worker", Family.CODE, "stack trace"),
    ("e-mail from Bob", Family.MESSAGES, "e-mail"),
    ("what did Ann say in Slack", Family.MESSAGES, "Slack"),
    ("summarize the last sprint", Family.SUMMARIES, "summarize"),
    ("minutes of the board meeting", Family.SUMMARIES, "minutes of"),
    ("TL;DR please", Family.SUMMARIES, "TL;DR"),
    ("how do I reset my password", Family.DOCS, "how do I"),
    ("deployment documentation", Family.DOCS, "documentation"),
    ("what is the vacation policy", Family.DOCS, "policy"),
]
SILENT = (
    "", "kettle", "error codes of the API", "status code 404", "class action", "issue a refund",
    "postal code",
    "incident_id", "commit to the plan", "thread pool size", "ticketing.py", "#bug", "payment method",
)  # fmt: skip


@pytest.mark.parametrize(("question", "family", "word"), TOLD)
def test_a_question_s_words_tell_the_family(question: str, family: Family, word: str):
    assert family_of(question) == (family, word)


@pytest.mark.parametrize("question", SILENT)
def test_words_of_something_else_tell_none(question: str):
    assert family_of(question) is None


def test_the_strongest_evidence_wins_over_the_first():
    assert family_of("a document on tickets in the jira backlog") == (Family.TICKETS, "tickets")


def test_said_twice_it_counts_once():
    assert family_of("docs docs docs on incidents and outages") == (Family.INCIDENTS, "incidents")


def test_ties_are_broken_by_the_order_of_the_families():
    one = family_of("incident ticket")
    assert one == family_of("ticket incident") == (Family.INCIDENTS, "incident")


def test_no_kind_is_of_two_families():
    kinds = list(chain.from_iterable(KINDS.values()))
    assert set(KINDS) == set(Family)
    assert len(kinds) == len(set(kinds))


def test_every_kind_may_be_a_document_s():
    for kind in chain.from_iterable(KINDS.values()):
        assert Fields.of({"source_type": kind}).source_type == kind


@given(some.text())
def test_whatever_is_asked_the_word_is_the_question_s(text: str):
    found = family_of(text)
    if found:
        assert set(found[1].split()) <= set(text.split()) or found[1] in text
