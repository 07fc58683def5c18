"""The text of a turn: the model's, or an extract of the documents."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.platform_chat.prompt import chat_request
from shared.answering.platform_chat.turn_state import TurnState
from shared.generation.confidence import cite
from shared.generation.generators import GenerationRequest
from shared.graph.verbalize import graph_context
from shared.models.chat_stream import Body
from shared.text.token_count import count_tokens
from shared.types import GeneratedText, Graph, Judgement


async def generate(work: TurnState, judgement: Judgement) -> AsyncGenerator[str]:
    """The text as it is written; nothing where confidence is low. Sets the usage of the work. Raises as
    Generator.write."""
    context = ""

    def body() -> Body:
        nonlocal context
        request, context = _chat_request(work)
        return request

    findings = work.findings
    # The marks of an extracted answer count the documents in the order of the sources.
    citations = cite(findings.by_score())
    result = findings.by_query.get(work.question)
    request = GenerationRequest(
        work.question,
        findings.matches(),
        citations,
        body,
        work.turn.streams,
        result.vector if result else None,
    )
    async with aclosing(pipeline.generate(work.core.generator, judgement, request)) as parts:
        async for part in parts:
            if isinstance(part, str):
                yield part
                continue
            work.usage = part.usage
            work.retrieval_tokens = await run_in_threadpool(_retrieval_tokens, work, context, part)


def _retrieval_tokens(work: TurnState, context: str, generated: GeneratedText) -> int:
    if context:
        return count_tokens(context)
    return max(0, generated.usage.prompt_tokens - count_tokens(work.question))


def _chat_request(work: TurnState) -> tuple[Body, str]:
    settings = work.core.settings
    connected = " ".join(
        dict.fromkeys(
            words
            for result in work.findings.by_query.values()
            if (words := graph_context(result.graph or Graph()))
        )
    )
    return chat_request(
        work.turn,
        work.model,
        work.findings.matches(),
        connected,
        work.earlier,
        settings.rag_context_tokens,
        settings.rag_history_tokens,
    )
