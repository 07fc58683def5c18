"""The same matches in a better order, by whichever reranker the settings select, for searches that want it.

A reranker that fails at a request costs nobody an answer: the order stays, and the response says so. One that
cannot work at all (a wrong setting, a model that is not there) stops the start.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from shared.config import Settings
from shared.errors import ConfigurationError, RerankFailed
from shared.models.embeddings import local_model
from shared.models.hosted_rerankers import APIS, HostedReranker
from shared.types import SearchResult

log = logging.getLogger("rag")

FLASHRANK_MODEL = "ms-marco-MiniLM-L-12-v2"
# Where FlashRank keeps its models. Others may write there too, hence the setting takes a folder as well.
FLASHRANK_FOLDER = Path("/tmp")  # noqa: S108


class Reranker(Protocol):
    """Tells how relevant passages are to a question. Safe to use from many threads.

    It is given texts alone: the first stage's scores were tried beside them and improved nothing.
    """

    @property
    def model(self) -> str:
        """What responses name."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """A relevance each, 0..1, in order. Raises RerankFailed."""
        ...


def rerank(reranker: Reranker, query_text: str, result: SearchResult) -> SearchResult:
    """The matches by relevance, which becomes their score; equal ones stay in order. Where the reranker
    fails, the order stays. Raises nothing."""
    matches = result.matches
    if not matches:
        return replace(result, reranked_by=reranker.model)
    try:
        # With its title, as passages are embedded: alone they often do not say what they are about.
        scores = reranker.score(query_text, [f"{match.title}\n{match.text}" for match in matches])
        if len(scores) != len(matches) or not all(map(math.isfinite, scores)):
            raise RerankFailed(because="not a number for each")
    except Exception as error:  # a model's files may be wrong in more ways than can be named
        because = error.because if isinstance(error, RerankFailed) else type(error).__name__
        log.warning("reranking failed (%s): the order stays as it was", because)
        return replace(result, rerank_failed=True)
    order = sorted(range(len(matches)), key=scores.__getitem__, reverse=True)
    # Clamped after ordering: a model may leave 0..1, and passages beyond must not become equal by that.
    ordered = tuple(replace(matches[place], score=min(1.0, max(0.0, scores[place]))) for place in order)
    return replace(result, matches=ordered, reranked_by=reranker.model)


def reranker_for(settings: Settings) -> Reranker | None:
    """The reranker that the settings select; None where nobody chose one and there is no local model.

    Raises ConfigurationError for one that cannot work.
    """
    provider, key = settings.rag_rerank_provider, settings.rag_rerank_api_key
    if provider in APIS:
        if key is None:
            raise ConfigurationError(
                f"RAG_RERANK_API_KEY: not set, but RAG_RERANK_PROVIDER is {provider}; "
                "an endpoint that wants no key takes any"
            )
        api, seconds = APIS[provider], settings.rag_rerank_timeout_seconds
        url, model = settings.rag_rerank_url or api.url, settings.rag_rerank_model or api.model
        return HostedReranker(api, url, key.get_secret_value(), model, seconds)
    for name in ("rag_rerank_api_key", "rag_rerank_url"):
        if getattr(settings, name) is not None:
            raise ConfigurationError(
                f"{name.upper()}: set, but RAG_RERANK_PROVIDER is {provider}, which runs here"
            )
    return _flashrank(settings) if provider == "flashrank" else _local(settings)


def described(settings: Settings) -> dict[str, str | None]:
    """Provider, model and host of the reranker, for health, which holds no key; all None where there is none.

    Raises ConfigurationError as reranker_for does, but for a key.
    """
    provider = settings.rag_rerank_provider
    if provider in APIS:
        api = APIS[provider]
        host = urlsplit(settings.rag_rerank_url or api.url).hostname
        return {"provider": provider, "model": settings.rag_rerank_model or api.model, "source": host}
    if (reranker := reranker_for(settings)) is None:
        return dict.fromkeys(("provider", "model", "source"))
    return {"provider": provider, "model": reranker.model, "source": "local"}


def _flashrank(settings: Settings) -> Reranker:
    """By a folder, or by FlashRank's name for the model."""
    name = settings.rag_rerank_model or FLASHRANK_MODEL
    try:
        return _cross_encoder(FLASHRANK_FOLDER / name, settings.rag_rerank_timeout_seconds)
    except Exception as error:  # of half a dozen kinds, for files that are no model
        raise ConfigurationError(
            f"RAG_RERANK_MODEL: FlashRank's model {name} cannot be read ({error})"
        ) from error


@cache
def _cross_encoder(folder: Path, timeout_seconds: float) -> Reranker:
    from shared.models.flashrank import CrossEncoder

    return CrossEncoder(folder, timeout_seconds)


def _local(settings: Settings) -> Reranker | None:
    try:
        from shared.models.local_reranker import LocalReranker

        reranker = LocalReranker(local_model(), settings.rag_rerank_timeout_seconds)
    except (ImportError, FileNotFoundError) as error:
        if settings.rag_rerank_enabled or "rag_rerank_provider" in settings.model_fields_set:
            raise ConfigurationError(
                f"RAG_RERANK_PROVIDER: local, but the local model is not installed ({error})"
            ) from error
        return None
    if settings.rag_rerank_model not in (None, reranker.model):
        raise ConfigurationError(
            f"RAG_RERANK_MODEL: RAG_RERANK_PROVIDER is local, whose only model is {reranker.model}"
        )
    return reranker
