"""ASGI middleware: request ids, traces, CORS, unexpected errors."""

import re
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.access import token_usage
from shared.access.api_keys import holds_key
from shared.clients.postgrest import SECRET_HEADER
from shared.clients.read_replica import READ_AFTER, Transactions, transactions
from shared.config import on_lambda
from shared.errors import RagError
from shared.observability import opentelemetry
from shared.observability.request_log import request_ended
from shared.tracing import Trace, current, ids_of_client, new_id

_SECRET_HEADER = SECRET_HEADER.lower().encode()
# Other methods may be any text: OpenTelemetry's name for them gets into the log and the traces.
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
# As in rag.ignored_filters, which writes the header for a call of the SQL functions.
_header_text = partial(re.compile(r"[^A-Za-z0-9_.-]").sub, "?")


class RequestContextMiddleware:
    """The outermost middleware: creates the request's trace, adds its ids, the rate limit's headers and the
    exceeded quotas to the response, and logs the request at its end.

    The tokens of a request are recorded before its response ends, so that they count for the next request of
    the client.

    The trace id is that of the client's `traceparent`, or a new one. The request id is that of the client's
    `X-Request-Id`, or the trace id.
    """

    def __init__(self, app: ASGIApp, function: str) -> None:
        self._app = app
        self._function = function

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Only the functions themselves send this header, to PostgREST.
        scope["headers"] = [item for item in scope["headers"] if item[0] != _SECRET_HEADER]
        headers_of_client = Headers(scope=scope)
        trace = self._trace(scope["method"], headers_of_client)
        state = scope.setdefault("state", {})
        state["trace"] = trace
        usage = state["token_usage"] = token_usage.TokenUsage()
        of_request = Transactions.of(headers_of_client.get(READ_AFTER))
        status = 0

        def end() -> None:
            if trace.ended:
                return
            trace.end(getattr(scope.get("route"), "path", None), status)
            request_ended(trace)
            opentelemetry.export(trace)

        async def respond(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update({"X-Request-Id": trace.request_id, "X-Trace-Id": trace.trace_id})
                if trace.ignored_filters:
                    headers["X-Rag-Ignored-Filters"] = ", ".join(map(_header_text, trace.ignored_filters))
                if of_request.written:
                    headers[READ_AFTER] = str(of_request.written)
                _keep_host(headers, headers_of_client.get("host"))
                if (rate_limit := state.get("rate_limit")) is not None:
                    headers.update(rate_limit.headers())
                if usage.exceeded:
                    headers["X-Quota-Exceeded"] = ", ".join(sorted(usage.exceeded))
            elif not message.get("more_body"):
                await usage.record_in_thread()
                if on_lambda():
                    # Lambda freezes the process after the last part of a response.
                    end()
                    await run_in_threadpool(opentelemetry.flush)
            await send(message)

        token, token_of_transactions = current.set(trace), transactions.set(of_request)
        token_of_usage = token_usage.current.set(usage)
        try:
            await self._app(scope, receive, respond)
        finally:
            # A stream that its client left has no last part.
            try:
                await usage.record_in_thread()
            finally:
                end()
                token_usage.current.reset(token_of_usage)
                transactions.reset(token_of_transactions)
                current.reset(token)

    def _trace(self, method: str, headers: Headers) -> Trace:
        trace_id, parent_id = ids_of_client(headers.getlist("traceparent"))
        trace_id = trace_id or new_id(128)
        request_id = headers.get("x-request-id", "")
        # An API key in the wrong header has the form of an id, and must not get into the log.
        is_valid = _REQUEST_ID.fullmatch(request_id) and not holds_key(request_id)
        name = method if method in METHODS else "_OTHER"
        return Trace(request_id if is_valid else trace_id, self._function, name, trace_id, parent_id)


def _keep_host(headers: MutableHeaders, host: str | None) -> None:
    """Starlette redirects to the path without a slash, on any host that the request names."""
    location = urlsplit(headers.get("Location", ""))
    if location.netloc and location.netloc == host:
        headers["Location"] = urlunsplit(("", "", location.path, location.query, ""))


class Cors(CORSMiddleware):
    """Answers every OPTIONS request, as the contract requires; Starlette answers only preflights."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        plain = (
            "access-control-request-method" not in Headers(scope=scope) if scope["type"] == "http" else False
        )
        if plain and scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=self.preflight_headers)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class UnhandledErrorMiddleware:
    """Turns an unexpected exception into the response of `fault`.

    It runs inside Cors, so that browsers can read the response. The log has the type and the line of the
    exception, not the message, which may quote a document or a token.
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
        except Exception as error:
            if scope["type"] != "http":
                raise
            trace: Trace = scope["state"]["trace"]
            trace.error = RagError.code
            trace.log_reason = location_of(error)
            if not started:
                await self._fault()(scope, receive, respond)


def location_of(error: Exception) -> str:
    """The type and the place of an error: in the innermost frame of the project, since libraries mostly raise
    for its faults."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = ([each for each in frames if "site-packages" not in each.filename] or frames)[-1]
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
