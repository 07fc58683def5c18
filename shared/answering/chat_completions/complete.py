"""A conversation answered: by the model alone, by the model over an index's documents, or, where there is no
model, by their sentences. Retrieval waits in a thread; a model is waited for by none."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.chat_completions import response
from shared.answering.chat_completions.request import Conversation, truncate_question, with_context
from shared.errors import GenerationFailed
from shared.generation.refusals import insufficient
from shared.models.chat_stream import Body
from shared.observability import usage_metrics
from shared.observability.tracing import step
from shared.services import Services
from shared.text.token_count import count_tokens
from shared.types import Filters, Match, Mode, Principal, Query, Usage


@dataclass(frozen=True, slots=True)
class Completed:
    """An answer as a model's endpoint gives it, and what it was asked over; None: no documents."""

    answer: Body
    matches: tuple[Match, ...] | None


@dataclass(frozen=True, slots=True)
class Streamed:
    """The same in parts. Whoever has it must close `until`."""

    parts: AsyncGenerator[Body]
    matches: tuple[Match, ...] | None
    until: AsyncExitStack


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What the model is to be sent; or, where no model is needed, the answer."""

    request: Body
    matches: tuple[Match, ...] | None
    answer: Body | None = None


@dataclass(slots=True)
class _Count:
    outcome: str = "failure"


async def complete(core: Services, caller: Callable[[], Principal], conversation: Conversation) -> Completed:
    """Raises a RagError."""
    async with _counted(core, caller) as count:
        prepared = await run_in_threadpool(_prepare, core, caller(), conversation)
        answer = prepared.answer
        if answer is None:
            with step("generate"):
                said = await core.require_chat_gateway().complete(prepared.request)
            answer = await run_in_threadpool(response.with_usage, said, prepared.request)
        count.outcome = "success"
        return Completed(answer, prepared.matches)


async def stream(core: Services, caller: Callable[[], Principal], conversation: Conversation) -> Streamed:
    """Raises a RagError; so do the parts, later."""
    async with AsyncExitStack() as until:
        count = await until.enter_async_context(_counted(core, caller))
        prepared = await run_in_threadpool(_prepare, core, caller(), conversation)
        if prepared.answer is not None:
            said = _each(response.parts(prepared.answer))
        else:
            until.enter_context(step("generate"))
            opening = core.require_chat_gateway().stream(prepared.request)
            said = await until.enter_async_context(opening)
        parts = await until.enter_async_context(aclosing(_told(said, conversation, prepared, count)))
        return Streamed(parts, prepared.matches, until.pop_all())


def _prepare(core: Services, caller: Principal, conversation: Conversation) -> _Prepared:
    gateway = core.chat_gateway
    if gateway and not conversation.request.get("model"):
        conversation = replace(conversation, request={**conversation.request, "model": gateway.model})
    if conversation.bypasses:
        core.require_chat_gateway()
        return _Prepared(conversation.request, None)
    question = truncate_question(core.embedder, conversation.question())
    query = Query(question, conversation.top_k, Filters(collection=conversation.index), Mode.HYBRID)
    if gateway is None:
        return _extracted(core, caller, conversation, query)
    matches = pipeline.search(core, caller, query).matches
    settings = core.settings
    request = with_context(conversation, matches, settings.rag_context_tokens, settings.rag_history_tokens)
    return _Prepared(request, matches)


def _extracted(core: Services, caller: Principal, conversation: Conversation, query: Query) -> _Prepared:
    # As a query of the index (functions/index_query.py): one good passage suffices for an answer.
    answer = pipeline.answer(core, caller, query, judged=1)
    if answer.draft:
        text, usage = answer.draft.text, answer.draft.usage
    else:
        text = insufficient(query.text)
        usage = Usage(count_tokens(query.text), count_tokens(text))
    said = response.completion(text, core.generator.model, usage)
    return _Prepared(conversation.request, answer.matches, said)


async def _told(
    said: AsyncGenerator[Body], conversation: Conversation, prepared: _Prepared, count: _Count
) -> AsyncGenerator[Body]:
    """The parts, with an end where the endpoint forgot it, and with their usage where that was asked for.
    Raises GenerationFailed where the endpoint ends and has said nothing."""
    began = ended = counted = False
    latest: Body = {}
    texts: list[str] = []
    async for part in said:
        began = began or bool(response.choices(part))
        ended = ended or response.ends(part)
        counted = counted or isinstance(part.get("usage"), dict)
        latest = part
        if conversation.wants_usage:
            texts += (response.content_of(choice.get("delta")) for choice in response.choices(part))
        yield part
    if not began:
        raise GenerationFailed
    if not ended:
        yield response.last_part(latest)
    if conversation.wants_usage and not counted:
        yield response.usage_part(latest, await run_in_threadpool(_usage, prepared, texts))
    count.outcome = "success"


def _usage(prepared: _Prepared, texts: list[str]) -> Body:
    if prepared.answer is not None:
        usage: Body = prepared.answer["usage"]
        return usage
    return response.counted(prepared.request, ["".join(texts)])


async def _each(parts: Iterable[Body]) -> AsyncGenerator[Body]:
    for part in parts:
        yield part


@asynccontextmanager
async def _counted(core: Services, caller: Callable[[], Principal]) -> AsyncIterator[_Count]:
    """Count and time what is done in here."""
    started = time.perf_counter()
    count = _Count()
    try:
        yield count
    finally:
        taken = usage_metrics.of_request("chat", count.outcome, time.perf_counter() - started)
        await run_in_threadpool(usage_metrics.record, core.database, caller, *taken)
