"""The past of a conversation: how much of it a model gets, and what a follow-up question is joined with."""

from hypothesis import given
from hypothesis import strategies as st

from shared.answering.platform_chat.conversation_history import previous_question, trim_history
from shared.answering.platform_chat.types import Message
from shared.text.chat_messages import FRAME_TOKENS
from shared.text.token_count import count_tokens

TALK = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), st.text(min_size=1, max_size=40)))


def talk(*texts: str) -> list[Message]:
    return [Message(("user", "assistant")[place % 2], text) for place, text in enumerate(texts)]


@given(TALK, st.integers(0, 200))
def test_the_history_is_the_latest_part_within_its_budget(messages: list[Message], budget: int):
    history = trim_history(messages, budget)
    assert history == tuple(messages[len(messages) - len(history) :])
    assert sum(count_tokens(message.content) + FRAME_TOKENS for message in history) <= budget
    assert not history or history[0].role == "user"


def test_a_follow_up_continues_the_last_independent_question():
    messages = talk("Who owns the billing service?", "The Payments team.", "And why?", "They built it.")
    assert previous_question(messages) == "Who owns the billing service?"
    assert previous_question(talk("And it?", "No.")) == ""
