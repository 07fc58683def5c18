"""What questions ask of the graph."""

import pytest

from shared.graph.query_relations import asks_about_connection, relation_types_in

ASKED = [
    ("Who owns the billing service?", ("OWNED_BY",)), ("who is responsible for checkout", ("OWNED_BY",)),
    ("Which services depend on PostgreSQL?", ("DEPENDS_ON",)),
    ("what does billing rely on", ("DEPENDS_ON",)),
    ("What caused INC-4821 and who fixed it?", ("CAUSED_BY", "FIXED_BY")),
    ("who does Marek report to", ("REPORTS_TO",)),
    ("Who is the director of Casablanca?", ("DIRECTED_BY",)), ("Alice Brown's mother", ("CHILD_OF",)),
    ("Who is her husband?", ("SPOUSE_OF",)),
    ("Where was the performer of Blue Sky born?", ("PERFORMED_BY", "BORN_IN")),
    ("Who is the grandfather of Alice?", ("GRANDCHILD_OF",)), ("Who employed Ann?", ("WORKS_FOR",)),
    ("What is the capital of France?", ("CAPITAL_OF",)), ("Which component is it?", ("PART_OF",)),
    ("Wem gehört Frostline?", ("OWNED_BY",)), ("De quoi dépend Facturo ?", ("DEPENDS_ON",)),
    ("who founded Halden", ("FOUNDED_BY",)), ("who leads the payments team", ("LED_BY",)),
    ("How do I reset the logger?", ()), ("what is the milk price for June 2026", ()),
    ("error codes of the API", ()),
    ("what's in part 3 of the manual", ()), ("", ()), ("kettle", ()),
    ("Which film came out first, A or B?", ()),
    ("What is it called in Germany?", ()), ("Which drugs are often used?", ()),
]  # fmt: skip


def test_a_question_asks_about_relations(subtests: pytest.Subtests):
    for question, expected in ASKED:
        with subtests.test(question=question):
            assert set(expected) <= set(relation_types_in(question))
            assert bool(expected) == bool(relation_types_in(question))


CONNECTIONS = [
    "What is the relationship between Rosa Keane and Halden?",
    "how is A related to B",
    "How are billing and ledger connected?",
    "what do Rosa and Marek have in common",
    "Zusammenhang zwischen Frostline und Halden",
    "quelle relation entre Facturo et Redis",
]


def test_a_question_asks_for_connections(subtests: pytest.Subtests):
    for question in CONNECTIONS:
        with subtests.test(question=question):
            assert asks_about_connection(question)


def test_a_question_asks_about_no_relations(subtests: pytest.Subtests):
    for question in ["How do I connect to the API?", "Who owns billing?", "", "related documents"]:
        with subtests.test(question=question):
            assert not asks_about_connection(question)
