"""Text of a turn, written by the model or extracted, and the request to the model."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.platform_chat.conversation_history import trim_history
from shared.answering.platform_chat.turn_state import TurnState
from shared.answering.platform_chat.types import Message, Turn
from shared.generation.cited_documents import cite
from shared.generation.generators import GenerationRequest
from shared.generation.prompt import NOTHING_FOUND, TURN, render_context, system_prompt
from shared.generation.refusal_texts import missing_note
from shared.graph.graph_as_text import graph_context
from shared.models.chat_stream import Body
from shared.text.citation_marks import excerpt
from shared.text.history_trimming import HISTORY_TOKENS
from shared.text.prompt_fence import Fence
from shared.text.token_count import count_tokens
from shared.types import GeneratedText, Graph, Judgement, Match

CONNECTIONS = "How what the documents name is connected"


async def generate(state: TurnState, judgement: Judgement) -> AsyncGenerator[str]:
    """The parts of the text; none if confidence is low. Sets the state's usage. Raises as Generator.write."""
    context, results = "", state.results

    def body() -> Body:
        nonlocal context
        connections = map(graph_context, (result.graph or Graph() for result in results.by_query.values()))
        request, context = chat_request(
            state.turn,
            state.model,
            results.matches(),
            " ".join(dict.fromkeys(filter(None, connections))),
            state.history,
            state.services.settings.rag_context_tokens,
        )
        return request

    # The marks of an extracted answer number the documents in the order of the sources.
    citations = cite(results.by_score())
    result = results.by_query.get(state.question)
    request = GenerationRequest(
        state.turn.question if state.previous else state.question,
        results.matches(),
        citations,
        body,
        state.turn.streams,
        result.vector if result and not state.previous else None,
        sum(len(message.content) for message in state.history),
        state.previous,
    )
    if note := missing_note(state.question, judgement):
        yield f"{note}\n\n"
    async with aclosing(pipeline.generate(state.services.generator, judgement, request)) as parts:
        async for part in parts:
            if isinstance(part, str):
                yield part
                continue
            state.usage = part.usage
            state.generated = part
            state.retrieval_tokens = await run_in_threadpool(_retrieval_tokens, request, context, part)


def _retrieval_tokens(request: GenerationRequest, context: str, generated: GeneratedText) -> int:
    if context:
        return count_tokens(context)
    return max(0, generated.usage.prompt_tokens - count_tokens(request.question))


def chat_request(
    turn: Turn,
    model: str,
    matches: Sequence[Match],
    connections: str,
    history: Sequence[Message],
    context_tokens: int,
) -> tuple[Body, str]:
    """The body of a chat completion, and its context. `connections`: the graph as text."""
    fence = Fence()
    context = render_context(matches, fence, context_tokens) or NOTHING_FOUND
    if connections:
        # Its names are from documents, so it is data too.
        context = "\n".join([context, excerpt(CONNECTIONS, connections, fence).rstrip("\n")])
    system = "\n\n".join(filter(None, (system_prompt(fence, may_abstain=True), turn.instruction)))
    messages = [
        *(_message("system", text) for text in (system, *turn.system_messages)),
        *(_message(message.role, message.content) for message in trim_history(history, HISTORY_TOKENS)),
        _message("user", TURN.format(context=context, question=turn.question)),
    ]
    return {"model": model, "messages": messages, **turn.sampling.specified()}, context


def _message(role: str, content: str) -> Body:
    return {"role": role, "content": content}
