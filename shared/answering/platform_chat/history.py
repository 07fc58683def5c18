"""Earlier messages of a conversation: those that a model gets, and the question that a follow-up joins."""

from collections.abc import Sequence
from itertools import dropwhile

from shared.answering.platform_chat.follow_ups.detection import is_follow_up
from shared.answering.platform_chat.types import Message
from shared.text import chat_message


def trim_history(messages: Sequence[Message], budget: int) -> tuple[Message, ...]:
    """The latest messages within so many tokens, in order, from a question on."""
    bodies = [{"role": message.role, "content": message.content} for message in messages]
    latest = messages[len(messages) - len(chat_message.trim_history(bodies, budget)) :]
    return tuple(dropwhile(lambda message: message.role != "user", latest))


def join_with_previous(question: str, messages: Sequence[Message]) -> str:
    """The question behind the last one that depends on no other: the search is for both together."""
    for message in reversed(messages):
        if message.role == "user" and not is_follow_up(message.content):
            return f"{message.content.strip()}\n{question}"
    return question
