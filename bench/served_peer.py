"""HTTP protocol of the compared stores: one route that searches an org's texts, one that adds texts.

The apps of bench/served_langchain.py and bench/served_llama_index.py run without this project's packages,
in an environment of their own. No app checks a token: the caller names its org.
"""

import base64
import os
from array import array
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import httpx
from fastapi import FastAPI
from pydantic import BaseModel

DIMENSIONS = 1536


class SearchRequest(BaseModel):
    org_id: str
    query_text: str
    top_k: int


class AddRequest(BaseModel):
    org_id: str
    texts: list[str]


class Store(Protocol):
    async def search(self, org_id: str, text: str, top_k: int) -> list[dict[str, Any]]:
        """The nearest texts of the org, best first: id, content, metadata, score."""
        ...

    async def add(self, org_id: str, texts: list[str]) -> list[str]:
        """Embed and store the texts; their ids."""
        ...


def serve(open_store: Callable[[], Awaitable[Store]]) -> FastAPI:
    """The app of a store, which the first request opens."""
    app = FastAPI()
    opened: list[Store] = []

    async def store() -> Store:
        if not opened:
            opened.append(await open_store())
        return opened[0]

    @app.post("/search")
    async def search(request: SearchRequest) -> dict[str, Any]:
        results = await (await store()).search(request.org_id, request.query_text, request.top_k)
        return {"results": results}

    @app.post("/documents")
    async def add(request: AddRequest) -> dict[str, Any]:
        return {"ids": await (await store()).add(request.org_id, request.texts)}

    return app


class EmbeddingsClient:
    """A client of the embeddings endpoint, with less work for each request than the package openai has."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(base_url=os.environ["BENCH_EMBEDDINGS_URL"])

    async def embed(self, texts: list[str]) -> list[list[float]]:
        body = {"model": "stand-in", "input": texts, "encoding_format": "base64"}
        response = await self._client.post("/embeddings", json=body)
        response.raise_for_status()
        return [array("f", base64.b64decode(item["embedding"])).tolist() for item in response.json()["data"]]
