"""Rerankers behind paid APIs: one client; what differs between Cohere, Jina, Voyage and Mixedbread is data.

Nothing of a request, of an answer or of the key reaches a log or an error: causes are kinds and statuses.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from shared.clients.http import deadline, http_client, retry_service
from shared.errors import RerankFailed

# Errors of a broken connection. One that took too long has used up the time.
BROKEN = (httpx.NetworkError, httpx.RemoteProtocolError)


@dataclass(frozen=True)
class Api:
    """How one provider's endpoint is asked and answers."""

    url: str
    model: str
    batch: int  # passages in a request, at most
    passages: str = "documents"
    limit: str = "top_n"
    results: str = "results"
    relevance: str = "relevance_score"
    options: Mapping[str, Any] = field(default_factory=dict)


# As documented: docs.cohere.com/reference/rerank, jina.ai/reranker, docs.voyageai.com/reference/reranker-api,
# mixedbread.com/api-reference. Jina names no maximum of passages; the core asks for at most 100.
APIS = {
    "cohere": Api("https://api.cohere.com/v2/rerank", "rerank-english-v3.0", batch=1000),
    "jina": Api(
        "https://api.jina.ai/v1/rerank",
        "jina-reranker-v1-base-en",
        batch=100,
        options={"return_documents": False},
    ),
    "voyage": Api(
        "https://api.voyageai.com/v1/rerank",
        "rerank-2.5",
        batch=1000,
        limit="top_k",
        results="data",
        options={"return_documents": False, "truncation": True},
    ),
    "mixedbread": Api(
        "https://api.mixedbread.com/v1/reranking",
        "mixedbread-ai/mxbai-rerank-large-v2",
        batch=1000,
        passages="input",
        limit="top_k",
        results="data",
        relevance="score",
        options={"return_input": False},
    ),
}


class HostedReranker:
    """One of those APIs, or whatever speaks the same at another address."""

    def __init__(self, api: Api, url: str, key: str, model: str, timeout_seconds: float) -> None:
        self._api = api
        self._url = url
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._seconds = timeout_seconds
        self._client = http_client(timeout_seconds)
        self.model = model

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """All within the time-out of the settings, every batch and further try included."""
        size = self._api.batch
        with deadline(self._seconds):
            batches = [passages[start : start + size] for start in range(0, len(passages), size)]
            return [score for batch in batches for score in self._batch(query, list(batch))]

    def _batch(self, query: str, passages: list[str]) -> list[float]:
        body = {
            "model": self.model,
            "query": query,
            self._api.passages: passages,
            # Always set: a provider's default might answer for fewer than all.
            self._api.limit: len(passages),
            **self._api.options,
        }
        try:
            response = retry_service(partial(self._post, body), lost=BROKEN)
        except httpx.HTTPStatusError as error:
            raise RerankFailed(because=f"HTTP {error.response.status_code}") from None
        # ValueError: a text or a key that cannot be sent. No cause is chained: it could quote either.
        except (httpx.HTTPError, ValueError) as error:
            raise RerankFailed(because=type(error).__name__) from None
        try:
            return self._scores(response.json(), len(passages))
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
            raise RerankFailed(because="malformed answer") from None

    def _post(self, body: dict[str, Any]) -> httpx.Response:
        response = self._client.post(self._url, json=body, headers=self._headers)
        if response.status_code != 200:
            raise httpx.HTTPStatusError("", request=response.request, response=response)
        return response

    def _scores(self, answer: Any, count: int) -> list[float]:
        """One for each passage, exactly; raises ValueError, TypeError, KeyError or IndexError otherwise."""
        scores = [math.nan] * count
        for result in answer[self._api.results]:
            index, score = result["index"], result[self._api.relevance]
            # bool is an int to Python, and -1 the last of a list.
            if type(index) is not int or type(score) not in (int, float) or index < 0:
                raise TypeError
            if not math.isfinite(score) or not math.isnan(scores[index]):
                raise ValueError
            scores[index] = float(score)
        if any(map(math.isnan, scores)):
            raise ValueError
        return scores

    def close(self) -> None:
        self._client.close()
