"""Server for bench/search_api.py: the search API's functions, and for each a bare handler that returns the
same rows. Calls PostgREST directly.

Every question is embedded by the local model, whose time counts. The search uses a vector sampled like the
synthetic chunks' vectors, because synthetic text has no meaning.
"""

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
from fastapi import FastAPI, Header
from starlette.applications import Starlette

from bench.tenant_rows import Org
from functions.server import Functions
from shared.api.dependencies import get_services
from shared.models.embedding_roles import NO_FORMS, Role, Roles
from shared.models.embeddings import local_embedder

POSTGREST = os.environ["BENCH_POSTGREST"]
MODEL = os.environ["BENCH_MODEL"]
SAMPLED_VECTORS = [vector.tolist() for vector in Org(*json.loads(os.environ["BENCH_ORG"])).queries(500)]


class SampledEmbedder:
    """An embedder that takes as long as the local model, and gives vectors like the chunks'."""

    model, forms, remote, is_fast = MODEL, NO_FORMS, False, True

    def __init__(self) -> None:
        self._local = local_embedder()
        self.window, self.passage_tokens = self._local.window, self._local.passage_tokens

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        self._local.embed(texts, role)
        return [SAMPLED_VECTORS[sum(text.encode()) % len(SAMPLED_VECTORS)] for text in texts]

    def count_tokens(self, text: str) -> int:
        return self._local.count_tokens(text)


bare = FastAPI()
_client = httpx.Client(base_url=POSTGREST, limits=httpx.Limits(max_connections=64), timeout=30)
_embedder = SampledEmbedder()
Authorization = Annotated[str, Header()]


def _call_twice(authorization: str, function: str, arguments: dict[str, Any]) -> Any:
    """One counter call, and the one that finds something."""
    headers = {"Authorization": authorization, "apikey": os.environ["SUPABASE_ANON_KEY"]}
    counter = {"function": "v1-search", "bucket": "api", "requests": 1_000_000, "window_seconds": 60}
    _client.post("/rpc/rag_check_rate_limit", json=counter, headers=headers)
    answer = _client.post(f"/rpc/{function}", json=arguments, headers=headers)
    answer.raise_for_status()
    return answer.json()


@bare.post("/search")
def search(body: dict[str, Any], authorization: Authorization) -> dict[str, Any]:
    arguments = {
        "query_text": body["q"],
        "query_vector": None if body["mode"] == "keyword" else _embedder.embed([body["q"]], Role.QUESTION)[0],
        "mode": body["mode"],
        "top_k": 10,
        "filters": {"collection_ids": [body["workspaceId"]], "model": MODEL},
    }
    return {"results": _call_twice(authorization, "rag_search", arguments)}


@bare.post("/contents")
def contents(body: dict[str, Any], authorization: Authorization) -> dict[str, Any]:
    return {"results": _call_twice(authorization, "rag_get_contents", body)}


@bare.post("/similar")
def similar(body: dict[str, Any], authorization: Authorization) -> dict[str, Any]:
    arguments = {
        "chunk_id": body["chunkId"],
        "top_k": 10,
        "filters": {"collection_ids": [body["workspaceId"]], "model": MODEL},
    }
    return {"results": _call_twice(authorization, "rag_similar", arguments)}


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    services = get_services()
    services.embedder = _embedder
    services.database._address = POSTGREST
    yield
    services.close()


app = Starlette(lifespan=_lifespan)
app.mount("/bare", bare)
app.router.default = Functions(["v1-search", "v1-contents", "v1-similar"])
