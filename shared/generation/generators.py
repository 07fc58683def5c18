"""Step six: from matches to an answer, by a model behind an OpenAI-compatible gateway, or by extraction.

Chunk text is data, inside a fence (prompt_fence.py), and the model gets no tools.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from shared.clients.http import gateway_client
from shared.config import Settings
from shared.errors import ConfigurationError, GenerationFailed
from shared.generation.extractive import MODEL as EXTRACTIVE
from shared.generation.extractive import extract
from shared.models.embeddings import Embedder, embed
from shared.models.openai_model import ChatModel
from shared.text.citations import excerpt
from shared.text.prompt_fence import Fence
from shared.text.token_count import count_tokens, fit_token_budget
from shared.types import Citation, GeneratedText, Match, Query, Sampling, Usage

if TYPE_CHECKING:
    from openai import OpenAI

# Answers that keep to the context, where the caller asks for nothing else.
TEMPERATURE = 0.2
DEFAULT_SAMPLING = Sampling()

TASK = "You answer questions from excerpts of the user's documents, each with its title first."
QUESTION = (
    "Context:\n{context}\n\nQuestion: {question}\n\n"
    "Instructions: Answer the question based ONLY on the context above. If the context doesn't contain "
    "enough information, say so. Keep the answer concise (100-500 words). Cite sources by mentioning their "
    "titles."
)
# The same for the last turn of a conversation, whose length and form are for it to say.
TURN = (
    "Context:\n{context}\n\nQuestion: {question}\n\n"
    "Instructions: Answer the question based ONLY on the context above and on this conversation. If they "
    "don't contain enough information, say so. Cite sources by mentioning their titles."
)
NOTHING_FOUND = "(No document has anything on this.)"


class Generator(Protocol):
    """Writes an answer from matches. Safe to use from many threads."""

    @property
    def model(self) -> str: ...

    def write(
        self,
        query: Query,
        matches: Sequence[Match],
        citations: Sequence[Citation],
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> GeneratedText:
        """Raises GenerationFailed, GenerationTimedOut or GenerationBusy."""
        ...


class Extractive:
    """No model: the best sentences, labelled as such."""

    model = EXTRACTIVE

    def __init__(self, embedder: Embedder, context_tokens: int) -> None:
        self._embedder = embedder
        self._context_tokens = context_tokens

    def write(
        self,
        query: Query,
        matches: Sequence[Match],
        citations: Sequence[Citation],
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> GeneratedText:
        """Sentences are as they are: no sampling changes them."""
        context = fit_token_budget(matches, self._context_tokens, lambda match: count_tokens(match.text))
        draft = extract(query, context, citations, lambda texts: embed(self._embedder, texts))
        read = count_tokens(query.text) + sum(count_tokens(match.text) for match in context)
        return replace(draft, usage=Usage(read, count_tokens(draft.text)))


class Gateway(ChatModel):
    """A chat model behind an OpenAI-compatible gateway."""

    def __init__(self, client: "OpenAI", model: str, seconds: float, context_tokens: int) -> None:
        super().__init__(client, model, seconds)
        self._context_tokens = context_tokens

    def write(
        self,
        query: Query,
        matches: Sequence[Match],
        citations: Sequence[Citation],
        sampling: Sampling = DEFAULT_SAMPLING,
    ) -> GeneratedText:
        fence = Fence()
        context = render_context(matches, fence, self._context_tokens)
        user = QUESTION.format(context=context, question=query.text)
        options = {"temperature": TEMPERATURE, **sampling.specified()}
        draft = self.complete(system_prompt(fence), user, **options)
        if not draft.text.strip():
            raise GenerationFailed
        return replace(draft, text=draft.text.strip())


def system_prompt(fence: Fence) -> str:
    """The task of a model that answers over `render_context`."""
    return fence.system_prompt(TASK, "source")


def render_context(matches: Sequence[Match], fence: Fence, budget: int, *, numbered: bool = False) -> str:
    """The matches that fit the budget of tokens, best first, each inside the fence; `numbered` by their
    places among all of them."""
    numbers = {match.chunk_id: number for number, match in enumerate(matches, start=1)} if numbered else {}

    def shown(match: Match) -> str:
        return excerpt(match.title, match.text, fence, numbers.get(match.chunk_id))

    def cost(match: Match) -> int:
        return count_tokens(shown(match))

    chosen = fit_token_budget(matches, budget, cost)
    if matches and not chosen:
        # Not even the best fits: as much of its beginning as does.
        cut = matches[0]
        while cut.text and (price := cost(cut)) > budget:
            cut = replace(cut, text=cut.text[: len(cut.text) * budget // price - 1])
        chosen = (cut,)
    return "".join(map(shown, chosen)).rstrip("\n")


def generator_for(settings: Settings, embedder: Embedder) -> Generator:
    """The generator that the settings select."""
    if settings.rag_llm_api_key is None:
        if settings.model_fields_set & {"rag_llm_url", "rag_llm_model"}:
            raise ConfigurationError(
                "RAG_LLM_API_KEY: not set, but RAG_LLM_URL or RAG_LLM_MODEL is; "
                "a gateway that wants no key takes any"
            )
        return Extractive(embedder, settings.rag_context_tokens)
    seconds = settings.rag_llm_timeout_seconds
    key = settings.rag_llm_api_key.get_secret_value()
    client = gateway_client(key, settings.rag_llm_url, seconds)
    return Gateway(client, settings.rag_llm_model, seconds, settings.rag_context_tokens)
