"""History of a conversation: the model's part of it, and the question that a follow-up continues."""

from collections.abc import Sequence
from itertools import dropwhile

from shared.answering.platform_chat.follow_up_rewriting.detection import is_follow_up
from shared.answering.platform_chat.types import Message
from shared.text import history_trimming


def trim_history(messages: Sequence[Message], budget: int) -> tuple[Message, ...]:
    """The latest messages within the budget of tokens, beginning with a question."""
    bodies = [{"role": message.role, "content": message.content} for message in messages]
    latest = messages[len(messages) - len(history_trimming.trim_history(bodies, budget)) :]
    return tuple(dropwhile(lambda message: message.role != "user", latest))


def previous_question(messages: Sequence[Message]) -> str:
    """The last question that is no follow-up, or an empty text."""
    for message in reversed(messages):
        if message.role == "user" and not is_follow_up(message.content):
            return message.content.strip()
    return ""
