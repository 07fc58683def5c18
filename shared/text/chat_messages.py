"""Messages of chat completions: their texts and tokens."""

from collections.abc import Sequence
from typing import Any

from shared.text.token_count import count_tokens
from shared.types import Usage

Body = dict[str, Any]
# Tokens of a message beside its text, at most.
FRAME_TOKENS = 8


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


def count_usage(messages: Sequence[Body], *replies: str) -> Usage:
    """Upper bound of the tokens of a completion."""
    return Usage(sum(map(message_tokens, messages)), sum(map(count_tokens, replies)))
