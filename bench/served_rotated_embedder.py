"""Embeddings endpoint of the rotated model: python -m bench.served_rotated_embedder PORT."""

import sys
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.rotated_embedder import RotatedEmbedder
from shared.models.embedding_roles import Role

embedder = RotatedEmbedder()


async def embeddings(request: Request) -> JSONResponse:
    texts: list[str] = (await request.json())["input"]
    vectors = await run_in_threadpool(embedder.embed, texts, Role.DOCUMENT, background=len(texts) > 1)
    data: list[dict[str, Any]] = [
        {"index": index, "embedding": vector} for index, vector in enumerate(vectors)
    ]
    usage = {"total_tokens": sum(map(embedder.count_tokens, texts))}
    return JSONResponse({"data": data, "usage": usage})


async def models(request: Request) -> JSONResponse:
    return JSONResponse({"data": [{"id": embedder.model, "max_model_len": embedder.window}]})


app = Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"]), Route("/v1/models", models)])

if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
