"""Statements: their texts without Markdown, at their exact places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.generation.passage_statements import (
    StatementKind,
    begins_with_pronoun,
    statements,
    without_markup,
)
from shared.text.line_breaks import unwrapped
from tests.shared.examples import match

LINES = st.lists(
    st.sampled_from(
        ["# One", "| a | b |", "|---|---|", "| c **d** | | e |", "- [ ] item `x`", "3. third",
         "> It is quoted.", "Key: 5", "Other key: 6 kg", "From: me",
         "Ann: did it stop? It did stop there.", "", "```", "*", "_"]
    )
)  # fmt: skip


def texts_and_kinds(text: str, question: str = "") -> list[tuple[str, StatementKind]]:
    return [(item.text, item.kind) for item in statements(text, "en", frozenset(question.split()))]


@given(LINES.map("\n".join) | st.text(max_size=200))
def test_places_are_ordered_disjoint_and_within_a_paragraph(text: str):
    end = 0
    for item in statements(text, "en", frozenset()):
        assert end <= item.start < item.end <= len(text)
        assert "\n" not in unwrapped(text)[item.start : item.end]
        end = item.end


def test_marks_of_markdown_are_removed():
    cases = {
        "**Never** mix *acid* and __base__.": "Never mix acid and base.",
        "See [the guide](https://a.example/b) and ![a picture](c.png).": "See the guide and a picture.",
        "Click [this](javascript:alert('a b')) or [that](javascript:void(f(1))).": "Click this or that.",
        'See [Bern](https://a.example/Bern_(city) "Bern"); cells[i](x, y).': "See Bern; cells[i](x, y).",
        "Call `rag_match(**x)` now.": "Call rag_match(**x) now.",
        "snake_case_name and 5 * 3 * 2 stay.": "snake_case_name and 5 * 3 * 2 stay.",
        "**Note.": "Note.",
    }
    assert {text: without_markup(text) for text in cases} == cases


def test_rows_have_the_names_of_their_columns():
    text = "| | Standard | Plus |\n|---|---|---|\n| Users | 25 | no limit |\n| Storage | | 7 years |"
    assert texts_and_kinds(text) == [
        ("Users: Standard 25, Plus no limit.", StatementKind.ROW),
        ("Storage: Plus 7 years.", StatementKind.ROW),
    ]


def test_a_wide_row_has_only_the_columns_of_the_question():
    text = "| M | Load | B | C | D | E |\n|---|---|---|---|---|---|\n| M1 | 80 kg | 2 | 3 | 4 | 5 |"
    assert texts_and_kinds(text, "load") == [("M1: Load 80 kg.", StatementKind.ROW)]
    assert texts_and_kinds(text, "colour") == [("M1: Load 80 kg, B 2, C 3, D 4, E 5.", StatementKind.ROW)]


def test_a_wide_row_whose_named_column_has_no_value_has_all_its_numbers():
    text = (
        "| Id | House | Post | Sort | Amount | Plan\\|Kind |\n|---|---|---|---|---|---|\n"
        "| 9303 | Hall | Tours | Expense | 1537158,48 | Actual |"
    )
    row = "9303: House Hall, Amount 1537158,48, Plan|Kind Actual."
    assert texts_and_kinds(text, "hall kind") == [(row, StatementKind.ROW)]


def test_lines_of_keys_are_facts_and_turns_of_speakers_are_not():
    fact = StatementKind.FACT
    weight = [("Weight: 96 kg.", fact), ("Colour: blue.", fact)]
    assert texts_and_kinds("Weight: 96 kg\nColour: blue") == weight
    assert texts_and_kinds("Ann: no\nBen: yes\nAnn: no") == [("Ann: no.", fact), ("Ben: yes.", fact)]
    talk = texts_and_kinds("Ann: The kettle stopped at noon.\nBen: It started at once.")
    assert talk[0][1] is StatementKind.SENTENCE


@pytest.mark.parametrize(
    "line",
    [
        "Valid from: 2026-03-01", "Employer identification number: 01-0573846", "Phone: 08171-440",
        "Amount due: EUR 512.40", "Gültig ab: 01.03.2026", "Kundennummer: 10017", "Échéance: 30/06/2026",
        "Numéro de client: 88-104", "Fecha de pago: 15.04.2026", "Factuurnummer: 2026-118",
    ],
)  # fmt: skip
def test_a_line_of_a_key_and_a_number_alone_is_a_fact(line: str):
    text = f"Every member pays the fee of the club.\n\n{line}\n\nThe board decides on all other fees."
    assert texts_and_kinds(text)[1] == (f"{line}.", StatementKind.FACT)


def test_a_turn_of_a_speaker_alone_is_no_fact():
    text = "The kettle of the west wing stopped.\n\nBen: yes\n\nAnn: We bought 4 kettles of blue steel in May"
    assert [kind for _, kind in texts_and_kinds(text)] == [StatementKind.SENTENCE] * 2


def test_headers_of_mails_are_left_out():
    assert texts_and_kinds("From: Ann of the sales team\nSubject: the new price list\nDate: today") == []


def test_a_question_is_the_heading_of_its_answer():
    (item,) = statements("**Is there a trial?** Yes, a trial takes 45 days.", "en", frozenset())
    assert (item.heading, item.text) == ("Is there a trial?", "Yes, a trial takes 45 days.")


def test_a_line_that_introduces_a_list_is_the_heading_of_its_items():
    text = "## Data\nThe tools are:\n\n- a saw\n- a file\n\nWear gloves at all times.\n- an oil can"
    items = [(item.heading, item.text) for item in statements(text, "en", frozenset())]
    assert items == [
        ("The tools are", "a saw."),
        ("The tools are", "a file."),
        ("Data", "Wear gloves at all times."),
        ("Data", "an oil can."),
    ]


def test_a_question_within_a_paragraph_is_no_heading():
    text = "## Delivery\nThe premiere is on Friday. Can you come earlier? The old floor is slippery."
    assert {item.heading for item in statements(text, "en", frozenset())} == {"Delivery"}


def test_an_item_that_begins_with_a_question_is_a_heading_and_its_answer():
    first, last = statements("2. How late? The mails were 47 minutes late.\n3. Reset it.", "en", frozenset())
    assert (first.heading, first.text) == ("How late?", "The mails were 47 minutes late.")
    assert (last.text, last.kind) == ("3. Reset it.", StatementKind.ITEM)


def test_a_passage_continues_its_table_its_answer_and_its_section():
    table = match(location={"header": "| Depot | Monday | Sunday |", "section": "Depots > Opening hours"})
    before = table.section_title, table.header
    (row,) = statements("| Leuven | 08:00 | closed |", "en", frozenset(), *before)
    assert (row.heading, row.text) == ("Opening hours", "Leuven: Monday 08:00, Sunday closed.")
    texts = statements("6. Liability\n6.1 It is limited to 5 euros.", "en", frozenset())
    assert [(item.heading, item.text) for item in texts] == [
        ("6. Liability", "6.1 It is limited to 5 euros.")
    ]
    (first, _) = statements("6. It is limited.\n6.1 The limit is 5 euros.", "en", frozenset())
    assert first.text == "6. It is limited."
    clause = match(location={"section": "Lease > 4. Prices > 4.3"})
    assert clause.section_title == "4. Prices"
    question = match(location={"header": "**When does it open?**"}).header
    (sentence,) = statements("The depot opens at 08:00 on weekdays.", "en", frozenset(), before=question)
    assert sentence.heading == "When does it open?"


def test_a_statement_goes_on_in_the_next_line():
    text = (
        "- The kettle of the west wing holds eleven litres, and a porter\n  empties it daily.\n- Tea is free."
    )
    first, second = statements(text, "en", frozenset())
    assert first.text == "The kettle of the west wing holds eleven litres, and a porter empties it daily."
    assert text[first.start : first.end].endswith("empties it daily.")
    assert second.text == "Tea is free."


def test_underlined_lines_are_headings():
    text = (
        "The west wing\n=====\nIt has a kettle of blue steel.\n\nPorter\n----\nHe empties the kettle daily."
    )
    assert [(item.heading, item.text) for item in statements(text, "en", frozenset())] == [
        ("The west wing", "It has a kettle of blue steel."),
        ("Porter", "He empties the kettle daily."),
    ]


def test_a_sentence_or_an_item_above_a_rule_is_no_heading():
    text = (
        "The deposit is 100 euros.\n---\n- A bike costs 50 euros\n---\nThe old house has a garden of trees."
    )
    assert len(list(statements(text, "en", frozenset()))) == 3


def test_directives_and_targets_of_links_are_no_statements():
    text = ".. image:: kettle.png\n:alt: A kettle of the west wing\n[kettle]: https://kettles.example/the-west-wing"
    assert list(statements(text, "en", frozenset())) == []


def test_a_pronoun_is_one_in_the_language_of_the_text():
    assert begins_with_pronoun("Es gilt bis Mai.", "de")
    assert not begins_with_pronoun("Es obligatorio presentar el carné.", "es-ES")
    assert begins_with_pronoun("Es gilt bis Mai.", None)
