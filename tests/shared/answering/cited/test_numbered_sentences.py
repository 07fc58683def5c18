"""Answers put together from checked sentences: numbers, spaces and omissions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.answering.cited.numbered_sentences import Composer
from shared.generation.grounding.types import CheckResult, Evidence, Verdict
from tests.shared.examples import match

MATCHES = [match("The kettle is hot.", chunk_id=f"c{number}") for number in range(3)]


def supported_sentence(text: str, *places: int, before: str = "") -> CheckResult:
    return CheckResult(
        text, Verdict.SUPPORTED, tuple(Evidence(place, 0, len(text)) for place in places), before=before
    )


def lost(text: str, before: str = "") -> CheckResult:
    return CheckResult(text, Verdict.UNSUPPORTED, reasons=("number_not_found",), before=before)


def test_citations_are_numbered_by_first_use():
    composer = Composer(MATCHES)
    composer.add(supported_sentence("Two.", 2))
    composer.add(supported_sentence("Both.", 0, 2, before=" "))
    composer.add(supported_sentence("One.", 0, before=" "))
    assert composer.text == "Two. [1] Both. [2] [1] One. [2]"
    assert [(cited.number, cited.match.chunk_id) for cited in composer.citations] == [(1, "c2"), (2, "c0")]


def test_a_dropped_sentence_passes_its_paragraph_break_on():
    composer = Composer(MATCHES, cites=False)
    composer.add(supported_sentence("First.", 0))
    assert composer.add(lost("4 million.", before="\n\n")) == ""
    composer.add(supported_sentence("Second.", 0, before=" "))
    assert composer.text == "First.\n\nSecond."
    assert composer.dropped == [("number_not_found",)]


def test_an_answer_never_begins_with_white_space_of_a_dropped_sentence():
    composer = Composer(MATCHES)
    composer.add(lost("4 million."))
    composer.add(supported_sentence("Second.", 1, before=" "))
    assert composer.text == "Second. [1]"


def test_framing_sentences_alone_are_not_grounded():
    composer = Composer(MATCHES)
    assert composer.add(CheckResult("Here is what I found:", Verdict.FRAME)) == ""
    assert (composer.is_grounded, composer.text) == (False, "")
    assert (
        composer.add(supported_sentence("It is hot.", 0, before="\n"))
        == "Here is what I found:\nIt is hot. [1]"
    )
    assert composer.is_grounded
    assert composer.add(CheckResult("Shall I say more?", Verdict.FRAME, before=" ")) == " Shall I say more?"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("| Free | 10 |", "| Free | 10 [1] |"),
        ("```\nmake test\n```", "```\nmake test\n```\n[1]"),
        ("It is hot.", "It is hot. [1]"),
    ],
)
def test_markers_break_no_table_and_no_code(text: str, shown: str):
    composer = Composer(MATCHES)
    assert composer.add(supported_sentence(text, 0)) == shown
    (sentence,) = composer.sentences
    assert text.startswith(composer.text[sentence.start : sentence.end])


sentences = st.lists(
    st.builds(
        lambda text, places, before, keeps: (
            supported_sentence(text, *places, before=before) if keeps else lost(text, before)
        ),
        st.text("ab. ", min_size=1),
        st.lists(st.integers(0, 2), min_size=1, max_size=3),
        st.sampled_from(["", " ", "\n", "\n\n", "\n- "]),
        st.booleans(),
    )
)


@given(sentences, st.booleans())
def test_the_streamed_text_equals_the_answer_and_its_offsets(sentences: list[CheckResult], cites: bool):
    composer = Composer(MATCHES, cites)
    assert "".join(map(composer.add, sentences)) == composer.text
    remaining = [checked for checked in sentences if checked.verdict is Verdict.SUPPORTED]
    assert [composer.text[entry.start : entry.end] for entry in composer.sentences] == [
        checked.text for checked in remaining
    ]
    assert [cited.number for cited in composer.citations] == list(range(1, len(composer.citations) + 1))
