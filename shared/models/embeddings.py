"""Step three: text to vectors, by whichever embedder the settings select.

All vectors leave here with 1536 dimensions: shorter ones are padded with zeros, which leaves every cosine
as it was. A wrong key is an error, never a silent fallback to the local model.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from shared.clients.http import deadline, openai_client, retry_service
from shared.config import LOCAL_MODEL, Settings
from shared.errors import ConfigurationError, EmbeddingFailed
from shared.models.chunk_limits import MINILM, OPENAI, EmbedderLimits
from shared.models.openai_model import OpenAIModel
from shared.text.token_count import count_tokens

if TYPE_CHECKING:
    from shared.models.minilm import MiniLM

DIMENSIONS = 1536
# How many passages of an ingestion are embedded before its lease or client is checked again: a few seconds of
# the local model.
EMBEDDED_AT_ONCE = 64
# Only these models can be asked for so many; others have their own.
SIZED = "text-embedding-3"


class Embedder(Protocol):
    """Turns texts into vectors. Safe to use from many threads."""

    @property
    def model(self) -> str: ...

    @property
    def remote(self) -> bool:
        """Whether embedding is a call to a service, which takes its time and may cost money."""
        ...

    @property
    def window(self) -> int:
        """How many tokens of a text it reads at most."""
        ...

    @property
    def passage_tokens(self) -> int:
        """How many tokens a stored passage should have at most."""
        ...

    def embed(self, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
        """A vector a text, in order. `background`: the texts are passages of an ingestion, which a local
        model embeds at a lower priority. Raises EmbeddingFailed."""
        ...

    def count_tokens(self, text: str) -> int: ...


class OpenAIEmbedder(OpenAIModel):
    """Any OpenAI-compatible embeddings endpoint."""

    remote = True
    window = OPENAI.window
    passage_tokens = OPENAI.passage_tokens
    batch = 128

    def embed(self, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
        """Batches of 128, each within the time-out of the settings, further tries included."""
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self.batch):
            with deadline(self.seconds):
                vectors += self._batch(list(texts[start : start + self.batch]))
        return vectors

    def _batch(self, texts: list[str]) -> list[list[float]]:
        from openai import APIConnectionError, OpenAIError

        size = {"dimensions": DIMENSIONS} if self.model.startswith(SIZED) else {}

        def create() -> Any:
            return self._client.embeddings.create(
                model=self.model,
                input=texts,
                encoding_format="float",
                **size,  # type: ignore[arg-type]
            )

        try:
            response = retry_service(create, lost=APIConnectionError)
        except (OpenAIError, ValueError) as error:
            raise EmbeddingFailed from error
        try:
            vectors = [item.embedding for item in sorted(response.data, key=lambda item: item.index)]
        except (AttributeError, TypeError) as error:
            # The client returns any content of a response with status 200.
            raise EmbeddingFailed from error
        if len(vectors) != len(texts):
            raise EmbeddingFailed
        return vectors

    def count_tokens(self, text: str) -> int:
        return count_tokens(text)


@cache
def local_model() -> "MiniLM":
    """The local model, loaded once a process, for whatever needs it. Raises ImportError or FileNotFoundError,
    which say what is missing, where it is not installed."""
    from shared.models.minilm import MiniLM

    return MiniLM()


def local_embedder() -> Embedder:
    """The local model as embedder. Raises ConfigurationError where it is not installed."""
    try:
        return local_model()
    except (ImportError, FileNotFoundError) as error:
        raise ConfigurationError(
            f"OPENAI_API_KEY: not set, and the local embedding model is not installed ({error})"
        ) from error


def model_of(settings: Settings) -> str:
    """The model that embeds here, told without making its embedder."""
    return LOCAL_MODEL if settings.openai_api_key is None else settings.rag_embedding_model


def reads_of(settings: Settings) -> EmbedderLimits:
    """How much what embeds here reads, told without making it."""
    return MINILM if settings.openai_api_key is None else OPENAI


def embedder_for(settings: Settings) -> Embedder:
    """The embedder that the settings select. Raises ConfigurationError when there is none."""
    if settings.openai_api_key is None:
        if settings.model_fields_set & {"rag_embedding_url", "rag_embedding_model"}:
            raise ConfigurationError(
                "OPENAI_API_KEY: not set, but RAG_EMBEDDING_URL or RAG_EMBEDDING_MODEL is; "
                "an endpoint that wants no key takes any"
            )
        return local_embedder()
    seconds = settings.rag_embedding_timeout_seconds
    key = settings.openai_api_key.get_secret_value()
    client = openai_client(key, settings.rag_embedding_url, seconds)
    return OpenAIEmbedder(client, settings.rag_embedding_model, seconds)


def embed(embedder: Embedder, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
    """Vectors of exactly 1536 finite numbers, a vector a text. Raises EmbeddingFailed."""
    return [padded(vector) for vector in embedder.embed(texts, background=background)]


def padded(vector: list[float]) -> list[float]:
    """A vector of any embedder's, or whatever came in its place, with 1536 dimensions. Raises
    EmbeddingFailed for more of them, for what is not finite and for what has no direction."""
    try:
        # One pass over all of them: NaN and infinity survive a sum, and words have no size.
        size = math.fsum(map(abs, vector))
    except (TypeError, OverflowError):
        raise EmbeddingFailed from None
    if not isinstance(vector, list) or len(vector) > DIMENSIONS or not math.isfinite(size) or size == 0:
        raise EmbeddingFailed
    return vector + [0.0] * (DIMENSIONS - len(vector))
