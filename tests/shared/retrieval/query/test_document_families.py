"""Kinds of documents, recognized in questions."""

from itertools import chain

from shared.ingestion.filter_fields import fields_of
from shared.retrieval.query.document_families import KINDS, Family, family_of

QUESTIONS = [
    ("billing incidents", Family.INCIDENTS, "incidents"),
    ("who owns the billing service and related incidents?", Family.INCIDENTS, "incidents"),
    ("root cause of the crash", Family.INCIDENTS, "root cause"),
    ("open jira tickets for checkout", Family.TICKETS, "jira"),
    ("open issues of checkout", Family.TICKETS, "open issues"),
    ("pull requests about retries", Family.CODE, "pull requests"),
    ("stack trace of the worker", Family.CODE, "stack trace"),
    ("e-mail from Bob", Family.MESSAGES, "e-mail from"),
    ("what did Ann say in Slack", Family.MESSAGES, "Slack"),
    ("summarize the last sprint", Family.SUMMARIES, "summarize"),
    ("minutes of the board meeting, a summary", Family.SUMMARIES, "summary"),
    ("deployment documentation", Family.DOCS, "documentation"),
]
SILENT = (
    "", "kettle", "error codes of the API", "status code 404", "class action", "issue a refund",
    "incident_id", "thread pool size", "ticketing.py", "#ticket", "email address of HR", "error message",
    "success story", "manual labor", "10 minutes of exercise", "branch manager of the branch office",
)  # fmt: skip


def test_a_question_s_words_indicate_the_family():
    assert [(question, *(family_of(question) or ())) for question, _, _ in QUESTIONS] == QUESTIONS


def test_words_in_another_sense_indicate_no_kind():
    assert [question for question in SILENT if family_of(question) is not None] == []


def test_the_order_of_the_families_decides_between_several():
    one = family_of("incident ticket")
    assert one == family_of("ticket incident") == (Family.INCIDENTS, "incident")


def test_no_kind_is_in_two_families():
    kinds = list(chain.from_iterable(KINDS.values()))
    assert set(KINDS) == set(Family)
    assert len(kinds) == len(set(kinds))


def test_every_kind_is_a_valid_document_kind():
    for kind in chain.from_iterable(KINDS.values()):
        assert fields_of({"source_type": kind})["source_type"] == kind
