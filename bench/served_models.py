"""Embedding model and chat model behind HTTP: the local model, and a fixed answer at once.

Both write what a provider would count to the file BENCH_TEXTS, a JSON list for each request.
"""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from shared.models.embedding_roles import Role
from shared.models.embeddings import local_embedder

TEXTS = Path(os.environ["BENCH_TEXTS"])
# Two sentences with their marks.
ANSWER = (
    "The data logger's battery lasts five years at the default interval of ten minutes [1]. At one minute it "
    "lasts about eighteen months, after which the device reports the error code E-42 [2]."
)


def _write(kind: str, *texts: str) -> None:
    with TEXTS.open("a") as file:
        file.write(json.dumps([kind, *texts]) + "\n")


async def embed(request: Request) -> Response:
    texts = (await request.json())["input"]
    _write("embedding", *texts)
    vectors = await run_in_threadpool(local_embedder().embed, texts, Role.DOCUMENT)
    return JSONResponse(
        {"data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]}
    )


async def complete(request: Request) -> Response:
    query = await request.json()
    messages = query["messages"]
    _write("input", *(message["content"] for message in messages))
    _write("output", ANSWER)
    if query.get("stream"):
        return StreamingResponse(_stream(), media_type="text/event-stream")
    message = {"role": "assistant", "content": ANSWER}
    return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


async def _stream() -> AsyncIterator[bytes]:
    deltas = [{"content": f"{word} "} for word in ANSWER.split()]
    for delta, finish in ((deltas, None), ([{}], "stop")):
        for each in delta:
            part = {"id": "1", "choices": [{"index": 0, "delta": each, "finish_reason": finish}]}
            yield f"data: {json.dumps(part)}\n\n".encode()
    yield b"data: [DONE]\n\n"


app = Starlette(
    routes=[
        Route("/v1/embeddings", embed, methods=["POST"]),
        Route("/v1/chat/completions", complete, methods=["POST"]),
    ]
)
