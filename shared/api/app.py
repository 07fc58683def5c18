"""The FastAPI app of a function: middleware, error responses, start and Lambda handler.

A function's file calls `app = create_app(contract, "its-slug")`, adds its routes, and sets `handler =
lambda_handler(app)`.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, nullcontext
from functools import cache, partial, wraps
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from pydantic import BaseModel
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from shared.access import token_usage
from shared.api.body_limit import MAX_BODY_BYTES, BodyLimit
from shared.api.dependencies import get_services
from shared.api.middleware import Cors, RequestContextMiddleware, UnhandledErrorMiddleware
from shared.config import on_lambda, read_server_settings
from shared.errors import (
    BodyTooLarge,
    EmbeddingFailed,
    GenerationRefused,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    RagError,
    Unauthorized,
)
from shared.library_patches.fastapi import LazyResponsesRoute
from shared.observability import opentelemetry
from shared.observability.request_log import configure
from shared.services import Services
from shared.tracing import Trace

CORS_HEADERS = [
    "authorization",
    "x-client-info",
    "apikey",
    "content-type",
    "x-request-id",
    "traceparent",
    "x-rag-read-after",
]
EXPOSED_HEADERS = [
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Quota-Exceeded",
    "X-Rag-Ignored-Filters",
    "Retry-After",
    "X-Request-Id",
    "X-Trace-Id",
    "X-Rag-Read-After",
    "Idempotency-Replayed",
]
# FastAPI's own spans contain whole paths and queries; opentelemetry.py exports spans without them.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


Handler = TypeVar("Handler", bound=Callable[..., Any])


class _MultilinePath(Convertor[str]):
    """Starlette's `{name:path}`, which also matches line breaks, since names may contain them."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("path", _MultilinePath())


class Envelope(Protocol):
    """The module of a contract, which defines the form of its errors."""

    @property
    def ErrorBody(self) -> type[BaseModel]: ...  # noqa: N802  # a class

    def error_body(self, error: RagError) -> dict[str, Any]: ...


# Of RFC 9110. Older versions of Python have the names of its predecessors.
PHRASES = {413: "Content Too Large", 422: "Unprocessable Content"}
# The error statuses of most functions.
ERRORS = (400, 401, 403, 404, 413, 429, 500, 503)


def create_app(
    envelope: Envelope,
    function: str,
    *,
    errors: Collection[int] = ERRORS,
    more_errors: Collection[int] = (),
    unauthorized_status: int = 401,
    searches: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
    too_large: str | None = None,
    headers: Iterable[str] = (),
) -> FastAPI:
    """The app of a function, named by its slug, without routes. It renders errors in the envelope.

    `errors` and `more_errors` are the error statuses in its OpenAPI description. An invalid request has
    status 422 if they contain it, else 400; a missing or invalid credential has `unauthorized_status`.
    `too_large` is the message for a body above the limit; `headers` are further request headers of browsers.
    With `searches`, the start creates the services for searches and answers."""
    configure()
    statuses = sorted({*errors, *more_errors})
    app = FastAPI(
        title=function,
        lifespan=_start,
        generate_unique_id_function=_operation_ids(function),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=NO_TELEMETRY,
        responses={
            status: {
                "model": envelope.ErrorBody,
                "description": PHRASES.get(status, HTTPStatus(status).phrase),
            }
            for status in statuses
        },
    )
    invalid_status = 422 if 422 in statuses else 400
    if invalid_status != 422:  # which FastAPI describes by itself
        app.openapi = partial(_described, app.openapi)  # type: ignore[method-assign]
    app.router.route_class = _Route
    app.state.function, app.state.searches = function, searches
    render = partial(_rendered, envelope, unauthorized_status)
    app.add_exception_handler(RagError, _handler(render, lambda error: error))
    app.add_exception_handler(RequestValidationError, _handler(render, partial(_invalid, invalid_status)))
    app.add_exception_handler(HTTPException, _handler(render, _http))
    # The last added is the outermost.
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes, message=too_large)
    app.add_middleware(UnhandledErrorMiddleware, fault=lambda: render(RagError()))
    app.add_middleware(
        Cors,
        allow_origins=read_server_settings().rag_cors_origins,
        allow_methods=["GET", "POST", "PATCH", "DELETE", "OPTIONS"],
        allow_headers=[*CORS_HEADERS, *headers],
        expose_headers=EXPOSED_HEADERS,
    )
    app.add_middleware(RequestContextMiddleware, function=function)
    return app


def _rendered(envelope: Envelope, unauthorized_status: int, error: RagError) -> Response:
    status = unauthorized_status if isinstance(error, Unauthorized) else error.status
    return JSONResponse(envelope.error_body(error), status, error.headers)


def _handler(
    render: Callable[[RagError], Response], to_error: Callable[[Any], RagError]
) -> Callable[[Request, Any], Awaitable[Response]]:
    async def handle(request: Request, raised: Exception) -> Response:
        error = to_error(raised)
        trace: Trace = request.state.trace
        trace.error = error.code
        # Of other errors of a request the body says all; a model's refusal has the endpoint's own words.
        is_logged = error.status >= 500 or isinstance(error, GenerationRefused | EmbeddingFailed)
        trace.log_reason = error.log_reason if is_logged else None
        return render(error)

    return handle


class _Route(LazyResponsesRoute):
    """Serialises a handler's model in the handler's own thread. FastAPI would validate it again in another
    thread, which costs a busy process a tenth of its requests."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        @wraps(endpoint)
        def handle(*arguments: Any, **named: Any) -> Any:
            result = endpoint(*arguments, **named)
            if isinstance(result, BaseModel):
                # In this thread, since the middleware would need another one.
                token_usage.record_current()
                status = options.get("status_code") or 200
                return Response(result.model_dump_json(), status, media_type="application/json")
            return result

        super().__init__(path, endpoint if iscoroutinefunction(endpoint) else handle, **options)


def _operation_ids(function: str) -> Callable[[APIRoute], str]:
    """Ids such as documents_get; of a route's second address, documents_get_2."""
    counts = Counter[str]()

    def operation_id(route: APIRoute) -> str:
        slug = function.replace("-", "_")
        name = "list" if route.name == "index" else route.name
        own = slug if slug.endswith(name) else f"{slug}_{name}"
        counts[own] += 1
        return own if counts[own] == 1 else f"{own}_{counts[own]}"

    return operation_id


class PlatformRoutes:
    """Routes under both prefixes of the platform contract, /api/v1 and /v1."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self.get, self.post = partial(self._route, "GET"), partial(self._route, "POST")
        self.patch, self.delete = partial(self._route, "PATCH"), partial(self._route, "DELETE")

    def _route(self, method: str, path: str, **options: Any) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            for prefix in ("/v1", "/api/v1"):
                self._app.add_api_route(f"{prefix}{path}", handler, methods=[method], **options)
            return handler

        return add


def _described(describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The app's OpenAPI description, without the status 422 that FastAPI adds and that no route returns."""
    description = describe()
    for operations in description["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    return description


@asynccontextmanager
async def _start(app: FastAPI) -> AsyncIterator[None]:
    """A wrong or missing setting stops the start, not the first request."""
    services = _started(app)
    gateway = services.chat_gateway
    async with gateway.keeping_connections() if gateway else nullcontext():
        yield
    services.close()
    opentelemetry.start(None)
    # A later start in this process creates new services.
    get_services.cache_clear()


def _started(app: FastAPI) -> Services:
    services = get_services()
    if app.state.searches:
        services.prepare()
    else:
        # Invalid settings of the other services stop the start, too.
        _ = services.signer, services.snapshots
    _ = services.allows_anonymous
    return services


def lambda_handler(app: FastAPI) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The AWS Lambda entry point. Mangum cannot stream: streams need the app under uvicorn."""

    event_loop = cache(asyncio.new_event_loop)

    @cache
    def adapter() -> Callable[[dict[str, Any], Any], dict[str, Any]]:
        from mangum import Mangum

        asyncio.set_event_loop(event_loop())
        return Mangum(app, lifespan="off")

    if on_lambda():
        _started(app)
        adapter()
    # functions/__init__.py disabled collections. They skip all objects created until now.
    gc.freeze()
    gc.enable()

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        # Mangum takes the current one. Newer versions of Python have none until it is set.
        asyncio.set_event_loop(event_loop())
        return adapter()(event, context)

    return handler


def _invalid(status: int, invalid: RequestValidationError) -> RagError:
    """The error names the field and the rule, never the value."""
    faults = [{name: fault[name] for name in ("type", "loc", "msg")} for fault in invalid.errors()]
    fault = faults[0]
    if fault["type"] == "json_invalid":
        return InvalidRequest("The body is not valid JSON. Correct its syntax.", status=status, faults=faults)
    # The path without its first step, "body" or "query".
    location = ".".join(str(step) for step in fault["loc"][1:]) or "body"
    details = {"field": location, "missing": fault["type"] == "missing"}
    message = f"{location}: {fault['msg'].removeprefix('Value error, ')}"
    # FastAPI leaves the body of another content type as bytes.
    if fault["type"] == "model_attributes_type" and location == "body":
        message = "body: Send a JSON object, with the header Content-Type: application/json."
    return InvalidRequest(message, status=status, faults=faults, details=details)


def _http(raised: HTTPException) -> RagError:
    match raised.status_code:
        case 404:
            return NotFound()
        case 405:
            return MethodNotAllowed(headers=raised.headers)
        case 413:
            return BodyTooLarge(raised.detail)
        case _:
            return InvalidRequest()
