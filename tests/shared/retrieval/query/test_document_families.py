"""Families of documents, told by anybody's question."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shared.ingestion.filter_fields import Fields
from shared.retrieval.query.document_families import KINDS, Family, family_of

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
    ("open issues of checkout", Family.TICKETS, "open issues"),
    ("issue 4821", Family.TICKETS, "issue 4821"),
    ("user stories about billing", Family.TICKETS, "user stories"),
    ("which issue is the story blocked by", Family.TICKETS, "issue"),
    ("which function is retry_count in", Family.CODE, "function"),
    ("the class BillingService", Family.CODE, "class"),
    ("a method of the parser module", Family.CODE, "method"),
    ("what did he say on the call", Family.MESSAGES, "say"),
    ("slack message from Ann in the thread", Family.MESSAGES, "slack"),
    ("it was unavailable and an alert came", Family.INCIDENTS, "unavailable"),
    ("what was decided at the meeting", Family.SUMMARIES, "decided"),
    ("owner's manual, the instructions", Family.DOCS, "manual"),
    ("deployment documentation", Family.DOCS, "documentation"),
    ("what is the vacation policy", Family.DOCS, "policy"),
]
SILENT = (
    "", "kettle", "error codes of the API", "status code 404", "class action", "issue a refund",
    "postal code",
    "incident_id", "commit to the plan", "thread pool size", "ticketing.py", "#bug", "payment method",
)  # fmt: skip


# Ordinary words, that a family has too.
ORDINARY = """
first class travel | yoga class | a discount code for partners | promo code | door code | wifi code
area code | tax code | gift code | vault code | error code E-42 | the code of the vault door
job function | function room | branch office | branch manager of the branch office | diff between plans
method of shipping | PR agency | repository of knowledge | module 3 of the training | compile a list
merged company | what is the code | health issue | users with health issues reported
issue refund to customer | success story | customer stories | bug spray | task force | broke even in 2023
the window broke | unavailable | parental leave | on-call pay | alerts on my phone | call center number
conference call | what did the CEO say | email address of HR | email signature | thread count
slack in the schedule | 10 minutes of exercise | wait 5 minutes of inactivity | summary judgment
manual labor | manual approval | what is manual approval | spec ops | what is the kettle
how do I reset my password | how to boil water | how do I get manual approval | minutes | a story
the issue
"""


def test_an_ordinary_word_alone_indicates_no_kind(subtests: pytest.Subtests):
    for question in [text.strip() for line in ORDINARY.strip().splitlines() for text in line.split("|")]:
        with subtests.test(question=question):
            assert family_of(question) is None


def test_a_question_s_words_indicate_the_family(subtests: pytest.Subtests):
    for question, family, word in TOLD:
        with subtests.test(question=question):
            assert family_of(question) == (family, word)


def test_words_in_another_sense_indicate_no_kind(subtests: pytest.Subtests):
    for question in SILENT:
        with subtests.test(question=question):
            assert family_of(question) is None


def test_the_strongest_evidence_wins_over_the_first():
    assert family_of("a document on tickets in the jira backlog") == (Family.TICKETS, "tickets")


def test_repeated_evidence_counts_once():
    assert family_of("docs docs docs on incidents and outages") == (Family.INCIDENTS, "incidents")


def test_ties_are_resolved_by_the_order_of_the_families():
    one = family_of("incident ticket")
    assert one == family_of("ticket incident") == (Family.INCIDENTS, "incident")


def test_no_kind_is_in_two_families():
    kinds = list(chain.from_iterable(KINDS.values()))
    assert set(KINDS) == set(Family)
    assert len(kinds) == len(set(kinds))


def test_every_kind_is_a_valid_document_kind():
    for kind in chain.from_iterable(KINDS.values()):
        assert Fields.of({"source_type": kind}).source_type == kind


@given(some.text())
def test_the_matched_word_is_in_the_question(text: str):
    family = family_of(text)
    if family:
        assert set(family[1].split()) <= set(text.split()) or family[1] in text
