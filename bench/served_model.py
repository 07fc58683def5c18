"""A chat model that answers at once, for bench/platform_chat.py."""

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

PIECES = ("The quarantine ", "lasts ", "fourteen ", "days, ", "as the policy ", "says.")


async def complete(request: Request) -> Response:
    query = await request.json()
    if query.get("stream"):
        return StreamingResponse(_stream(), media_type="text/event-stream")
    message = {"role": "assistant", "content": "".join(PIECES)}
    return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


async def _stream() -> AsyncIterator[bytes]:
    for piece in PIECES:
        yield _part({"content": piece}, None)
    yield _part({}, "stop")
    yield b"data: [DONE]\n\n"


def _part(delta: dict[str, Any], finish: str | None) -> bytes:
    part = {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return f"data: {json.dumps(part)}\n\n".encode()


app = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])
