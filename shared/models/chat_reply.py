"""Replies of chat completions, whole or a part of a stream: choices, text, usage."""

from typing import Any

from shared.models.chat_stream import Body, parse_usage
from shared.types import Usage


def usage_in(reply: Body) -> Usage | None:
    """The usage that a gateway states in a reply or a part of one; None without a valid one."""
    usage = reply.get("usage")
    if not isinstance(usage, dict):
        return None
    return parse_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"))


def choices(reply: Body) -> list[Body]:
    values = reply.get("choices")
    return [choice for choice in values if isinstance(choice, dict)] if isinstance(values, list) else []


def content_of(message: Any) -> str:
    """The text of a reply's message, or of a part of one; empty for anything else."""
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""


class SurrogateJoiner:
    """Surrogate pairs that a stream's JSON escapes have split over two parts, joined."""

    def __init__(self) -> None:
        self._half = ""

    def joined(self, text: str) -> str:
        """The text without a high surrogate at its end, which waits for the next part; one that stays alone
        becomes U+FFFD."""
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        whole = text[: len(text) - len(self._half)]
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
