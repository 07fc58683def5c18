"""Chat completions: by the model, with or without documents, or extracted without a model."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.chat_completions import openai_response_format as response
from shared.answering.chat_completions.openai_request import Conversation, truncate_question, with_context
from shared.errors import GenerationFailed
from shared.generation.confidence import JUDGED_MATCHES
from shared.generation.refusals import insufficient
from shared.models.chat_stream import Body, choices, content_of
from shared.observability.tracing import step
from shared.observability.usage_metrics_and_audit_events import RequestTimer, timed_async
from shared.services import Services
from shared.text.chat_messages_and_history import count_usage
from shared.text.token_count import count_tokens
from shared.types import Filters, Judgement, Match, Mode, Principal, Query, Usage


@dataclass(frozen=True, slots=True)
class JudgedMatches:
    """The matches for a question and the confidence in them."""

    matches: tuple[Match, ...]
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class CompletionStream:
    """A streamed completion and its sources, None if no documents were searched. The caller must close
    `cleanup`."""

    parts: AsyncGenerator[Body]
    sources: JudgedMatches | None
    cleanup: AsyncExitStack


@dataclass(frozen=True, slots=True)
class _PreparedRequest:
    """The model's request, or an answer that needs no model."""

    request: Body
    sources: JudgedMatches | None
    answer: Body | None = None


async def complete(
    core: Services, caller: Callable[[], Principal], conversation: Conversation
) -> tuple[Body, JudgedMatches | None]:
    """A completion and its sources, None if no documents were searched. Raises a RagError."""
    async with timed_async(core.database, caller, "chat"):
        prepared = await _prepare(core, caller(), conversation)
        answer = prepared.answer
        if answer is None:
            with step("generate"):
                reply = await core.require_chat_gateway().complete(prepared.request)
            answer = await run_in_threadpool(response.with_usage, reply, prepared.request)
        return answer, prepared.sources


async def stream(
    core: Services, caller: Callable[[], Principal], conversation: Conversation
) -> CompletionStream:
    """Raises a RagError, also while the parts are read."""
    async with AsyncExitStack() as stack:
        timer = RequestTimer(core.database, caller, "chat")
        stack.push_async_callback(run_in_threadpool, timer.record)
        prepared = await _prepare(core, caller(), conversation)
        if prepared.answer is not None:
            replies = _iterate(response.stream_parts(prepared.answer))
        else:
            stack.enter_context(step("generate"))
            opening = core.require_chat_gateway().stream(prepared.request)
            replies = await stack.enter_async_context(opening)
        parts = await stack.enter_async_context(
            aclosing(_complete_parts(replies, conversation, prepared, timer))
        )
        return CompletionStream(parts, prepared.sources, stack.pop_all())


async def _prepare(core: Services, caller: Principal, conversation: Conversation) -> _PreparedRequest:
    gateway = core.chat_gateway
    if gateway and not conversation.request.get("model"):
        conversation = replace(conversation, request={**conversation.request, "model": gateway.model})
    if conversation.bypasses_documents:
        core.require_chat_gateway()
        return _PreparedRequest(conversation.request, None)
    question = await run_in_threadpool(truncate_question, core.embedder, conversation.question())
    query = Query(question, conversation.top_k, Filters(collection=conversation.index), Mode.HYBRID)
    if gateway is None:
        return await _extract(core, caller, conversation, query)
    sources = await run_in_threadpool(_search, core, caller, query)
    settings = core.settings
    request = await run_in_threadpool(
        with_context, conversation, sources.matches, settings.rag_context_tokens, settings.rag_history_tokens
    )
    return _PreparedRequest(request, sources)


def _search(core: Services, caller: Principal, query: Query) -> JudgedMatches:
    wider = replace(query, top_k=max(query.top_k, JUDGED_MATCHES), with_similarity=True)
    matches = pipeline.search(core, caller, wider).matches
    return JudgedMatches(matches[: query.top_k], pipeline.judge_matches(core, caller, matches, query.text))


async def _extract(
    core: Services, caller: Principal, conversation: Conversation, query: Query
) -> _PreparedRequest:
    answer = await pipeline.answer(core, caller, query)
    if answer.draft:
        text, usage = answer.draft.text, answer.draft.usage
    else:
        text = insufficient(query.text)
        usage = Usage(count_tokens(query.text), count_tokens(text))
    reply = response.completion(text, core.generator.model, usage)
    return _PreparedRequest(conversation.request, JudgedMatches(answer.matches, answer.judgement), reply)


async def _complete_parts(
    replies: AsyncGenerator[Body], conversation: Conversation, prepared: _PreparedRequest, timer: RequestTimer
) -> AsyncGenerator[Body]:
    """The gateway's parts, with a last part and the usage if they are missing. Raises GenerationFailed for a
    stream without a choice."""
    began = ended = counted = False
    latest: Body = {}
    texts: list[str] = []
    async for part in replies:
        began = began or bool(choices(part))
        ended = ended or response.is_last_part(part)
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


def _usage(prepared: _PreparedRequest, texts: list[str]) -> Body:
    if prepared.answer is not None:
        usage: Body = prepared.answer["usage"]
        return usage
    return response.usage_body(count_usage(prepared.request["messages"], "".join(texts)))


async def _iterate(parts: Iterable[Body]) -> AsyncGenerator[Body]:
    for part in parts:
        yield part
