"""The model's request for a turn: instructions, earlier messages, passages, graph and question."""

from collections.abc import Sequence

from shared.answering.platform_chat.history import trim_history
from shared.answering.platform_chat.types import Message, Turn
from shared.generation.generators import NOTHING_FOUND, TURN, render_context, system_prompt
from shared.models.chat_stream import Body
from shared.text.citations import excerpt
from shared.text.prompt_fence import Fence
from shared.types import Match

CONNECTED = "How what the documents name is connected"


def chat_request(
    turn: Turn,
    model: str,
    matches: Sequence[Match],
    connected: str,
    earlier: Sequence[Message],
    context_tokens: int,
    history_tokens: int,
) -> tuple[Body, str]:
    """The body of a chat completion, and its part that was retrieved. `connected` is the graph in words."""
    fence = Fence()
    context = render_context(matches, fence, context_tokens) or NOTHING_FOUND
    if connected:
        # Its names are the documents' own: as much data as they.
        context = "\n".join([context, excerpt(CONNECTED, connected, fence).rstrip("\n")])
    system = "\n\n".join(filter(None, (system_prompt(fence), turn.manner)))
    messages = [
        _message("system", system),
        *(_message("system", order) for order in turn.orders),
        *(_message(message.role, message.content) for message in trim_history(earlier, history_tokens)),
        _message("user", TURN.format(context=context, question=turn.question)),
    ]
    return {"model": model, "messages": messages, **turn.sampling.specified()}, context


def _message(role: str, content: str) -> Body:
    return {"role": role, "content": content}
