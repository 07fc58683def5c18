"""Generators: answers by a model behind an OpenAI-compatible gateway, or extracted from the documents."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool

from shared.errors import GenerationEmpty, GenerationFiltered
from shared.generation.extractive.answer import MODEL as EXTRACTIVE
from shared.generation.extractive.answer import extract
from shared.generation.prompt import author_of, is_abstention, may_be_abstention
from shared.generation.unmentioned_word import unmentioned_note
from shared.models.chat_gateway import ChatGateway
from shared.models.chat_stream import Body, SurrogateJoiner, choices, content_of, usage_in
from shared.models.embeddings import Embedder, embed
from shared.text.chat_messages import count_usage
from shared.text.token_count import count_tokens, fit_token_budget
from shared.types import Citation, GeneratedText, Match, Usage

# A shorter prompt is made in the event loop, in about a millisecond: a thread would delay the first token
# by a third of a millisecond, and longer on a busy machine.
INLINE_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """`matches`: best first; `citations`: their documents, numbered from 1. `chat_request` makes the body of
    a chat completion; a thread calls it for a long prompt. `vector`: the question's embedding, where there is
    one. `history_characters`: the length of the earlier messages that it trims. `previous`: the question that
    a follow-up continues."""

    question: str
    matches: Sequence[Match]
    citations: Sequence[Citation]
    chat_request: Callable[[], Body]
    streams: bool = False
    vector: list[float] | None = None
    history_characters: int = 0
    previous: str = ""

    @property
    def is_long(self) -> bool:
        characters = self.history_characters + sum(len(match.text) for match in self.matches)
        return characters > INLINE_CHARACTERS


# The parts of a text, and at the end the complete text.
Generation = AsyncGenerator[str | GeneratedText]


class Generator(Protocol):
    """Writes an answer from matches. Safe to use from many threads and event loops."""

    @property
    def model(self) -> str: ...

    def write(self, request: GenerationRequest) -> Generation:
        """The text as it is written. Raises GenerationFailed, GenerationTimedOut, GenerationBusy or
        GenerationRefused."""
        ...


class Extractive:
    """Answers without a model (extractive/)."""

    model = EXTRACTIVE

    def __init__(self, embedder: Embedder, context_tokens: int) -> None:
        self._embedder = embedder
        self._context_tokens = context_tokens

    async def write(self, request: GenerationRequest) -> Generation:
        generated = await run_in_threadpool(self.extract, request)
        for line in generated.text.splitlines(keepends=True):
            yield line
        yield generated

    def extract(self, request: GenerationRequest) -> GeneratedText:
        context = fit_token_budget(
            request.matches, self._context_tokens, lambda match: count_tokens(match.text)
        )
        generated = extract(
            request.question,
            context,
            request.citations,
            lambda texts, roles: embed(self._embedder, texts, roles),
            request.vector,
            request.previous,
        )
        read = count_tokens(request.question) + sum(count_tokens(match.text) for match in context)
        note = unmentioned_note(request.question, generated, context)
        generated = replace(generated, text="\n\n".join(filter(None, (note, generated.text))))
        return replace(generated, usage=Usage(read, count_tokens(generated.text)))


class ModelGenerator:
    """A chat model behind an OpenAI-compatible gateway."""

    def __init__(self, gateway: ChatGateway) -> None:
        self._gateway = gateway
        self.model = gateway.model

    async def write(self, request: GenerationRequest) -> Generation:
        make = request.chat_request
        body = await run_in_threadpool(make) if request.is_long else make()
        usage: Usage | None = None
        text, sent, refused = "", 0, False
        pairs = SurrogateJoiner()
        async with aclosing(self._stream(body) if request.streams else self._complete(body)) as replies:
            async for reply, message in replies:
                content = content_of(message)
                refused = refused or (isinstance(message, dict) and bool(message.get("refusal")))
                usage = usage_in(reply) or usage
                text += pairs.joined(content)
                if sent < len(text) and not may_be_abstention(text):
                    yield text[sent:]
                    sent = len(text)
        if not text.strip():
            raise GenerationFiltered(log_reason="the model's refusal") if refused else GenerationEmpty
        if usage is None:
            usage = await run_in_threadpool(count_usage, body["messages"], text)
        if is_abstention(text):
            yield GeneratedText("", body["model"], usage, is_abstention=True, messages=body["messages"])
            return
        if sent < len(text):
            yield text[sent:]
        yield GeneratedText(text, body["model"], usage, messages=body["messages"])

    async def _stream(self, body: Body) -> AsyncGenerator[tuple[Body, Any]]:
        async with self._gateway.stream({**body, "stream": True}, author_of(body)) as parts:
            async for part in parts:
                # The part with the usage has no choice.
                for choice in choices(part)[:1] or [{}]:
                    yield part, choice.get("delta")

    async def _complete(self, body: Body) -> AsyncGenerator[tuple[Body, Any]]:
        reply = await self._gateway.complete(body, author_of(body))
        for choice in choices(reply)[:1]:
            yield reply, choice.get("message")


async def collect(generation: Generation) -> GeneratedText | None:
    """The whole text; None where nothing was generated."""
    complete_text = None
    async with aclosing(generation):
        async for part in generation:
            if isinstance(part, GeneratedText):
                complete_text = part
    return complete_text
