"""Limit of the size of a request's body."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.errors import BodyTooLarge

MAX_BODY_BYTES = 256 * 1024


class BodyLimit:
    """Refuses a larger body with 413 before it is read whole."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES, message: str | None = None) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._message = message or BodyTooLarge().args[0]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        too_large = declared.isdecimal() and int(declared) > self._max_bytes
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            if too_large:
                raise HTTPException(413, self._message)
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise HTTPException(413, self._message)
            return message

        await self._app(scope, receive_bounded, send)
