"""A turn of a conversation. Retrieval is blocking and runs in threads; model calls are asynchronous.

open -> rewrite -> retrieve -> judge -> generate -> save
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering import request_recording
from shared.answering.platform_chat import sessions
from shared.answering.platform_chat.budgeted_model import BudgetedModel
from shared.answering.platform_chat.follow_up_rewriting.rewriter import rewrite_question
from shared.answering.platform_chat.multi_step_search import (
    MULTI_STEP_QUERIES,
    MULTI_STEP_SHARE,
    MULTI_STEP_TOKENS,
    search_in_steps,
)
from shared.answering.platform_chat.turn_state import Caller, Event, TurnDone, TurnState
from shared.answering.platform_chat.turn_text import generate
from shared.answering.platform_chat.types import Message, Sources, Turn
from shared.errors import logged
from shared.generation.cited_documents import best_of_documents
from shared.generation.refusal_texts import insufficient
from shared.services import Services
from shared.text.prefixed_ids import NIL
from shared.tracing import milliseconds_since, step
from shared.types import Confidence, Judgement, TextDelta, Usage

# The budget of tokens of a rewritten question, and its time limit as a share of the model's time-out.
REWRITING_TOKENS, REWRITING_SHARE = 4_000, 1 / 6


async def converse(services: Services, caller: Caller, turn: Turn) -> AsyncGenerator[Event]:
    """The turn's events. Raises a RagError, before the first event if retrieval fails."""
    started = time.perf_counter()
    with step("locate"):
        session = await run_in_threadpool(
            sessions.open_session, services.database, caller(), turn.session_id, turn.collection_id
        )
    state = TurnState(services, caller, turn, session, _query_model(services, turn))
    if services.chat_gateway:
        state.model = turn.model or services.chat_gateway.model
    with step("route"):
        seconds = REWRITING_SHARE * services.settings.rag_llm_timeout_seconds
        state.question, state.previous = await rewrite_question(
            turn.question, state.history, state.query_model, seconds, marked_follow_up=turn.is_follow_up
        )
    async with aclosing(_retrieve(state)) as events:
        async for event in events:
            yield event
    if turn.deep:
        # The marks of the answer refer to the matches of all queries.
        yield Sources(state.results.by_score())
    retrieval_ms = milliseconds_since(started)
    judgement = _judge(state)
    generation_start = time.perf_counter()
    async with aclosing(generate(state, judgement)) as texts:
        async for text in texts:
            state.text += text
            yield TextDelta(text)
    judgement = await run_in_threadpool(_judge_text, state, judgement)
    for note in judgement.contradictions:
        state.text += f"\n\n{note}"
        yield TextDelta(f"\n\n{note}")
    if judgement.confidence is Confidence.LOW:
        refusal = insufficient(turn.question)
        state.text += refusal
        yield TextDelta(refusal)
    yield await run_in_threadpool(
        _turn_done, state, judgement, started, retrieval_ms, milliseconds_since(generation_start)
    )


def _query_model(services: Services, turn: Turn) -> BudgetedModel | None:
    if services.chat_gateway is None:
        return None
    tokens, share = (
        (MULTI_STEP_TOKENS, MULTI_STEP_SHARE) if turn.deep else (REWRITING_TOKENS, REWRITING_SHARE)
    )
    seconds = share * services.settings.rag_llm_timeout_seconds
    return BudgetedModel(services.chat_gateway, services.chat_gateway.model, tokens, seconds)


def _judge(state: TurnState) -> Judgement:
    judgement = state.results.median()
    # The caller did not write what a query of the model mentions.
    return judgement if len(state.results.by_query) == 1 else replace(judgement, missing=())


def _judge_text(state: TurnState, judgement: Judgement) -> Judgement:
    """The judgement of the matches and of the text, if there is one."""
    if state.generated is None:
        return judgement
    return pipeline.judge_draft(judgement, state.generated, state.question, state.results.matches())


async def _retrieve(state: TurnState) -> AsyncGenerator[Event]:
    if not state.turn.deep:
        result = state.results.by_query[state.question] = await state.search(state.question)
        yield Sources(result.matches)
        return
    steps = search_in_steps(
        state.question,
        state.search,
        state.query_model,
        state.results,
        max_queries=MULTI_STEP_QUERIES,
        seconds=MULTI_STEP_SHARE * state.services.settings.rag_llm_timeout_seconds,
    )
    async with aclosing(steps) as events:
        async for event in events:
            yield event


def _turn_done(
    state: TurnState, judgement: Judgement, started: float, retrieval_ms: int, generation_ms: int
) -> TurnDone:
    usage = state.usage + (state.query_model.usage if state.query_model else Usage())
    session_id = _save(state, usage)
    answered = request_recording.of_generated(
        state.turn.question,
        state.queries,
        state.results.by_score(),
        judgement,
        None if judgement.confidence is Confidence.LOW else state.text,
        state.generated,
        usage if state.services.chat_gateway else None,
    )
    total_ms = milliseconds_since(started)
    is_recorded = request_recording.record(state.services, state.caller, answered)
    return TurnDone(
        state,
        judgement,
        usage,
        session_id or state.session.session_id or NIL,
        is_saved=session_id is not None,
        is_recorded=is_recorded,
        milliseconds=total_ms,
        retrieval_ms=retrieval_ms,
        generation_ms=generation_ms,
    )


def _save(state: TurnState, usage: Usage) -> str | None:
    """Save the turn; returns the session's id, or None after a failure: the answer is already sent."""
    best = best_of_documents(state.results.by_score())
    details = {
        "sources": [sessions.stored_source(match) for match in best[: sessions.MAX_SOURCES]],
        "usage": {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens},
        "model": state.model,
    }
    messages = [
        *(() if state.session.messages else state.turn.history),
        Message("user", state.turn.question),
        Message("assistant", state.text, details),
    ]
    with logged("a turn of a chat session was not saved (%s)"):
        return sessions.save_turn(state.services.database, state.caller, state.session, messages)
    return None
