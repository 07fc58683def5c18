"""A turn of a conversation, from what was said before to what is kept of it. Retrieval waits in a thread; a
model is waited for by none.

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
from shared.answering.platform_chat.generate import written
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
# As for an answer (cited/answer.py): one good passage suffices.
JUDGED = 1
# Rewriting a question costs this much at most.
REWRITING_TOKENS = 4_000


async def converse(core: Services, caller: Caller, turn: Turn) -> AsyncGenerator[Event]:
    """The turn as it comes about. Raises a RagError, before the first event where retrieval failed."""
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
        work.asked = await rewritten(
            turn.question, work.earlier, work.thinking, seconds, marked_follow_up=turn.is_follow_up
        )
    async with aclosing(_looked(work)) as looked:
        async for happened in looked:
            yield happened
    if turn.deep:
        # Of all parts together: what the answer's numbers count.
        yield Sources(work.findings.by_score())
    retrieval_ms = milliseconds_since(started)
    with step("judge"):
        judgement = _judged(work)
    writing = time.perf_counter()
    withheld = judgement.confidence is Confidence.LOW
    if withheld:
        work.text = insufficient(turn.question)
        yield Delta(work.text)
    else:
        with step("generate"):
            async with aclosing(written(work)) as texts:
                async for text in texts:
                    work.text += text
                    yield Delta(text)
    answered = await run_in_threadpool(
        _answered, work, judgement, started, retrieval_ms, milliseconds_since(writing)
    )
    yield answered


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


def _judged(work: TurnState) -> Judgement:
    """How sure what was found makes. Of several parts at least half must: one that a model thought of is
    easily found, and answers nothing by itself."""
    found = work.findings.by_query.items()
    judged = [pipeline.judge_matches(work.core, each.matches, query, JUDGED) for query, each in found]
    return sorted(judged, key=lambda judgement: judgement.mean_similarity)[len(judged) // 2]


async def _looked(work: TurnState) -> AsyncGenerator[Event]:
    if not work.turn.deep:
        found = work.findings.by_query[work.asked] = await work.look(work.asked)
        yield Sources(found.matches)
        return
    settings = work.core.settings
    bounds = Bounds(settings.rag_multi_step_max_queries, settings.rag_multi_step_max_seconds)
    async with aclosing(
        answer_in_steps(work.asked, work.look, work.thinking, bounds, work.findings)
    ) as reasoning:
        async for happened in reasoning:
            yield happened


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
        asked=work.asked,
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
    """The session that has the turn by now; None where it could not be kept: what was said is said."""
    found = best_of_documents(work.findings.by_score())
    details = {
        "sources": [sessions.source(match) for match in found[: sessions.MAX_SOURCES]],
        "usage": {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens},
        "model": work.model,
    }
    said = [
        *(() if work.session.messages else work.turn.earlier),
        Message("user", work.turn.question),
        Message("assistant", work.text, details),
    ]
    try:
        return sessions.keep_turn(work.core.database, work.caller, work.session, said)
    except RagError as error:
        log.warning("a turn could not be kept: %s", error.because)
        return None
