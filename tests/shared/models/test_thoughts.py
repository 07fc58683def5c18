"""Thoughts in a text and what only looks like them, whole and in pieces of any size."""

import pytest

from shared.models.thoughts import ThoughtFilter, separate

XML = "The log has:\n<reason>timeout</reason>\n<fault><reason>disk</reason>\nBoth are known."
TAGS = "The tag `<think>` opens thoughts and `</think>` closes them."
# The text of a model, and its answer.
TEXTS = {
    "<think>\nhm ok\n</think>\n\nThe answer is 5.": "The answer is 5.",
    "\n<think>a</think>The answer": "The answer",
    "Okay, so the user asks.\nLet me see.\n</think>\n\nThe answer is 5.": "The answer is 5.",
    "<think>never ends": "",
    "<thinking>a</thinking>\n<think>b</think>\nDone": "Done",
    "Answer one.\n<think>again</think>\nAnswer two.": "Answer one.\nAnswer two.",
    "[THINK]x[/THINK]Yes": "Yes",
    TAGS: TAGS,
    XML: XML,
    "So is it open? Yes, at nine.": "So is it open? Yes, at nine.",
    "Analysis of the year:\nGood.": "Analysis of the year:\nGood.",
    "< 5 km is the limit": "< 5 km is the limit",
    "": "",
}


@pytest.mark.parametrize("text", TEXTS)
def test_thoughts_are_removed_and_nothing_else(text: str):
    assert separate(text)[0] == TEXTS[text]
    for size in range(1, 12):
        streamed = ThoughtFilter()
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        answer = "".join(streamed.feed(piece)[0] for piece in pieces)
        assert answer + streamed.end()[0] == TEXTS[text]
