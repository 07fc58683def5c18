"""Hosted reranker after Cohere's API, for which a real HTTP server stands in."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.stand_in_server import Reply, Request, StandIn

MODEL = "rerank-v5.0-fast"


@contextmanager
def hosted_reranker(preferred: str) -> Iterator[dict[str, str]]:
    """Settings of a reranker that ranks passages with the preferred text first."""

    def relevance(request: Request) -> dict[str, object]:
        scores = [0.9 if preferred in passage else 0.1 for passage in request.json["documents"]]
        return {"results": [{"index": n, "relevance_score": score} for n, score in enumerate(scores)]}

    with StandIn() as server:
        server.replies(Reply(relevance))
        yield {
            "rag_rerank_provider": "cohere",
            "rag_rerank_api_key": "key",
            "rag_rerank_url": f"{server.url}/v2/rerank",
        }
