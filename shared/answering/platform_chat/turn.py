"""A turn of a conversation. Retrieval is blocking and runs in threads; model calls are asynchronous.

open -> rewrite -> retrieve -> judge -> write -> keep
"""

import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.platform_chat import sessions
from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.decomposition import Bounds, answer_in_steps
from shared.answering.platform_chat.follow_ups.rewriter import rewritten
from shared.answering.platform_chat.generate import generate
from shared.answering.platform_chat.turn_state import Caller, TurnState
from shared.answering.platform_chat.types import Answered, Delta, Event, Message, Sources, Turn
from shared.errors import RagError
from shared.generation.confidence import best_of_documents
from shared.generation.refusals import insufficient
from shared.observability.tracing import milliseconds_since, step
from shared.services import Services
from shared.text.ids import NIL
from shared.types import Confidence, Judgement, Usage

log = logging.getLogger("rag")
# As in cited/answer.py: one good passage suffices.
JUDGED = 1
# Rewriting a question costs this much at most.
REWRITING_TOKENS = 4_000


async def converse(core: Services, caller: Caller, turn: Turn) -> AsyncGenerator[Event]:
    """The events of the turn. Raises a RagError, before the first event if retrieval fails."""
    started = time.perf_counter()
    with step("locate"):
        session = await run_in_threadpool(
            sessions.open_session, core.database, caller(), turn.session_id, turn.collection_id
        )
    work = TurnState(core, caller, turn, session, _thinking(core, turn))
    if core.chat_gateway:
        work.model = turn.model or core.chat_gateway.model
    with step("route"):
        seconds = core.settings.rag_follow_up_timeout_seconds
        work.question = await rewritten(
            turn.question, work.earlier, work.thinking, seconds, marked_follow_up=turn.is_follow_up
        )
    async with aclosing(_retrieve(work)) as events:
        async for event in events:
            yield event
    if turn.deep:
        # Of all parts together: the marks of the answer count them.
        yield Sources(work.findings.by_score())
    retrieval_ms = milliseconds_since(started)
    judgement = _judge(work)
    writing = time.perf_counter()
    async with aclosing(generate(work, judgement)) as texts:
        async for text in texts:
            work.text += text
            yield Delta(text)
    if judgement.confidence is Confidence.LOW:
        work.text = insufficient(turn.question)
        yield Delta(work.text)
    yield await run_in_threadpool(
        _answered, work, judgement, started, retrieval_ms, milliseconds_since(writing)
    )


def _thinking(core: Services, turn: Turn) -> BudgetedModel | None:
    if core.chat_gateway is None:
        return None
    settings = core.settings
    model = settings.rag_query_rewrite_model or core.chat_gateway.model
    if turn.deep:
        return BudgetedModel(
            core.chat_gateway, model, settings.rag_multi_step_max_tokens, settings.rag_multi_step_max_seconds
        )
    return BudgetedModel(core.chat_gateway, model, REWRITING_TOKENS, settings.rag_follow_up_timeout_seconds)


def _judge(work: TurnState) -> Judgement:
    """The median confidence of the parts: a part that a model invented is easily found, and answers nothing
    by itself."""
    judged = [
        pipeline.judge_matches(work.core, result.matches, query, JUDGED)
        for query, result in work.findings.by_query.items()
    ]
    return sorted(judged, key=lambda judgement: judgement.mean_similarity)[len(judged) // 2]


async def _retrieve(work: TurnState) -> AsyncGenerator[Event]:
    if not work.turn.deep:
        result = work.findings.by_query[work.question] = await work.search(work.question)
        yield Sources(result.matches)
        return
    settings = work.core.settings
    bounds = Bounds(settings.rag_multi_step_max_queries, settings.rag_multi_step_max_seconds)
    steps = answer_in_steps(work.question, work.search, work.thinking, bounds, work.findings)
    async with aclosing(steps) as events:
        async for event in events:
            yield event


def _answered(
    work: TurnState,
    judgement: Judgement,
    started: float,
    retrieval_ms: int,
    generation_ms: int,
) -> Answered:
    spent = work.thinking.usage if work.thinking else Usage()
    usage = Usage(
        work.usage.prompt_tokens + spent.prompt_tokens, work.usage.completion_tokens + spent.completion_tokens
    )
    kept = _save(work, usage)
    return Answered(
        turn=work.turn,
        asked=work.question,
        sub_questions=tuple(work.findings.by_query) if work.turn.deep else (),
        matches=work.findings.by_score(),
        judgement=judgement,
        withheld=judgement.confidence is Confidence.LOW,
        text=work.text,
        model=work.model,
        usage=usage,
        retrieval_tokens=work.retrieval_tokens,
        session_id=kept or work.session.session_id or NIL,
        collection_id=work.session.collection_id,
        kept=kept is not None,
        milliseconds=milliseconds_since(started),
        retrieval_ms=retrieval_ms,
        generation_ms=generation_ms,
    )


def _save(work: TurnState, usage: Usage) -> str | None:
    """Save the turn; returns the session's id, or None if saving failed. A failure does not fail the request,
    whose answer is already sent."""
    best = best_of_documents(work.findings.by_score())
    details = {
        "sources": [sessions.source(match) for match in best[: sessions.MAX_SOURCES]],
        "usage": {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens},
        "model": work.model,
    }
    messages = [
        *(() if work.session.messages else work.turn.earlier),
        Message("user", work.turn.question),
        Message("assistant", work.text, details),
    ]
    try:
        return sessions.keep_turn(work.core.database, work.caller, work.session, messages)
    except RagError as error:
        log.warning("a turn could not be kept: %s", error.because)
        return None
