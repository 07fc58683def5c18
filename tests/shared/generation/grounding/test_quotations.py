"""A quotation is shown as one only where a source has it."""

from shared.generation.grounding.sentence_checker import Checker
from shared.generation.grounding.types import Verdict
from tests.shared.examples import match

TEXT = (
    'He wrote: “We don’t know – yet.” The **red** kettle\nboils "fast" and never leaks. Nobody starts early.'
)
CHECKER = Checker([match(TEXT, "On kettles")])
MARKS = '"“”„«»‹›「」‘’＂《》❝❞″‟‛`<&'


QUOTATIONS = [
    'He wrote: "We don\'t know — yet."',
    "He wrote “we don't know – yet”.",
    "He wrote «we don't know - yet», the red kettle boils fast.",
    "„The red kettle boils 'fast'“",
    '"The red kettle boils ... never leaks."',
    "The kettle \"never leaks.\"",
    'In "On Kettles", the red kettle boils fast.',
    "> The red kettle boils fast and never leaks.".replace("fast", '"fast"'),
]  # fmt: skip


def test_a_quotation_keeps_its_marks_in_any_style():
    for text in QUOTATIONS:
        result = CHECKER.check(text)
        assert result.verdict is Verdict.SUPPORTED
        assert result.before + result.text == text


NO_QUOTATIONS = [
    'He wrote: "We will never know."', "The “blue kettle” boils.", "„Der Kessel kocht“",
    "« Le rouge bout »", "The kettle boils 'very fast'.", "「水壶」", 'He wrote: "We will never',
    'know it."', "He wrote “We know – yet.”", '"art" is in it', "“He wrote ‘nothing at all’ to us”",
    "> The blue kettle boils.", "＂He knows＂", "《He knows》", "›He knows‹", "❝He knows❞", "″He knows″",
    "‟He knows”", "‛He knows’", "``He knows''", "''He knows''", "<q>He knows</q>",
    "<blockquote>He knows</blockquote>", "&quot;He knows&quot;", "““He knows””", "”He knows”",
    '“He knows"', "The “red kettle boils", "The red” kettle boils", '"The red kettle ... leaks"',
    '"He wrote ... kettle boils fast"', '"He wrote ... Nobody starts early"',
]  # fmt: skip


def test_a_false_quotation_loses_its_marks():
    for text in NO_QUOTATIONS:
        result = CHECKER.check(text)
        assert not set(result.text) & set(MARKS) - {"'"}
        assert ">" not in result.before
        assert "quotation_not_found" in result.reasons


def test_a_sentence_that_is_supported_without_its_marks_loses_them():
    result = CHECKER.check('The red kettle "boils very fast" and never leaks.')
    assert result.verdict is Verdict.SUPPORTED
    assert result.text == "The red kettle boils very fast and never leaks."


def test_apostrophes_inches_and_code_are_not_quotations():
    checker = Checker([match("The maker's 5\" pipe isn't for the users' hands. Run `echo \"x\"` first.")])
    for text in ("The maker's 5\" pipe isn't for users' hands.", 'First, run `echo "x"`.'):
        assert checker.check(text).text == text
        assert checker.check(text).verdict is Verdict.SUPPORTED


def test_a_quotation_over_two_sentences_may_leave_out_the_end_of_one():
    source = "Employees get 25 days of vacation a year. Unused days lapse in March. Contractors get 10."
    checker = Checker([match(source)])
    assert checker.check('"Employees get 25 days ... Unused days lapse"').text.startswith('"')
    assert not checker.check('"Employees get 25 days ... lapse in March"').text.startswith('"')
    assert not checker.check('"Employees get ... Contractors get 10"').text.startswith('"')
