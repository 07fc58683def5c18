"""Answers of the search API: each sentence is checked against the passages before a client gets it.

retrieve -> judge -> generate -> check -> compose
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.cited.composer import Composer
from shared.answering.cited.prompt import chat_request
from shared.answering.cited.types import AnswerDone, AnswerRequest, Event, RetrievalDone, Token
from shared.answering.routed_search import retrieve
from shared.generation.confidence import cite
from shared.generation.generators import GenerationRequest, Generator
from shared.generation.grounding.checker import Checker
from shared.generation.grounding.stream import Stream
from shared.generation.grounding.types import CheckResult, Evidence, Verdict
from shared.generation.refusals import insufficient
from shared.observability.tracing import milliseconds_since
from shared.retrieval.highlight import highlight
from shared.services import Services
from shared.text.citations import escape_marks
from shared.text.token_count import count_tokens
from shared.types import GeneratedText, Match, Principal, Usage

# One good passage of a workspace suffices for an answer.
JUDGED = 1


async def answer(
    core: Services, caller: Callable[[], Principal], question: AnswerRequest
) -> AsyncGenerator[Event]:
    """The events of an answer: retrieval, its text, its citations, the whole. Raises a RagError, before the
    first event if retrieval fails."""
    started = time.perf_counter()
    begun = await run_in_threadpool(_begin, core, caller, question)
    yield begun
    writing = time.perf_counter()
    composer = Composer(begun.retrieved.matches, question.cites)
    generator: Generator = core.generator if question.abstractive else core.extractive
    is_extractive = generator is core.extractive
    model = generator.model if is_extractive else question.model or generator.model
    usage = Usage()
    async with aclosing(_checked(core, question, begun, generator)) as sentences:
        async for sentence in sentences:
            if isinstance(sentence, GeneratedText):
                usage = sentence.usage
            elif text := composer.add(sentence):
                yield Token(text)
    withheld = not composer.is_grounded
    if withheld:
        yield Token(composer.say(insufficient(question.wanted.text)))
    for citation in composer.citations if question.cites else ():
        yield citation
    yield AnswerDone(
        begun,
        composer.composed(),
        withheld,
        not is_extractive,
        model,
        usage,
        milliseconds_since(writing),
        milliseconds_since(started),
    )


def _begin(core: Services, caller: Callable[[], Principal], question: AnswerRequest) -> RetrievalDone:
    retrieved = retrieve(core, caller(), question.wanted)
    judgement = pipeline.judge_matches(core, retrieved.matches, question.wanted.text, JUDGED)
    return RetrievalDone(retrieved, judgement)


async def _checked(
    core: Services, question: AnswerRequest, begun: RetrievalDone, generator: Generator
) -> AsyncGenerator[CheckResult | GeneratedText]:
    """Each sentence, as soon as it is complete, with what supports it; the whole text as the last."""
    matches = begun.retrieved.matches
    request = GenerationRequest(
        question.wanted.text,
        matches,
        cite(matches),
        lambda: chat_request(
            question.wanted.text,
            matches,
            core.settings.rag_context_tokens,
            question.model or generator.model,
            question.max_tokens,
        ),
        question.streams,
        begun.retrieved.vector,
    )
    checking: Stream | None = None
    async with aclosing(pipeline.generate(generator, begun.judgement, request)) as parts:
        async for part in parts:
            if generator is core.extractive:
                if isinstance(part, GeneratedText):
                    for sentence in _extracted(part, question, matches):
                        yield sentence
                    yield part
            elif isinstance(part, str):
                if checking is None:
                    checking = await run_in_threadpool(_stream, matches)
                for sentence in await run_in_threadpool(checking.feed, part):
                    yield sentence
            elif checking:
                for sentence in await run_in_threadpool(checking.close):
                    yield sentence
                yield part


def _stream(matches: Sequence[Match]) -> Stream:
    return Stream(Checker(matches), matches[0].lang)


def _extracted(draft: GeneratedText, question: AnswerRequest, matches: Sequence[Match]) -> list[CheckResult]:
    """The sentences of an extracted answer within max_tokens, a paragraph for each document."""
    if not draft.sentences:
        best = highlight(matches[0], question.wanted.text)
        return [CheckResult(escape_marks(best.text), Verdict.SUPPORTED, (Evidence(0, best.start, best.end),))]
    places = {match.chunk_id: place for place, match in enumerate(matches)}
    budget = question.max_tokens
    checked: list[CheckResult] = []
    for previous, sentence in zip([None, *draft.sentences], draft.sentences, strict=False):
        budget -= count_tokens(sentence.text)
        if budget < 0 and checked:
            break
        space = " " if previous and previous.number == sentence.number else "\n\n"
        evidence = Evidence(places[sentence.match.chunk_id], sentence.start, sentence.end)
        text = escape_marks(sentence.text)
        checked.append(CheckResult(text, Verdict.SUPPORTED, (evidence,), before=space if previous else ""))
    return checked
