"""A turn of a conversation, from what was said before to what is kept of it. Retrieval waits in a thread; a
model is waited for by none.

    open -> rewrite -> retrieve -> judge -> write -> keep
"""

import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from shared.chat import replies
from shared.chat.asked import Body, cut
from shared.chat.replies import Pairs
from shared.conversations import sessions
from shared.conversations.deep import Bounds, Findings, reason
from shared.conversations.nouns import Answered, Delta, Event, Message, Session, Sources, Turn
from shared.conversations.prompt import request
from shared.conversations.rewrite import rewritten
from shared.conversations.thinking import Thinking
from shared.errors import GenerationFailed, RagError
from shared.extract import MODEL as EXTRACTIVE
from shared.generate import usage_of
from shared.graph.context import graph_context
from shared.pipeline import Pipeline
from shared.policy import INSUFFICIENT, cite
from shared.tokens import count_tokens
from shared.trace import milliseconds_since, step
from shared.types import Confidence, Filters, Found, Graph, Judgement, Match, Principal, Query, Usage

log = logging.getLogger("rag")
# As for an answer (answers/answer.py): one good passage suffices.
JUDGED = 1
# Rewriting a question costs this much at most.
REWRITING_TOKENS = 4_000
Caller = Callable[[], Principal]


@dataclass(slots=True)
class _Work:
    """A turn in progress. `asked` is the question as it is looked for; `earlier` what was said before."""

    core: Pipeline
    caller: Caller
    turn: Turn
    session: Session
    thinking: Thinking | None
    asked: str = ""
    findings: Findings = field(default_factory=Findings)
    model: str = EXTRACTIVE
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    retrieval_tokens: int = 0

    @property
    def earlier(self) -> tuple[Message, ...]:
        return self.session.messages or self.turn.earlier

    async def look(self, text: str) -> Found:
        return await run_in_threadpool(self._found, text)

    def _found(self, text: str) -> Found:
        looking = self.turn.looking
        query = Query(
            cut(self.core.embedder, text),
            looking.top_k,
            Filters(
                org_id=self.session.org_id,
                collection_ids=(self.session.collection_id,) if self.session.collection_id else (),
                metadata=looking.metadata,
            ),
            looking.mode,
            looking.rerank,
            looking.neighbours,
            compares=True,
            graph=looking.graph,
        )
        return self.core.search(self.caller(), query)


async def converse(core: Pipeline, caller: Caller, turn: Turn) -> AsyncGenerator[Event]:
    """The turn as it comes about. Raises a RagError, before the first event where retrieval failed."""
    started = time.perf_counter()
    with step("locate"):
        session = await run_in_threadpool(
            sessions.open_session, core.database, caller(), turn.session_id, turn.collection_id
        )
    work = _Work(core, caller, turn, session, _thinking(core, turn))
    with step("route"):
        work.asked = await rewritten(
            turn.question, work.earlier, work.thinking, is_follow_up=turn.is_follow_up
        )
    async with aclosing(_looked(work)) as looked:
        async for happened in looked:
            yield happened
    retrieval_ms = milliseconds_since(started)
    matches = work.findings.matches()
    with step("judge"):
        judgement = core.judged(matches, work.asked, JUDGED)
    writing = time.perf_counter()
    withheld = judgement.confidence is Confidence.LOW
    if withheld:
        work.text = INSUFFICIENT
        yield Delta(INSUFFICIENT)
    else:
        with step("generate"):
            async with aclosing(_written(work, matches)) as written:
                async for text in written:
                    work.text += text
                    yield Delta(text)
    answered = await run_in_threadpool(
        _answered, work, matches, judgement, started, retrieval_ms, milliseconds_since(writing)
    )
    yield answered


async def whole(happening: AsyncGenerator[Event]) -> Answered:
    """The end of it. Raises what it raises."""
    async with aclosing(happening):
        async for happened in happening:
            if isinstance(happened, Answered):
                return happened
    raise GenerationFailed


def _thinking(core: Pipeline, turn: Turn) -> Thinking | None:
    if core.chat_gateway is None:
        return None
    settings = core.settings
    model = settings.rag_autoprompt_model or core.chat_gateway.model
    if turn.deep:
        return Thinking(core.chat_gateway, model, settings.rag_deep_tokens, settings.rag_deep_seconds)
    return Thinking(core.chat_gateway, model, REWRITING_TOKENS, settings.rag_rewrite_timeout_seconds)


async def _looked(work: _Work) -> AsyncGenerator[Event]:
    if not work.turn.deep:
        found = work.findings.by_query[work.asked] = await work.look(work.asked)
        yield Sources(found.matches)
        return
    settings = work.core.settings
    bounds = Bounds(settings.rag_deep_questions, settings.rag_deep_seconds)
    async with aclosing(reason(work.asked, work.look, work.thinking, bounds, work.findings)) as reasoning:
        async for happened in reasoning:
            yield happened


async def _written(work: _Work, matches: Sequence[Match]) -> AsyncGenerator[str]:
    """What there is to say. Raises GenerationFailed for a model that says nothing."""
    gateway = work.core.chat_gateway
    if gateway is None:
        for text in await run_in_threadpool(_extracted, work, matches):
            yield text
        return
    work.model = work.turn.model or gateway.model
    asked, context = await run_in_threadpool(_request, work, matches)
    counted: Usage | None = None
    written = ""
    pairs = Pairs()
    async with aclosing(_streamed(work, asked) if work.turn.streams else _complete(work, asked)) as parts:
        async for part, said in parts:
            counted = _usage_in(part) or counted
            if text := pairs.joined(said):
                written += text
                yield text
    if not written.strip():
        raise GenerationFailed
    # Counted while nobody waits for it.
    work.retrieval_tokens = await run_in_threadpool(count_tokens, context)
    if counted is None:
        counted = await run_in_threadpool(_counted, asked, written)
    work.usage = counted


def _request(work: _Work, matches: Sequence[Match]) -> tuple[Body, str]:
    settings = work.core.settings
    connected = " ".join(
        dict.fromkeys(
            words
            for found in work.findings.by_query.values()
            if (words := graph_context(found.graph or Graph()))
        )
    )
    parts = tuple(work.findings.by_query) if work.turn.deep else ()
    return request(
        work.turn,
        work.model,
        matches,
        connected,
        parts,
        work.earlier,
        settings.rag_context_tokens,
        settings.rag_history_tokens,
    )


async def _streamed(work: _Work, asked: Body) -> AsyncGenerator[tuple[Body, str]]:
    async with work.core.require_chat_gateway().stream({**asked, "stream": True}) as parts:
        async for part in parts:
            for choice in replies.choices(part)[:1] or [{}]:
                yield part, replies.said_in(choice.get("delta"))


async def _complete(work: _Work, asked: Body) -> AsyncGenerator[tuple[Body, str]]:
    said = await work.core.require_chat_gateway().complete(asked)
    for choice in replies.choices(said)[:1]:
        yield said, replies.said_in(choice.get("message"))


def _extracted(work: _Work, matches: Sequence[Match]) -> list[str]:
    """The documents' own sentences, a line at a time."""
    draft = work.core.generator.write(Query(work.asked), matches, cite(matches))
    work.usage = draft.usage
    work.retrieval_tokens = max(0, draft.usage.prompt_tokens - count_tokens(work.asked))
    return draft.text.splitlines(keepends=True)


def _usage_in(part: Body) -> Usage | None:
    said = part.get("usage")
    if not isinstance(said, dict):
        return None
    return usage_of(said.get("prompt_tokens"), said.get("completion_tokens"))


def _counted(asked: Body, written: str) -> Usage:
    said = replies.counted(asked, [written])
    return Usage(said["prompt_tokens"], said["completion_tokens"])


def _answered(
    work: _Work,
    matches: tuple[Match, ...],
    judgement: Judgement,
    started: float,
    retrieval_ms: int,
    generation_ms: int,
) -> Answered:
    spent = work.thinking.usage if work.thinking else Usage()
    usage = Usage(
        work.usage.prompt_tokens + spent.prompt_tokens, work.usage.completion_tokens + spent.completion_tokens
    )
    kept = _kept(work, matches, usage)
    return Answered(
        work.turn,
        work.asked,
        tuple(work.findings.by_query) if work.turn.deep else (),
        matches,
        judgement,
        judgement.confidence is Confidence.LOW,
        work.text,
        work.model,
        usage,
        work.retrieval_tokens,
        kept or work.session.session_id,
        work.session.collection_id,
        kept is not None,
        milliseconds_since(started),
        retrieval_ms,
        generation_ms,
    )


def _kept(work: _Work, matches: Sequence[Match], usage: Usage) -> str | None:
    """The session that has the turn by now; None where it could not be kept: what was said is said."""
    details = {
        "sources": [sessions.source(match) for match in matches],
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
