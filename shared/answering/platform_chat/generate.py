"""What is written for a turn: by the model, as it says it, or by extraction where there is none."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.concurrency import run_in_threadpool

from shared.answering.chat_completions import response
from shared.answering.chat_completions.response import SurrogateJoiner
from shared.answering.platform_chat.prompt import request
from shared.answering.platform_chat.turn_state import TurnState
from shared.errors import GenerationFailed
from shared.generation.confidence import cite
from shared.graph.verbalize import graph_context
from shared.models.chat_stream import Body
from shared.text.token_count import count_tokens
from shared.types import Graph, Query, Usage


async def written(work: TurnState) -> AsyncGenerator[str]:
    """What there is to say; whoever reads it adds it to the work's text. Raises GenerationFailed for a model
    that says nothing."""
    gateway = work.core.chat_gateway
    if gateway is None:
        for text in await run_in_threadpool(_extracted, work):
            yield text
        return
    body, context = await run_in_threadpool(_request, work)
    counted: Usage | None = None
    pairs = SurrogateJoiner()
    async with aclosing(_streamed(work, body) if work.turn.streams else _complete(work, body)) as parts:
        async for part, reply in parts:
            counted = response.usage_in(part) or counted
            if text := pairs.joined(reply):
                yield text
    if not work.text.strip():
        raise GenerationFailed
    # Counted while nobody waits for it.
    work.retrieval_tokens = await run_in_threadpool(count_tokens, context)
    if counted is None:
        counted = await run_in_threadpool(_counted, body, work.text)
    work.usage = counted


def _request(work: TurnState) -> tuple[Body, str]:
    settings = work.core.settings
    connected = " ".join(
        dict.fromkeys(
            words
            for found in work.findings.by_query.values()
            if (words := graph_context(found.graph or Graph()))
        )
    )
    return request(
        work.turn,
        work.model,
        work.findings.matches(),
        connected,
        work.earlier,
        settings.rag_context_tokens,
        settings.rag_history_tokens,
    )


async def _streamed(work: TurnState, body: Body) -> AsyncGenerator[tuple[Body, str]]:
    async with work.core.require_chat_gateway().stream({**body, "stream": True}, counted=True) as parts:
        async for part in parts:
            for choice in response.choices(part)[:1] or [{}]:
                yield part, response.content_of(choice.get("delta"))


async def _complete(work: TurnState, body: Body) -> AsyncGenerator[tuple[Body, str]]:
    reply = await work.core.require_chat_gateway().complete(body)
    for choice in response.choices(reply)[:1]:
        yield reply, response.content_of(choice.get("message"))


def _extracted(work: TurnState) -> list[str]:
    """The documents' own sentences, a line at a time."""
    # Its numbers count the documents as the sources show them.
    citations = cite(work.findings.by_score())
    draft = work.core.generator.write(Query(work.asked), work.findings.matches(), citations)
    work.usage = draft.usage
    work.retrieval_tokens = max(0, draft.usage.prompt_tokens - count_tokens(work.asked))
    return draft.text.splitlines(keepends=True)


def _counted(body: Body, written: str) -> Usage:
    reply = response.counted(body, [written])
    return Usage(reply["prompt_tokens"], reply["completion_tokens"])
