"""Chat completions by the model alone, by the model over documents, or, without a model, by extraction."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.chat_completions import response
from shared.answering.chat_completions.request import Conversation, truncate_question, with_context
from shared.errors import GenerationFailed
from shared.generation.refusals import insufficient
from shared.models.chat_stream import Body, choices, content_of
from shared.observability.tracing import step
from shared.observability.usage_metrics import RequestTimer, timed_async
from shared.services import Services
from shared.text.chat_message import count_usage
from shared.text.token_count import count_tokens
from shared.types import Filters, Match, Mode, Principal, Query, Usage


@dataclass(frozen=True, slots=True)
class Completed:
    """A completion, and the matches that it is from; None if no documents were searched."""

    answer: Body
    matches: tuple[Match, ...] | None


@dataclass(frozen=True, slots=True)
class Streamed:
    """The same in parts. The caller must close `until`."""

    parts: AsyncGenerator[Body]
    matches: tuple[Match, ...] | None
    until: AsyncExitStack


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The model's request, or an answer that needs no model."""

    request: Body
    matches: tuple[Match, ...] | None
    answer: Body | None = None


async def complete(core: Services, caller: Callable[[], Principal], conversation: Conversation) -> Completed:
    """Raises a RagError."""
    async with timed_async(core.database, caller, "chat"):
        prepared = await _prepare(core, caller(), conversation)
        answer = prepared.answer
        if answer is None:
            with step("generate"):
                reply = await core.require_chat_gateway().complete(prepared.request)
            answer = await run_in_threadpool(response.with_usage, reply, prepared.request)
        return Completed(answer, prepared.matches)


async def stream(core: Services, caller: Callable[[], Principal], conversation: Conversation) -> Streamed:
    """Raises a RagError; so do the parts, later."""
    async with AsyncExitStack() as until:
        timer = RequestTimer(core.database, caller, "chat")
        until.push_async_callback(run_in_threadpool, timer.record)
        prepared = await _prepare(core, caller(), conversation)
        if prepared.answer is not None:
            replies = _each(response.parts(prepared.answer))
        else:
            until.enter_context(step("generate"))
            opening = core.require_chat_gateway().stream(prepared.request)
            replies = await until.enter_async_context(opening)
        parts = await until.enter_async_context(
            aclosing(_complete_parts(replies, conversation, prepared, timer))
        )
        return Streamed(parts, prepared.matches, until.pop_all())


async def _prepare(core: Services, caller: Principal, conversation: Conversation) -> _Prepared:
    gateway = core.chat_gateway
    if gateway and not conversation.request.get("model"):
        conversation = replace(conversation, request={**conversation.request, "model": gateway.model})
    if conversation.bypasses:
        core.require_chat_gateway()
        return _Prepared(conversation.request, None)
    question = await run_in_threadpool(truncate_question, core.embedder, conversation.question())
    query = Query(question, conversation.top_k, Filters(collection=conversation.index), Mode.HYBRID)
    if gateway is None:
        return await _extracted(core, caller, conversation, query)
    matches = (await run_in_threadpool(pipeline.search, core, caller, query)).matches
    settings = core.settings
    request = await run_in_threadpool(
        with_context, conversation, matches, settings.rag_context_tokens, settings.rag_history_tokens
    )
    return _Prepared(request, matches)


async def _extracted(
    core: Services, caller: Principal, conversation: Conversation, query: Query
) -> _Prepared:
    # As a query of the index (functions/index_query.py): one good passage suffices for an answer.
    answer = await pipeline.answer(core, caller, query, judged=1)
    if answer.draft:
        text, usage = answer.draft.text, answer.draft.usage
    else:
        text = insufficient(query.text)
        usage = Usage(count_tokens(query.text), count_tokens(text))
    reply = response.completion(text, core.generator.model, usage)
    return _Prepared(conversation.request, answer.matches, reply)


async def _complete_parts(
    replies: AsyncGenerator[Body], conversation: Conversation, prepared: _Prepared, timer: RequestTimer
) -> AsyncGenerator[Body]:
    """The parts, completed by a last part and by the usage where the gateway sends none. Raises
    GenerationFailed for a stream without a choice."""
    began = ended = counted = False
    latest: Body = {}
    texts: list[str] = []
    async for part in replies:
        began = began or bool(choices(part))
        ended = ended or response.ends(part)
        counted = counted or isinstance(part.get("usage"), dict)
        latest = part
        if conversation.wants_usage:
            texts += (content_of(choice.get("delta")) for choice in choices(part))
        yield part
    if not began:
        raise GenerationFailed
    if not ended:
        yield response.last_part(latest)
    if conversation.wants_usage and not counted:
        yield response.usage_part(latest, await run_in_threadpool(_usage, prepared, texts))
    timer.outcome = "success"


def _usage(prepared: _Prepared, texts: list[str]) -> Body:
    if prepared.answer is not None:
        usage: Body = prepared.answer["usage"]
        return usage
    return response.usage_body(count_usage(prepared.request["messages"], "".join(texts)))


async def _each(parts: Iterable[Body]) -> AsyncGenerator[Body]:
    for part in parts:
        yield part
