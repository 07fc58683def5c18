"""Where sentences begin and end, as exact spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.text.sentences import Sentence, sentences

LINES = st.lists(
    st.sampled_from(
        ["# Title. Part", "| a. | b? |", "Mr. Smith left. He came back.", "Anna: Yes.  No?", " - item. ", "",
         "\t", "你好。再见。", "👩‍👩‍👧 Hi. 🧿 Ok.", "e\u0301te\u0301. U\u0308ber.",
         "a\u2028b. c\x0bd. e\x85f. G"]
    )
)  # fmt: skip
TEXTS = LINES.map("\n".join) | st.text(max_size=200)


def texts(text: str, lang: str | None = None) -> list[str]:
    return [text[item.start : item.end] for item in sentences(text, lang)]


@given(TEXTS, st.sampled_from([None, "", "en", "pt-BR", "zh-CN", "de", "tlh", "en_US", "!"]))
def test_spans_are_ordered_disjoint_and_trimmed_and_skip_only_white_space(text: str, lang: str | None):
    results = sentences(text, lang)
    assert not any("\n" in text[item.start : item.end] for item in results)
    ends = [0, *(item.end for item in results)]
    starts = [*(item.start for item in results), len(text)]
    assert all(item.start < item.end for item in results)
    assert all(text[item.start : item.end] == text[item.start : item.end].strip() for item in results)
    assert all(end <= start and not text[end:start].strip() for end, start in zip(ends, starts, strict=True))


def test_sentences_do_not_end_at_abbreviations_or_decimals():
    text = "Mr. Smith paid 3.5 euros. He left at 10 a.m. on Monday. Why?"
    assert texts(text) == ["Mr. Smith paid 3.5 euros.", "He left at 10 a.m. on Monday.", "Why?"]


@pytest.mark.parametrize(
    "text",
    [
        "Die Anzahlung ist bis 23. Februar 2024 zu leisten.",
        "Am 5. Mai tagt der Rat im Saal.",
        "Die Frist endet am 1. März um 12 Uhr.",
        "Der Vertrag gilt vom 1. Januar bis zum 31. Dezember 2026.",
        "Die Preise gelten ab 15. Sept. 2026 in allen Filialen.",
        "Das Freibad öffnet am 12. Juni und schließt am 30. August.",
        "Sie wurde am 3. Oktober gewählt.",
        "Die Rechnung vom 9. Juli blieb offen.",
        "Mødet er den 17. August i rådhuset.",
        "Der 4. November ist ein Feiertag.",
    ],
)
def test_a_date_with_an_ordinal_is_within_a_sentence_of_unknown_language(text: str):
    assert texts(f"{text} Das ist alles.") == [text, "Das ist alles."]


def test_a_number_may_end_a_sentence_before_a_word_that_is_also_a_month():
    for text in (
        "The answer is on page 12. May I go?",
        "We counted 12. March on!",
        "It was 12. Nobody came.",
    ):
        assert len(texts(text)) == 2


def test_the_language_tag_chooses_the_rules():
    cases: list[tuple[str, str, list[str]]] = [
        ("de", "Das ist z. B. gut. Ende.", ["Das ist z. B. gut.", "Ende."]),
        ("de-AT", "Das ist z. B. gut. Ende.", ["Das ist z. B. gut.", "Ende."]),
        ("DE", "Das ist z. B. gut. Ende.", ["Das ist z. B. gut.", "Ende."]),
        ("zh-CN", "你好。再见。", ["你好。", "再见。"]),
        ("no such language", "One. Two.", ["One.", "Two."]),
        ("", "One. Two.", ["One.", "Two."]),
        # An ordinal before a lower-case word ends no sentence.
        ("no", "Møtet er 17. august. Vi er 12. Alle får lunsj.",
         ["Møtet er 17. august.", "Vi er 12.", "Alle får lunsj."]),
        ("", "", []),
        ("", " ", []),
        ("", "\n \n\t", []),
    ]  # fmt: skip
    assert [(lang, text, texts(text, lang)) for lang, text, _ in cases] == cases


def test_each_turn_of_a_transcript_and_each_list_item_ends_at_its_line():
    text = "Anna: did it stop\nBen: yes it did\n- first item\n- second item"
    assert texts(text) == text.split("\n")


def test_a_heading_is_one_marked_sentence():
    text = "# 1. Scope. And more\nIt stops. It starts."
    assert sentences(text) == [Sentence(0, 20, True), Sentence(21, 30), Sentence(31, 41)]


def test_one_to_six_hashes_and_a_space_make_a_heading():
    for line in ("# One", "## One", "###### One"):
        assert [item.heading for item in sentences(f"{line}\ntext")] == [True, False]
    for line in ("#one", "####### Seven", "a # b", "#", "C# is a language"):
        assert not any(item.heading for item in sentences(line)), line


def test_a_table_row_is_one_sentence_and_not_a_heading():
    text = "| Dr. A. | left. Came? |\n|---|---|"
    assert texts(text) == text.split("\n")
    assert not any(item.heading for item in sentences(text))


def test_a_long_line_has_the_sentences_of_its_parts():
    text = [f"Sentence {number} of Dr. Heron, no. {number % 7}, ends here." for number in range(1_000)]
    assert texts(" ".join(text)) == text


def test_a_long_line_without_a_sentence_end_is_split_without_loss():
    cases: list[str] = [" " * 20_000, "“" * 20_000, "x" * 20_000, "( [ “ " * 5_000, "a" + " " * 20_000 + "b."]
    assert [line for line in cases if "".join(texts(line)).replace(" ", "") != line.replace(" ", "")] == []
