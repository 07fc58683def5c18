"""Only a value of the kind that the question asks for answers it."""

import pytest

from shared.generation.asked_value import AskedValue, has_asked_value
from shared.generation.passage_statements import Statement, StatementKind, statements
from shared.generation.question_form import QuestionForm
from shared.models.embeddings import Embedder
from tests.shared.examples import match
from tests.shared.generation.test_extractive import answer

KINDS = {
    AskedValue.MONEY: [
        "What does the tower cost a month?", "How much money goes with it?", "What is the fee for a berth?",
        "How much is charged for a second key?", "Was kostet ein Ticket?", "Wie hoch ist die Gebühr?",
        "Combien coûte le billet ?", "¿Cuánto cuesta el billete?", "Hoeveel kost een kaartje?",
    ],
    AskedValue.PERCENTAGE: ["What percentage of the staff works at home?", "Wieviel Prozent kommen zu Fuß?"],
    AskedValue.VERSION: ["In which Kiln version did the icons change?", "Welche Version ist installiert?"],
    AskedValue.COUNT: ["How many people did the plague kill?", "Wie viele Tage Urlaub habe ich?"],
    AskedValue.ANY: ["When is it open?", "How long is it?", "How long does it take and what does it cost?"],
    None: [
        "What are the cost categories?", "What cost reductions were planned?", "What is new in version 2.9?",
        "How do I reduce costs?", "What is the size of version B?", "Who pays?",
    ],
}  # fmt: skip
# For each question a text with such a value, and one with another.
VALUES = {
    "What does the tower cost a month?": (
        "It is 90 euros.",
        "It is up 99.9 % of a month, since 2019.",
    ),
    "What is the fee for a berth?": ("Berths are free.", "On 19 December a berth was closed."),
    "What percentage of the staff works at home?": ("Half a percent does.", "Of the staff 40 work at home."),
    "In which Kiln version did the icons change?": ("They changed in v2.9.", "They changed on 2021-09-20."),
    "How many people did the plague kill?": ("About 7,000 died.", "The plague of the 1660s ended in 1666."),
}


def test_a_question_asks_for_a_kind_of_value(subtests: pytest.Subtests):
    for kind, questions in KINDS.items():
        for question in questions:
            with subtests.test(question=question):
                assert QuestionForm.of(question).value is kind


def test_a_value_of_another_kind_is_none(subtests: pytest.Subtests):
    for question, (right, wrong) in VALUES.items():
        with subtests.test(question=question):
            asked = QuestionForm.of(question).value
            assert asked
            for text, expected in ((right, True), (wrong, False)):
                statement = Statement(text, 0, len(text), "", StatementKind.SENTENCE)
                assert has_asked_value(statement, asked, question) is expected, text


def test_the_cell_of_a_price_needs_no_currency():
    rows = [*statements("| Berth | Fee |\n|---|---|\n| North | 90 |", "en", frozenset())]
    assert [row.kind for row in rows] == [StatementKind.ROW]
    assert has_asked_value(rows[0], AskedValue.MONEY, "What is the fee for the north berth?")


def test_a_sentence_with_another_kind_of_value_does_not_answer_directly(embedder: Embedder):
    uptime = "The Basalt tower service is available 99.9 % of each month."
    draft = answer(embedder, "What does the Basalt tower service cost each month?", match(uptime))
    assert draft.is_indirect
