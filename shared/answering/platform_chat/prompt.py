"""Model request of a turn: instructions, history, passages, graph and question."""

from collections.abc import Sequence

from shared.answering.platform_chat.conversation_history import trim_history
from shared.answering.platform_chat.types import Message, Turn
from shared.generation.prompt import NOTHING_FOUND, TURN, render_context, system_prompt
from shared.models.chat_stream import Body
from shared.text.citation_marks import excerpt
from shared.text.prompt_fence import Fence
from shared.types import Match

CONNECTIONS = "How what the documents name is connected"


def chat_request(
    turn: Turn,
    model: str,
    matches: Sequence[Match],
    connections: str,
    history: Sequence[Message],
    context_tokens: int,
    history_tokens: int,
) -> tuple[Body, str]:
    """The body of a chat completion, and its context. `connections`: the graph as text."""
    fence = Fence()
    context = render_context(matches, fence, context_tokens) or NOTHING_FOUND
    if connections:
        # Its names are from documents, so it is data too.
        context = "\n".join([context, excerpt(CONNECTIONS, connections, fence).rstrip("\n")])
    system = "\n\n".join(filter(None, (system_prompt(fence, may_abstain=True), turn.instruction)))
    messages = [
        _message("system", system),
        *(_message("system", text) for text in turn.system_messages),
        *(_message(message.role, message.content) for message in trim_history(history, history_tokens)),
        _message("user", TURN.format(context=context, question=turn.question)),
    ]
    return {"model": model, "messages": messages, **turn.sampling.specified()}, context


def _message(role: str, content: str) -> Body:
    return {"role": role, "content": content}
