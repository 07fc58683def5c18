"""What of a conversation's past counts: how much of it is shown, which questions lean on it, and what they
mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.chat.asked import FRAME_TOKENS
from shared.conversations.memory import joined, leans, remembered
from shared.conversations.nouns import Message
from shared.tokens import count_tokens

TALK = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), st.text(min_size=1, max_size=40)))


def talk(*texts: str) -> list[Message]:
    return [Message(("user", "assistant")[place % 2], text) for place, text in enumerate(texts)]


def test_the_latest_that_fits_is_remembered_from_a_question_on():
    messages = talk("one " * 50, "two " * 50, "three " * 10, "four " * 10)
    budget = sum(count_tokens(message.content) + FRAME_TOKENS for message in messages[1:])
    assert remembered(messages, budget) == tuple(messages[2:])
    assert remembered(messages, budget + 1_000) == tuple(messages)
    assert remembered(messages, 5) == ()


@given(TALK, st.integers(0, 200))
def test_what_is_remembered_is_the_end_of_it_and_costs_no_more_than_it_may(
    messages: list[Message], budget: int
):
    kept = remembered(messages, budget)
    assert kept == tuple(messages[len(messages) - len(kept) :])
    assert sum(count_tokens(message.content) + FRAME_TOKENS for message in kept) <= budget
    assert not kept or kept[0].role == "user"


FOLLOW_UPS = [
    "What about database migrations?", "And how long does it take?", "Why?", "How do they differ?",
    "Is there another way?", "Who wrote that?", "Why was that done?",
    "Und was kostet das?", "Pourquoi cela?", "¿Y por qué?",
    "more", "the second one", "Tell me more about this incident, please",
]  # fmt: skip


def test_it_leans_on_what_was_said(subtests: pytest.Subtests):
    for question in FOLLOW_UPS:
        with subtests.test(question=question):
            assert leans(question)


STANDALONE_QUESTIONS = [
    "How do I deploy the application?", "Who owns the billing service?", "INC-4821 root cause",
    "Welche Teams besitzen den Rechnungsdienst?", "请假政策 年假 天数", "Kettle capacity",
    "公司的年假有多少天？",
    "Who runs the IT department?", "Where is the same-day delivery policy?",
    "Which one-off costs apply to plan B?", "What is the Este Lauder policy?",
    "Is there a report that names the owner?", "Which of the other plans costs more than one day?",
]  # fmt: skip


def test_it_stands_on_its_own(subtests: pytest.Subtests):
    for question in STANDALONE_QUESTIONS:
        with subtests.test(question=question):
            assert not leans(question)


def test_without_a_model_it_is_looked_for_with_the_last_question_that_stands_on_its_own():
    messages = talk("Who owns the billing service?", "The Payments team.", "And why?", "They built it.")
    assert joined("What about invoices?", messages) == "Who owns the billing service?\nWhat about invoices?"
    assert joined("What about invoices?", talk("And it?", "No.")) == "What about invoices?"
