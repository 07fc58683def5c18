"""History of a chat within a budget of tokens: the oldest messages are left out first."""

from collections.abc import Sequence

from shared.text.chat_messages import Body, message_tokens

# Tokens of earlier turns that the model receives.
HISTORY_TOKENS = 8_000
# Roles of messages that instruct the model.
INSTRUCTIONS = frozenset({"system", "developer"})


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
