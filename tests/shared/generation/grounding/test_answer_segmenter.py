"""An answer checked while it is written: cut where the whole would be, and nothing of it lost."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.generation.grounding.sentence_checker import Checker, StreamChecker
from shared.generation.grounding.types import Verdict
from tests.shared.examples import match
from tests.shared.generation.grounding.checking import checked

CHECKER = Checker([match("The kettle switches off at 100 degrees. It holds 1.7 litres.", "Kettle")])
ANSWER = """# Kettles

Here is what I found:

1. The kettle switches off at 100 degrees [1]. See e.g. v1.2 of Mr. Smith's list.
2. It holds 1.7 litres. [1] [2] It beeps!
   - **Cheap**: 3 euros
> The kettle switches off
>
> at 100 degrees.

| a | b |
|---|---|
```python
x = 1. Then
y = 2
```
He said “Stop. Go on.” to me (twice). 水壶会响。水壶是红的。 End"""
PIECES = st.sampled_from(
    [". ", ".", "\n", "\n\n", "- ", "1. ", "* ", "> ", "```", "```\n", "|", "# ", "[1]", " [", "1", "]", "“",
     "”", '"', "e.g.", " ", "Mr.", "The kettle", "a", "?", "!", "...", "。", "水", "`", "(", ")", "\t",
     "\r\n", "~~~", "---", "【1", "】", "v1.2", "東京にあります。", " " * 13, "\ud800"]
)  # fmt: skip
ANSWERS = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=80) | st.just(ANSWER)


def units(text: str) -> list[tuple[str, str]]:
    return [(entry.before, entry.text) for entry in checked(CHECKER, text)]


@given(ANSWERS, st.data())
def test_sentences_do_not_depend_on_token_boundaries(answer: str, data: st.DataObject):
    whole = checked(CHECKER, answer)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=12)))
    for places in (cuts, range(1, len(answer))):
        stream = StreamChecker(CHECKER)
        results = []
        for start, end in zip([0, *places], [*places, len(answer)], strict=True):
            results += stream.feed(answer[start:end])
        assert [*results, *stream.close()] == whole


@given(
    st.lists(st.sampled_from(["One. ", "Two!\n\n", "- it is\n", "# head\n", "\n", "1. a b. c\n", "e.g. "]))
)
def test_the_sentences_and_their_prefixes_are_the_answer(pieces: list[str]):
    answer = "".join(pieces)
    assert "".join(before + text for before, text in units(answer)) == answer.rstrip()


def test_an_answer_is_split_into_sentences():
    assert units(ANSWER) == [
        ("# ", "Kettles"),
        ("\n\n", "Here is what I found:"),
        ("\n\n1. ", "The kettle switches off at 100 degrees."),
        (" ", "See e.g. v1.2 of Mr. Smith's list."),
        ("\n2. ", "It holds 1.7 litres."),
        (" ", "It beeps!"),
        ("\n   - ", "**Cheap**: 3 euros"),
        ("\n> ", "The kettle switches off"),
        ("\n>\n> ", "at 100 degrees."),
        ("\n\n", "| a | b |"),
        ("\n", "|---|---|"),
        ("\n", "```python\nx = 1. Then\ny = 2\n```"),
        ("\n", "He said Stop. Go on. to me (twice)."),
        (" ", "水壶会响。"),
        ("", "水壶是红的。"),
        (" ", "End"),
    ]


STREAMS = [
    ("The kettle switches off at 100 degrees", 0),
    ("The kettle switches off at 100 degrees. ", 0),
    ("The kettle switches off at 100 degrees. [", 0),
    ("The kettle switches off at 100 degrees. I", 1),
    ("The kettle switches off at 100 degrees.\n", 1),
    ("The kettle switches off at 100 degrees. [1] I", 1),
    ("It is 3.", 0),
]


def test_a_sentence_is_checked_when_the_next_begins_or_its_line_ends():
    assert [(fed, len(StreamChecker(CHECKER).feed(fed))) for fed, _ in STREAMS] == STREAMS


def test_a_marker_after_the_full_stop_belongs_to_the_sentence_before():
    results = checked(CHECKER, "It holds 1.7 litres. [2] The kettle switches off at 100 degrees [1].")
    assert [one.text for one in results] == [
        "It holds 1.7 litres.",
        "The kettle switches off at 100 degrees.",
    ]
    assert {one.verdict for one in results} == {Verdict.SUPPORTED}


def test_the_answer_s_language_decides_the_sentence_boundaries():
    text = "Das ist z. B. gut. Ende."
    assert [one.text for one in checked(CHECKER, text, "de-AT")] == ["Das ist z. B. gut.", "Ende."]


LONG_ANSWERS = [
    "e.g. foo, i.e. bar, " * 200,
    "| a " * 1000,
    "'a' " * 1000,
    "“a” " * 1000,
    ". [1]" + "[1]" * 1250,
    ">\n" * 2000,
    "```\n" + "x = 1\n" * 625,
    "." * 4000,
    "水" * 4000,
]


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.long)])
def test_the_time_for_a_long_answer_is_linear(times: int, subtests: pytest.Subtests):
    for part in LONG_ANSWERS:
        text = part * times
        with subtests.test(text=text[:10]):
            started = process_time()
            stream = StreamChecker(CHECKER)
            results = [one for at in range(0, len(text), 4) for one in stream.feed(text[at : at + 4])]
            results += stream.close()
            assert process_time() - started < 1.25 * times
            assert results == checked(CHECKER, text)


def test_an_endless_sentence_is_cut_at_white_space():
    results = checked(CHECKER, "The kettle, e.g. one, " * 200)
    assert all(len(one.text) <= 1500 for one in results)
    assert "".join(one.before + one.text for one in results) == ("The kettle, e.g. one, " * 200).rstrip()


def test_a_marker_after_an_unspaced_stop_belongs_to_it():
    stream = StreamChecker(CHECKER)
    results = [one for letter in "東京にあります。 [1]" for one in stream.feed(letter)]
    assert [one.text for one in [*results, *stream.close()]] == ["東京にあります。"]


def test_code_within_a_line_is_code():
    results = checked(CHECKER, "``` rm -rf / ```\nIt holds 1.7 litres.")
    assert [one.verdict for one in results] == [Verdict.UNSUPPORTED, Verdict.SUPPORTED]
