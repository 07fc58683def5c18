"""Answers whose sentences are checked against the passages before they are sent.

retrieve -> judge -> generate -> check -> compose
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering import request_recording
from shared.answering.cited.numbered_sentences import Composer
from shared.answering.cited.types import AnswerDone, AnswerRequest, Event, RetrievalDone
from shared.answering.routed_search import retrieve
from shared.generation.cited_documents import cite
from shared.generation.generators import GenerationRequest, Generator
from shared.generation.grounding.sentence_checker import Checker, StreamChecker
from shared.generation.grounding.types import CheckResult, Evidence, Verdict
from shared.generation.prompt import CITED_QUESTION, chat_request
from shared.generation.refusal_texts import insufficient, missing_note
from shared.retrieval.highlight import highlight
from shared.services import Services
from shared.text.citation_marks import escape_marks
from shared.text.token_count import count_tokens
from shared.tracing import milliseconds_since
from shared.types import GeneratedText, Match, Principal, Sampling, TextDelta, Usage


async def answer(
    services: Services, caller: Callable[[], Principal], request: AnswerRequest
) -> AsyncGenerator[Event]:
    """Events: retrieval, text, citations, the whole answer. Raises a RagError, before the first event if
    retrieval fails."""
    started = time.perf_counter()
    retrieval = await run_in_threadpool(_retrieve, services, caller, request)
    yield retrieval
    generation_start = time.perf_counter()
    question, matches = request.search.text, retrieval.result.matches
    composer = Composer(matches, request.cites)
    # The composer leaves unsupported sentences out.
    supported: list[CheckResult] = []
    generator: Generator = services.generator if request.abstractive else services.extractive
    is_extractive = generator is services.extractive
    model = generator.model if is_extractive else request.model or generator.model
    usage = Usage()
    generated: GeneratedText | None = None
    if note := missing_note(question, retrieval.judgement):
        yield TextDelta(composer.write_note(note))
    async with aclosing(_check_sentences(services, request, retrieval, generator)) as sentences:
        async for sentence in sentences:
            if isinstance(sentence, GeneratedText):
                generated, usage = sentence, sentence.usage
                judgement = await run_in_threadpool(
                    pipeline.judge_draft, retrieval.judgement, sentence, question, matches, supported
                )
                retrieval = replace(retrieval, judgement=judgement)
                for note in judgement.contradictions:
                    yield TextDelta(composer.write_note(note))
            elif text := composer.add(sentence):
                supported.append(sentence)
                yield TextDelta(text)
    withheld = not composer.is_grounded
    if withheld:
        yield TextDelta(composer.write_note(insufficient(question)))
    for citation in composer.citations if request.cites else ():
        yield citation
    composed = composer.answer()
    generation_ms, total_ms = milliseconds_since(generation_start), milliseconds_since(started)
    answered = request_recording.of_generated(
        question,
        [retrieval.result.query],
        matches,
        retrieval.judgement,
        None if withheld else composed.text,
        generated,
    )
    await run_in_threadpool(request_recording.record, services, caller, answered)
    yield AnswerDone(
        retrieval,
        composed,
        withheld,
        not is_extractive,
        model,
        usage,
        generation_ms,
        total_ms,
    )


def _retrieve(services: Services, caller: Callable[[], Principal], request: AnswerRequest) -> RetrievalDone:
    principal = caller()
    result = retrieve(services, principal, request.search)
    judgement = pipeline.judge_matches(
        services, principal, result.judged_matches, request.search.text, matches=result.matches
    )
    return RetrievalDone(result, judgement)


async def _check_sentences(
    services: Services, request: AnswerRequest, retrieval: RetrievalDone, generator: Generator
) -> AsyncGenerator[CheckResult | GeneratedText]:
    """Each complete sentence with its evidence; last, the whole text."""
    matches = retrieval.result.matches
    generation = GenerationRequest(
        request.search.text,
        matches,
        cite(matches),
        lambda: chat_request(
            request.search.text,
            matches,
            request.model or generator.model,
            services.settings.rag_context_tokens,
            Sampling(max_tokens=request.max_tokens),
            template=CITED_QUESTION,
            numbered=True,
        ),
        request.streams,
        retrieval.result.vector,
    )
    stream: StreamChecker | None = None
    async with aclosing(pipeline.generate(generator, retrieval.judgement, generation)) as parts:
        async for part in parts:
            if generator is services.extractive:
                if isinstance(part, GeneratedText):
                    for sentence in await run_in_threadpool(_extract_sentences, part, request, matches):
                        yield sentence
                    yield part
            elif isinstance(part, str):
                if stream is None:
                    stream = await run_in_threadpool(_stream, matches)
                for sentence in await run_in_threadpool(stream.feed, part):
                    yield sentence
            else:
                for sentence in await run_in_threadpool(stream.close) if stream else ():
                    yield sentence
                yield part


def _stream(matches: Sequence[Match]) -> StreamChecker:
    return StreamChecker(Checker(matches), matches[0].lang)


def _extract_sentences(
    draft: GeneratedText, request: AnswerRequest, matches: Sequence[Match]
) -> list[CheckResult]:
    """The sentences of an extracted answer within max_tokens, a paragraph for each document."""
    if draft.is_abstention:
        return []
    if not draft.sentences:
        best = highlight(matches[0], request.search.text)
        return [CheckResult(escape_marks(best.text), Verdict.SUPPORTED, (Evidence(0, best.start, best.end),))]
    positions = {match.chunk_id: position for position, match in enumerate(matches)}
    budget = request.max_tokens
    checked: list[CheckResult] = []
    for previous, sentence in zip([None, *draft.sentences], draft.sentences, strict=False):
        budget -= count_tokens(sentence.text)
        if budget < 0 and checked:
            break
        space = " " if previous and previous.number == sentence.number else "\n\n"
        evidence = Evidence(positions[sentence.match.chunk_id], sentence.start, sentence.end)
        text = escape_marks(sentence.text)
        checked.append(CheckResult(text, Verdict.SUPPORTED, (evidence,), before=space if previous else ""))
    return checked
