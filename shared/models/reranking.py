"""Reranking of matches by the reranker that the settings select.

If a reranker fails, the matches keep their order, and the response says so. A wrong setting stops the start.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from shared.config import Settings
from shared.errors import ConfigurationError, RerankFailed
from shared.models.hosted_rerankers import APIS, HostedReranker
from shared.types import Match, SearchResult

log = logging.getLogger("rag")
# Time-out of reranking, retries included.
RERANK_SECONDS = 5.0
# The provider of a folder's model.
LOCAL = "local"
# Settings without effect unless there is a provider.
SETTINGS_OF_A_PROVIDER = ("rag_rerank_enabled", "rag_rerank_model", "rag_rerank_api_key", "rag_rerank_url")


class Reranker(Protocol):
    """Scores the relevance of passages to a question. Safe to use from many threads."""

    @property
    def model(self) -> str:
        """The name in responses."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """The relevance of each passage, a finite number, in order. Raises RerankFailed."""
        ...


def rerank(reranker: Reranker, query_text: str, result: SearchResult) -> SearchResult:
    """The matches, and those that are judged, sorted by relevance, which becomes their score; equal ones keep
    their order. So do all matches after a failure of the reranker. Raises nothing."""
    # With the title, as for embeddings: a passage alone often does not name its subject.
    texts = {match.chunk_id: f"{match.title}\n{match.text}" for match in (*result.matches, *result.judged)}
    try:
        scores = reranker.score(query_text, [*texts.values()]) if texts else []
    except RerankFailed as error:
        log.warning(
            "reranking failed (%s): the matches keep their order; check the settings RAG_RERANK_…",
            error.log_reason,
        )
        return replace(result, rerank_failed=True)
    score_of = dict(zip(texts, scores, strict=True))
    matches, judged = (_by_score(matches, score_of) for matches in (result.matches, result.judged))
    return replace(result, matches=matches, judged=judged, reranked_by=reranker.model)


def _by_score(matches: Sequence[Match], score_of: Mapping[str, float]) -> tuple[Match, ...]:
    """Clamped after sorting, so that scores outside 0..1 keep their order."""
    ordered = sorted(matches, key=lambda match: score_of[match.chunk_id], reverse=True)
    scores = [min(1.0, max(0.0, score_of[match.chunk_id])) for match in ordered]
    return tuple(
        replace(match, score=score, relevance=score) for match, score in zip(ordered, scores, strict=True)
    )


def reranker_for(settings: Settings) -> Reranker | None:
    """The reranker of the settings; None without a provider. Raises ConfigurationError for settings that need
    another."""
    provider, key = settings.rag_rerank_provider, settings.rag_rerank_api_key
    if provider is None:
        for name in SETTINGS_OF_A_PROVIDER:
            if getattr(settings, name):
                raise ConfigurationError(
                    f"{name.upper()}: set, but RAG_RERANK_PROVIDER is not; set RAG_RERANK_PROVIDER to one of "
                    f"{', '.join((*APIS, LOCAL))}, or remove {name.upper()}"
                )
        return None
    if provider == LOCAL:
        return _local_reader(settings.rag_rerank_model)
    if key is None:
        raise ConfigurationError(
            f"RAG_RERANK_API_KEY: not set, but RAG_RERANK_PROVIDER is {provider}; set it; "
            "an endpoint without keys accepts any value"
        )
    api = APIS[provider]
    url, model = settings.rag_rerank_url or api.url, settings.rag_rerank_model or api.model
    return HostedReranker(api, url, key.get_secret_value(), model, RERANK_SECONDS)


def _local_reader(folder: str | None) -> Reranker:
    if folder is None:
        raise ConfigurationError(
            f"RAG_RERANK_MODEL: not set, but RAG_RERANK_PROVIDER is {LOCAL}; set it to a folder with "
            "model.onnx and tokenizer.json"
        )
    try:
        from shared.models.local_reader import LocalReader

        return LocalReader(Path(folder), RERANK_SECONDS)
    except ImportError as error:
        raise ConfigurationError(
            f"RAG_RERANK_PROVIDER: {LOCAL} needs {error.name}: pip install -r requirements-local.txt"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"RAG_RERANK_MODEL: {error}") from error


def reranker_details(settings: Settings) -> dict[str, str | None]:
    """Provider, model and host of the reranker, all None without one. Needs no key, which the function health
    does not have."""
    provider = settings.rag_rerank_provider
    if provider is None:
        return dict.fromkeys(("provider", "model", "source"))
    if provider == LOCAL:
        return {
            "provider": provider,
            "model": Path(settings.rag_rerank_model or "").resolve().name,
            "source": LOCAL,
        }
    api = APIS[provider]
    host = urlsplit(settings.rag_rerank_url or api.url).hostname
    return {"provider": provider, "model": settings.rag_rerank_model or api.model, "source": host}
