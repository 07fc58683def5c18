"""An answer as the search API gives it: found, judged, written, and each sentence checked before anybody
sees it. Retrieval waits in a thread; a model is waited for by none.

    retrieve -> judge -> write -> check -> compose
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from shared import pipeline
from shared.answering.chat_completions import response
from shared.answering.chat_completions.response import SurrogateJoiner
from shared.answering.cited.composer import Composer
from shared.answering.cited.prompt import request
from shared.answering.cited.types import AnswerDone, AnswerRequest, Event, RetrievalDone, Token
from shared.answering.routed_search import retrieve
from shared.errors import GenerationFailed
from shared.generation.confidence import cite
from shared.generation.extractive import MODEL as EXTRACTIVE
from shared.generation.extractive import best_sentences
from shared.generation.grounding.checker import Checker
from shared.generation.grounding.stream import Stream
from shared.generation.grounding.types import Checked, Evidence, Verdict
from shared.generation.refusals import insufficient
from shared.models.chat_gateway import ChatGateway
from shared.models.chat_stream import Body
from shared.models.embeddings import embed
from shared.observability.tracing import milliseconds_since, step
from shared.retrieval.highlight import highlight
from shared.services import Services
from shared.text.citations import escape_marks
from shared.text.token_count import count_tokens
from shared.types import Confidence, Match, Principal, Usage

# A workspace may hold one good passage among any others: that one suffices for an answer.
JUDGED = 1


async def answer(
    core: Services, caller: Callable[[], Principal], question: AnswerRequest
) -> AsyncGenerator[Event]:
    """The answer as it comes about: what was found, the text, the citations, and all of it. Raises a
    RagError, before the first event where retrieval failed."""
    started = time.perf_counter()
    begun = await run_in_threadpool(_begin, core, caller, question)
    yield begun
    writing = time.perf_counter()
    composer = Composer(begun.retrieved.matches, question.cites)
    gateway = core.chat_gateway if question.abstractive else None
    model = (question.model or gateway.model) if gateway else EXTRACTIVE
    counting = _Counting()
    async with aclosing(_sentences(core, question, begun, model, counting)) as sentences:
        async for sentence in sentences:
            if said := composer.add(sentence):
                yield Token(said)
    withheld = not composer.is_grounded
    if withheld:
        yield Token(composer.say(insufficient(question.wanted.text)))
    for citation in composer.citations if question.cites else ():
        yield citation
    yield AnswerDone(
        begun,
        composer.composed(),
        withheld,
        model != EXTRACTIVE,
        model,
        await run_in_threadpool(counting.usage),
        milliseconds_since(writing),
        milliseconds_since(started),
    )


def _begin(core: Services, caller: Callable[[], Principal], question: AnswerRequest) -> RetrievalDone:
    retrieved = retrieve(core, caller(), question.wanted)
    with step("judge"):
        judgement = pipeline.judge_matches(core, retrieved.matches, question.wanted.text, JUDGED)
    return RetrievalDone(retrieved, judgement)


async def _sentences(
    core: Services, question: AnswerRequest, begun: RetrievalDone, model: str, counting: "_Counting"
) -> AsyncGenerator[Checked]:
    """What there is to say, each sentence as soon as it is complete: nothing that confidence withholds."""
    if begun.judgement.confidence is Confidence.LOW:
        return
    with step("generate"):
        if model != EXTRACTIVE:
            said = _written(core, question, begun, model, counting)
        else:
            said = _extracted(core, question, begun)
        async with aclosing(said):
            async for sentence in said:
                yield sentence


async def _written(
    core: Services, question: AnswerRequest, begun: RetrievalDone, model: str, counting: "_Counting"
) -> AsyncGenerator[Checked]:
    """What the model says. Raises GenerationFailed for one that says nothing."""
    matches = begun.retrieved.matches
    gateway = core.require_chat_gateway()
    asked, checking = await run_in_threadpool(_prepared, core, question, matches, model)
    counting.read = asked["messages"]
    texts = _streamed(gateway, asked) if question.streams else _complete(gateway, asked)
    pairs = SurrogateJoiner()
    async with aclosing(texts):
        async for text in texts:
            whole_text = pairs.joined(text)
            counting.written += whole_text
            for checked in await run_in_threadpool(checking.feed, whole_text):
                yield checked
    if not counting.written.strip():
        raise GenerationFailed
    for checked in await run_in_threadpool(checking.close):
        yield checked


def _prepared(
    core: Services, question: AnswerRequest, matches: Sequence[Match], model: str
) -> tuple[Body, Stream]:
    """What the model is asked, and what checks what it says: both read all matches."""
    budget = core.settings.rag_context_tokens
    asked = request(question.wanted.text, matches, budget, model, question.max_tokens)
    return asked, Stream(Checker(matches), matches[0].lang)


async def _streamed(gateway: ChatGateway, asked: Body) -> AsyncGenerator[str]:
    async with gateway.stream({**asked, "stream": True}) as parts:
        async for part in parts:
            for choice in response.choices(part):
                yield response.content_of(choice.get("delta"))


async def _complete(gateway: ChatGateway, asked: Body) -> AsyncGenerator[str]:
    said = await gateway.complete(asked)
    for choice in response.choices(said)[:1]:
        yield response.content_of(choice.get("message"))


async def _extracted(
    core: Services, question: AnswerRequest, begun: RetrievalDone
) -> AsyncGenerator[Checked]:
    for checked in await run_in_threadpool(_best, core, question, begun.retrieved.matches):
        yield checked


def _best(core: Services, question: AnswerRequest, matches: Sequence[Match]) -> list[Checked]:
    """The documents' own sentences, a paragraph a document, as many as may be said."""
    chosen, _ = best_sentences(
        question.wanted.text, matches, cite(matches), lambda texts: embed(core.embedder, texts)
    )
    if not chosen:
        best = highlight(matches[0], question.wanted.text)
        return [Checked(escape_marks(best.text), Verdict.SUPPORTED, (Evidence(0, best.start, best.end),))]
    left = question.max_tokens
    found: list[Checked] = []
    for before, sentence in zip([None, *chosen], chosen, strict=False):
        left -= count_tokens(sentence.text)
        if left < 0 and found:
            break
        space = " " if before and before.number == sentence.number else "\n\n"
        backing = Evidence(sentence.place, sentence.start, sentence.end)
        text = escape_marks(sentence.text)
        found.append(Checked(text, Verdict.SUPPORTED, (backing,), before=space if before else ""))
    return found


@dataclass(slots=True)
class _Counting:
    """What the model reads and writes."""

    read: Sequence[Body] = ()
    written: str = ""

    def usage(self) -> Usage:
        """In tokens: an upper bound."""
        return Usage(sum(count_tokens(said["content"]) for said in self.read), count_tokens(self.written))
