"""The past of a conversation as the next turn uses it: the messages that a model gets, and the earlier
question that a follow-up question is joined with. Pure; without a model, by rules.
"""

from collections.abc import Sequence

from shared.answering.chat_completions.request import FRAME_TOKENS
from shared.answering.platform_chat.follow_ups.detection import is_follow_up
from shared.answering.platform_chat.types import Message
from shared.text.token_count import count_tokens


def trim_history(messages: Sequence[Message], budget: int) -> tuple[Message, ...]:
    """The latest of them that cost so many tokens at most, in order, from a question on."""
    kept: list[Message] = []
    for message in reversed(messages):
        budget -= FRAME_TOKENS + count_tokens(message.content)
        if budget < 0:
            break
        kept.append(message)
    while kept and kept[-1].role != "user":
        kept.pop()
    return tuple(reversed(kept))


def join_with_previous(question: str, messages: Sequence[Message]) -> str:
    """The question behind the last one that depends on no other: the search is for both together."""
    for message in reversed(messages):
        if message.role == "user" and not is_follow_up(message.content):
            return f"{message.content.strip()}\n{question}"
    return question
