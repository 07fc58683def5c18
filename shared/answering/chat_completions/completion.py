"""Chat completions: by the model, with or without documents, or extracted without a model."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering import request_recording
from shared.answering.chat_completions import openai_response_format as response
from shared.answering.chat_completions.openai_request import Conversation, truncate_question, with_context
from shared.errors import GenerationFailed
from shared.generation.prompt import is_abstention, may_be_abstention
from shared.generation.refusal_texts import insufficient
from shared.models.chat_stream import Body, choices, completion_text, content_of, usage_in
from shared.observability.usage_metrics import RequestTimer, timed_async
from shared.services import Services
from shared.text.chat_messages import count_usage
from shared.text.history_trimming import HISTORY_TOKENS
from shared.text.token_count import count_tokens
from shared.tracing import step
from shared.types import Filters, GeneratedText, JudgedSearch, Mode, Principal, Query, Usage

# A part of a stream, and the sources, None if no documents were searched. The sources are
# final in the part that ends the answer.
Part = tuple[Body, JudgedSearch | None]


@dataclass(frozen=True, slots=True)
class CompletionStream:
    """A streamed completion. The caller must close `cleanup`."""

    parts: AsyncGenerator[Part]
    cleanup: AsyncExitStack


@dataclass(frozen=True, slots=True)
class _PreparedRequest:
    """The model's request, or an answer that needs no model. `query`: the search, if there was one;
    `question`: of a reply that is to be checked."""

    request: Body
    sources: JudgedSearch | None
    query: Query | None = None
    question: str | None = None
    answer: Body | None = None

    def judge(self, text: str) -> JudgedSearch | None:
        """The sources, with the confidence after a check of the model's text."""
        if self.sources is None or self.question is None or not text.strip():
            return self.sources
        draft = GeneratedText(text, self.request["model"], is_abstention=is_abstention(text))
        judgement = pipeline.judge_draft(self.sources.judgement, draft, self.question, self.sources.matches)
        because = (*judgement.because, *judgement.contradictions)
        return replace(self.sources, judgement=replace(judgement, because=because))

    def refusal_for(self, text: str) -> str | None:
        """The text that replaces the model's, if that is an abstention."""
        return insufficient(self.question) if self.question is not None and is_abstention(text) else None

    def answered_request(
        self, text: str, sources: JudgedSearch | None, usage: Usage | None
    ) -> request_recording.AnsweredRequest | None:
        """The record; None for a reply without a search, or one that is recorded already."""
        if self.query is None or sources is None or self.answer is not None:
            return None
        return request_recording.AnsweredRequest(
            self.query.text,
            [self.query],
            sources.matches,
            sources.judgement,
            None if is_abstention(text) else text,
            self.request["model"],
            usage,
            self.request["messages"],
        )

    def last_parts(self, parts: list[Body], text: str) -> list[Body]:
        """The last parts of the stream, or the refusal in the place of an abstention."""
        refusal = self.refusal_for(text)
        if refusal is None:
            return parts
        return [response.text_part(parts[-1], refusal), response.last_part(parts[-1])]


async def complete(
    services: Services, caller: Callable[[], Principal], conversation: Conversation
) -> tuple[Body, JudgedSearch | None]:
    """A completion and its sources, None if no documents were searched. Raises a RagError."""
    async with timed_async(services.database, caller, "chat"):
        prepared = await _prepare(services, caller(), conversation)
        answer = prepared.answer
        if answer is None:
            with step("generate"):
                reply = await services.require_chat_gateway().complete(prepared.request)
            answer = await run_in_threadpool(response.with_usage, reply, prepared.request)
        text = completion_text(answer)
        sources = await run_in_threadpool(prepared.judge, text)
        if (refusal := prepared.refusal_for(text)) is not None:
            answer = response.with_text(answer, refusal)
        if answered := prepared.answered_request(text, sources, usage_in(answer)):
            await run_in_threadpool(request_recording.record, services, caller, answered)
        return answer, sources


async def stream(
    services: Services, caller: Callable[[], Principal], conversation: Conversation
) -> CompletionStream:
    """Raises a RagError, also while the parts are read."""
    async with AsyncExitStack() as stack:
        timer = RequestTimer(services.database, caller, "chat")
        stack.push_async_callback(run_in_threadpool, timer.record)
        prepared = await _prepare(services, caller(), conversation)
        if prepared.answer is not None:
            replies = _iterate(response.stream_parts(prepared.answer))
        else:
            stack.enter_context(step("generate"))
            opening = services.require_chat_gateway().stream(prepared.request)
            replies = await stack.enter_async_context(opening)
        parts = await stack.enter_async_context(
            aclosing(_complete_parts(services, caller, replies, conversation, prepared, timer))
        )
        return CompletionStream(parts, stack.pop_all())


async def _prepare(services: Services, caller: Principal, conversation: Conversation) -> _PreparedRequest:
    gateway = services.chat_gateway
    if gateway and not conversation.request.get("model"):
        conversation = replace(conversation, request={**conversation.request, "model": gateway.model})
    if conversation.bypasses_documents:
        services.require_chat_gateway()
        return _PreparedRequest(conversation.request, None)
    question = await run_in_threadpool(truncate_question, services.embedder, conversation.question())
    query = Query(question, conversation.top_k, Filters(collection=conversation.index), Mode.HYBRID)
    if gateway is None:
        return await _extract(services, caller, conversation, query)
    sources = await run_in_threadpool(pipeline.search_and_judge, services, caller, query)
    request = await run_in_threadpool(
        with_context, conversation, sources.matches, services.settings.rag_context_tokens, HISTORY_TOKENS
    )
    return _PreparedRequest(request, sources, query, query.text if conversation.has_one_text else None)


async def _extract(
    services: Services, caller: Principal, conversation: Conversation, query: Query
) -> _PreparedRequest:
    answer = await pipeline.answer(services, caller, query)
    await request_recording.record_answer(services, caller, query, answer)
    if answer.draft:
        text, usage = answer.draft.text, answer.draft.usage
    else:
        text = insufficient(query.text)
        usage = Usage(count_tokens(query.text), count_tokens(text))
    reply = response.completion(text, services.generator.model, usage)
    sources = JudgedSearch(answer.matches, answer.judgement)
    return _PreparedRequest(conversation.request, sources, answer=reply)


async def _complete_parts(
    services: Services,
    caller: Callable[[], Principal],
    replies: AsyncGenerator[Body],
    conversation: Conversation,
    prepared: _PreparedRequest,
    timer: RequestTimer,
) -> AsyncGenerator[Part]:
    """The gateway's parts, with the usage if it is missing. Raises GenerationFailed for a stream without a
    choice."""
    has_ended = has_usage = False
    latest: Body = {}
    usage: Body | None = None
    text = ""
    sources = prepared.sources
    # Parts from the first text on, while it may become an abstention.
    buffered: list[Body] = []
    async with aclosing(_with_last_part(replies)) as parts:
        async for reply in parts:
            part = reply
            usage = part["usage"] if isinstance(part.get("usage"), dict) else usage
            if not conversation.wants_usage and "usage" in part:
                # Requested for the quotas alone.
                part = {name: value for name, value in part.items() if name != "usage"}
                if not choices(part):
                    continue
            latest = part
            text += "".join(content_of(choice.get("delta")) for choice in choices(part))
            buffered.append(part)
            if not has_ended and response.is_last_part(part):
                has_ended = True
                sources = await run_in_threadpool(prepared.judge, text)
                buffered = prepared.last_parts(buffered, text)
            elif text and not has_ended and prepared.question and may_be_abstention(text):
                continue
            for each in buffered:
                has_usage = has_usage or isinstance(each.get("usage"), dict)
                yield each, sources
            buffered.clear()
    if conversation.wants_usage and not has_usage:
        if usage is None:
            usage = await run_in_threadpool(_usage, prepared, text)
        yield response.usage_part(latest, usage), sources
    timer.outcome = "success"
    counted = usage_in({"usage": usage}) if usage else None
    if answered := prepared.answered_request(text, sources, counted):
        await run_in_threadpool(request_recording.record, services, caller, answered)


async def _with_last_part(replies: AsyncGenerator[Body]) -> AsyncGenerator[Body]:
    """The gateway's parts, with a last part if it is missing. Raises GenerationFailed for a stream without a
    choice."""
    has_begun = has_ended = False
    latest: Body = {}
    async for part in replies:
        has_begun = has_begun or bool(choices(part))
        has_ended = has_ended or response.is_last_part(part)
        latest = part
        yield part
    if not has_begun:
        raise GenerationFailed
    if not has_ended:
        yield response.last_part(latest)


def _usage(prepared: _PreparedRequest, text: str) -> Body:
    if prepared.answer is not None:
        usage: Body = prepared.answer["usage"]
        return usage
    return response.usage_body(count_usage(prepared.request["messages"], text))


async def _iterate(parts: Iterable[Body]) -> AsyncGenerator[Body]:
    for part in parts:
        yield part
