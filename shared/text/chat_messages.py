"""Messages of chat completions: texts, tokens, trimmed history."""

from collections.abc import Sequence
from typing import Any

from shared.text.token_count import count_tokens
from shared.types import Usage

Body = dict[str, Any]
# Tokens of a message beside its text, at most.
FRAME_TOKENS = 8
# Tokens of earlier turns that the model receives.
HISTORY_TOKENS = 8_000
# Roles of messages that instruct the model.
INSTRUCTIONS = frozenset({"system", "developer"})


def text_of(content: Any) -> str | None:
    """The text of a message; None for content other than text."""
    texts = _texts(content)
    return None if None in texts else "\n".join(filter(None, texts))


def _texts(content: Any) -> list[str | None]:
    """The texts of the parts; None for each part of another type."""
    if content is None:
        return []
    parts = content if isinstance(content, list) else [content]
    texts = [
        part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part for part in parts
    ]
    return [text if isinstance(text, str) else None for text in texts]


def message_tokens(message: Body) -> int:
    """Upper bound of a message's tokens, without its pictures."""
    return FRAME_TOKENS + sum(count_tokens(text) for text in _texts(message.get("content")) if text)


def trim_history(messages: Sequence[Body], budget: int) -> list[Body]:
    """The latest messages within the budget of tokens, in order, and all instructions. A trimmed history
    begins with a question."""
    latest: list[Body] = []
    for message in reversed(messages):
        if message["role"] not in INSTRUCTIONS:
            budget -= message_tokens(message)
            if budget < 0:
                continue
        latest.append(message)
    latest.reverse()
    if budget < 0:
        while (first := next((m for m in latest if m["role"] not in INSTRUCTIONS), None)) and (
            first["role"] != "user"
        ):
            latest.remove(first)
    return latest


def count_usage(messages: Sequence[Body], *replies: str) -> Usage:
    """Upper bound of the tokens of a completion."""
    return Usage(sum(map(message_tokens, messages)), sum(map(count_tokens, replies)))
