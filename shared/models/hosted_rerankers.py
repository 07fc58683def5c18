"""Client of the rerankers of Cohere, Jina, Voyage and Mixedbread.

`APIS` describes their differences. Logs and errors contain types and statuses alone, never a text or the key.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from shared.access.token_usage import Quota, add_call, reported_tokens
from shared.clients.http_client import deadline, http_client, retry_service
from shared.clients.proxies import proxy_of_url
from shared.errors import RerankFailed
from shared.text.token_count import count_tokens
from shared.tracing import call, model_attributes

# Errors that are retried. (After a time-out no time is left.)
BROKEN = (httpx.NetworkError, httpx.RemoteProtocolError)


@dataclass(frozen=True)
class Api:
    """Defaults of one provider, and the names of fields in its requests and responses."""

    provider: str
    url: str
    model: str
    batch: int  # passages in a request, at most
    passages: str = "documents"
    limit: str = "top_n"
    results: str = "results"
    relevance: str = "relevance_score"
    options: Mapping[str, Any] = field(default_factory=dict)


# As documented: docs.cohere.com/reference/rerank, jina.ai/reranker, docs.voyageai.com/reference/reranker-api,
# mixedbread.com/api-reference. Jina documents no maximum of passages; searches return at most 100.
APIS = {
    "cohere": Api("cohere", "https://api.cohere.com/v2/rerank", "rerank-v5.0-fast", batch=1000),
    "jina": Api(
        "jina",
        "https://api.jina.ai/v1/rerank",
        "jina-reranker-v3.5",
        batch=100,
        options={"return_documents": False},
    ),
    "voyage": Api(
        "voyage",
        "https://api.voyageai.com/v1/rerank",
        "rerank-2.5",
        batch=1000,
        limit="top_k",
        results="data",
        options={"return_documents": False, "truncation": True},
    ),
    "mixedbread": Api(
        "mixedbread",
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
    """A reranker at one of these APIs, or at a compatible endpoint."""

    def __init__(self, api: Api, url: str, key: str, model: str, timeout_seconds: float) -> None:
        self._api = api
        self._url = url
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._attributes = model_attributes("rerank", api.provider, model, url)
        self._seconds = timeout_seconds
        proxy_of_url(url)
        self._client = http_client(timeout_seconds)
        self.model = model

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """All batches and retries are within the time-out of the settings."""
        size = self._api.batch
        with deadline(self._seconds):
            batches = [passages[start : start + size] for start in range(0, len(passages), size)]
            return [score for batch in batches for score in self._batch(query, list(batch))]

    def _batch(self, query: str, passages: list[str]) -> list[float]:
        body = {
            "model": self.model,
            "query": query,
            self._api.passages: passages,
            # Always set, since a provider's default may be less than all passages.
            self._api.limit: len(passages),
            **self._api.options,
        }
        with call(f"rerank {self.model}", self._attributes):
            return self._request(body, len(passages))

    def _request(self, body: dict[str, Any], count: int) -> list[float]:
        try:
            response = retry_service(partial(self._post, body), lost=BROKEN)
        except httpx.HTTPStatusError as error:
            raise RerankFailed(log_reason=f"HTTP {error.response.status_code}") from None
        # ValueError: a text or key that cannot be sent. The cause is not chained, since it may quote them.
        except (httpx.HTTPError, ValueError) as error:
            raise RerankFailed(log_reason=type(error).__name__) from None
        try:
            reply = response.json()
            add_call(Quota.MODEL, self._tokens(reply, body))
            return self._scores(reply, count)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            raise RerankFailed(log_reason="malformed answer") from None

    def _tokens(self, reply: Any, body: Mapping[str, Any]) -> int:
        """As the provider reports them, else an estimate: the query is read with each passage."""
        tokens = reported_tokens(reply)
        if tokens is not None:
            return tokens
        passages = body[self._api.passages]
        return len(passages) * count_tokens(body["query"]) + sum(map(count_tokens, passages))

    def _post(self, body: dict[str, Any]) -> httpx.Response:
        response = self._client.post(self._url, json=body, headers=self._headers)
        if response.status_code != 200:
            raise httpx.HTTPStatusError("", request=response.request, response=response)
        return response

    def _scores(self, answer: Any, count: int) -> list[float]:
        """Exactly one score for each passage. Raises ValueError, TypeError, KeyError or IndexError."""
        scores = [math.nan] * count
        for result in answer[self._api.results]:
            index, score = result["index"], result[self._api.relevance]
            # In Python bool is an int, and -1 is the last index.
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
