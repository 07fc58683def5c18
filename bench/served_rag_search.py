"""Servers for bench/http_path.py: the functions rag-search and rag-answer, and a bare handler.

One precomputed vector stands for every query's embedding. Both call PostgREST directly: the local gateway is
Python as well, and its cost would hide the function's.
"""

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
from fastapi import FastAPI, Header

from functions import rag_answer, rag_search
from shared.api.dependencies import get_services
from shared.models.embedding_roles import NO_FORMS, Roles
from shared.observability.request_record_store import RequestRecorder

VECTOR: list[float] = json.loads(os.environ["BENCH_VECTOR"])
POSTGREST = os.environ["BENCH_POSTGREST"]


class FixedEmbedder:
    """An embedder that has embedded already."""

    model = os.environ["BENCH_MODEL"]
    forms = NO_FORMS
    remote = False
    window = 8191
    passage_tokens = 512

    def embed(self, texts: Sequence[str], role: Roles, *, background: bool = False) -> list[list[float]]:
        return [VECTOR for _ in texts]

    def count_tokens(self, text: str) -> int:
        return len(text)


class NoRecorder(RequestRecorder):
    """A recorder of an org that records nothing, which is known for the whole run."""

    def record(self, *_: object) -> bool:
        return False


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services = get_services()
    services.embedder = FixedEmbedder()
    services.database.address = POSTGREST
    if os.environ.get("BENCH_RECORDS") == "none":
        services.recorder = NoRecorder()
    yield
    get_services().close()


ours, answers = rag_search.app, rag_answer.app
ours.router.lifespan_context = answers.router.lifespan_context = _lifespan

bare = FastAPI()
_client = httpx.Client(limits=httpx.Limits(max_connections=64))


@bare.post("/api/rag/search")
def search(body: dict[str, Any], authorization: Annotated[str, Header()]) -> dict[str, Any]:
    """The least that gives the same rows: one counter call, one match, the rows as they come."""
    headers = {"Authorization": authorization, "apikey": os.environ["SUPABASE_ANON_KEY"]}
    counter = {"function": "rag-search", "bucket": "rag", "requests": 1_000_000, "window_seconds": 60}
    _client.post(f"{POSTGREST}/rpc/rag_check_rate_limit", json=counter, headers=headers)
    matching = {"query_vector": VECTOR, "top_k": body["top_k"], "filters": {"model": FixedEmbedder.model}}
    return {"results": _client.post(f"{POSTGREST}/rpc/rag_match", json=matching, headers=headers).json()}
