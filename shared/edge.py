"""What happens to every request and response whatever the route: ASGI middleware, streams included."""

import logging
import re
import traceback
from collections.abc import Callable
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("rag")

MAX_BODY_BYTES = 256 * 1024
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)


class Edge:
    """Outermost: gives every response its request id and, where a limit was counted, the limit's headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else str(uuid4())
        state = scope.setdefault("state", {})
        state["request_id"] = request_id

        async def respond(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                if (spending := state.get("spending")) is not None:
                    headers.update(spending.headers())
            await send(message)

        await self._app(scope, receive, respond)


class Cors(CORSMiddleware):
    """Starlette's, which answers only a browser's preflight; the contract answers every OPTIONS."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plain = (
            "access-control-request-method" not in Headers(scope=scope) if scope["type"] == "http" else False
        )
        if plain and scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=self.preflight_headers)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class Barrier:
    """Turns an exception that nobody named into `fault`.

    It stands inside Cors, so that a browser may read the answer, and logs the exception by its kind and
    place only: its message may quote a document or a token.
    """

    def __init__(self, app: ASGIApp, fault: Callable[[], Response]) -> None:
        self._app = app
        self._fault = fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def respond(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, respond)
        except Exception as raised:
            if scope["type"] != "http":
                raise
            frames = traceback.extract_tb(raised.__traceback__)
            # The last place of ours: libraries raise, but seldom for their own reasons.
            ours = [frame for frame in frames if "site-packages" not in frame.filename]
            place = (ours or frames)[-1]
            request_id = scope["state"]["request_id"]
            log.error(
                "%s at %s:%s, request %s", type(raised).__name__, place.filename, place.lineno, request_id
            )
            if not started:
                await self._fault()(scope, receive, respond)


class BodyLimit:
    """Refuses a body over 256 KiB with 413 before it is read whole."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        too_large = declared.isdigit() and int(declared) > MAX_BODY_BYTES
        taken = 0

        async def take() -> Message:
            nonlocal taken
            if too_large:
                raise HTTPException(413)
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MAX_BODY_BYTES:
                raise HTTPException(413)
            return message

        await self._app(scope, take, send)
