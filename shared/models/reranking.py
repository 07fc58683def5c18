"""Reranking of matches by the reranker that the settings select.

If a reranker fails, the matches keep their order, and the response says so. A wrong setting or a missing
model stops the start.
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
# FlashRank's folder for models. Other users may write to it, so that the setting accepts a folder, too.
FLASHRANK_FOLDER = Path("/tmp")  # noqa: S108


class Reranker(Protocol):
    """Scores the relevance of passages to a question. Safe to use from many threads.

    It gets the texts alone: in tests the first stage's scores did not improve the result.
    """

    @property
    def model(self) -> str:
        """The name in responses."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """The relevance of each passage, 0..1, in order. Raises RerankFailed."""
        ...


def rerank(reranker: Reranker, query_text: str, result: SearchResult) -> SearchResult:
    """The matches sorted by relevance, which becomes their score; equal ones keep their order. So do all
    matches after a failure of the reranker. Raises nothing."""
    matches = result.matches
    if not matches:
        return replace(result, reranked_by=reranker.model)
    try:
        # With the title, as for embeddings: a passage alone often does not name its subject.
        scores = reranker.score(query_text, [f"{match.title}\n{match.text}" for match in matches])
        if len(scores) != len(matches) or not all(map(math.isfinite, scores)):
            raise RerankFailed(log_reason="not a number for each")
    except Exception as error:  # a broken model raises errors of many types
        log_reason = error.log_reason if isinstance(error, RerankFailed) else type(error).__name__
        log.warning("reranking failed (%s): the order stays as it was", log_reason)
        return replace(result, rerank_failed=True)
    order = sorted(range(len(matches)), key=scores.__getitem__, reverse=True)
    # Clamped after sorting, so that scores outside 0..1 keep their order.
    ordered = tuple(replace(matches[index], score=min(1.0, max(0.0, scores[index]))) for index in order)
    return replace(result, matches=ordered, reranked_by=reranker.model)


def reranker_for(settings: Settings) -> Reranker | None:
    """The reranker that the settings select; None without a selection and without the local model.

    Raises ConfigurationError for invalid settings.
    """
    provider, key = settings.rag_rerank_provider, settings.rag_rerank_api_key
    if provider in APIS:
        if key is None:
            raise ConfigurationError(
                f"RAG_RERANK_API_KEY: not set, but RAG_RERANK_PROVIDER is {provider}; "
                "an endpoint without keys accepts any value"
            )
        api, seconds = APIS[provider], settings.rag_rerank_timeout_seconds
        url, model = settings.rag_rerank_url or api.url, settings.rag_rerank_model or api.model
        return HostedReranker(api, url, key.get_secret_value(), model, seconds)
    for name in ("rag_rerank_api_key", "rag_rerank_url"):
        if getattr(settings, name) is not None:
            raise ConfigurationError(
                f"{name.upper()}: set, but RAG_RERANK_PROVIDER is {provider}, which runs locally"
            )
    return _flashrank(settings) if provider == "flashrank" else _local(settings)


def reranker_details(settings: Settings) -> dict[str, str | None]:
    """Provider, model and host of the reranker, all None without one. Needs no key, which the function health
    does not have.

    Raises ConfigurationError for other invalid settings.
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
    """From a folder, or by FlashRank's name of the model."""
    name = settings.rag_rerank_model or FLASHRANK_MODEL
    try:
        return _cross_encoder(FLASHRANK_FOLDER / name, settings.rag_rerank_timeout_seconds)
    except Exception as error:  # broken files raise errors of many types
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
