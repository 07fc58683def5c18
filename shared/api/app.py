"""The frame of every function: who may call, what every response carries, how errors leave.

A function file says `app = create_app(contract, "its-slug", errors=(...))`, adds its routes, and
`handler = lambda_handler(app)`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext
from functools import partial, wraps
from http import HTTPStatus
from inspect import iscoroutinefunction
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from pydantic import BaseModel
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from shared.api.dependencies import get_services
from shared.api.middleware import (
    MAX_BODY_BYTES,
    BodyLimit,
    Cors,
    RequestContextMiddleware,
    UnhandledErrorMiddleware,
)
from shared.config import on_lambda, read_server_settings
from shared.errors import BodyTooLarge, InvalidRequest, MethodNotAllowed, NotFound, RagError
from shared.observability import opentelemetry
from shared.observability.request_log import configure
from shared.observability.tracing import Trace
from shared.services import Services

CORS_HEADERS = ["authorization", "x-client-info", "apikey", "content-type", "x-request-id"]
EXPOSED_HEADERS = [
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "Retry-After",
    "X-Request-Id",
    "Idempotency-Replayed",
]
# FastAPI has spans of its own, with paths and queries as they came; ours are in opentelemetry.py.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


class _Rest(Convertor[str]):
    """`{name:path}` as Starlette has it, and over line ends too, or no route would have a name with one."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("path", _Rest())


class Envelope(Protocol):
    """The module of a contract, for the form of its errors."""

    @property
    def ErrorBody(self) -> type[BaseModel]: ...  # noqa: N802  # a class

    def error_body(self, error: RagError) -> dict[str, Any]: ...


def create_app(
    envelope: Envelope,
    function: str,
    *,
    errors: Iterable[int],
    searches: bool = True,
    max_body_bytes: int = MAX_BODY_BYTES,
    too_large: str | None = None,
    malformed: int = 400,
    headers: Iterable[str] = (),
) -> FastAPI:
    """The app of a function, named by its slug, which renders its errors in the envelope. The function's
    file adds the routes. One that neither searches nor answers starts without what only that needs.
    `errors` are the statuses that its description names beside its success; `too_large` is what it says of
    a body that is, `malformed` the status of one that does not have the form, and `headers` what its
    clients send from browsers besides."""
    configure()
    app = FastAPI(
        title=function,
        lifespan=_start,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=NO_TELEMETRY,
        responses={
            status: {"model": envelope.ErrorBody, "description": HTTPStatus(status).phrase}
            for status in errors
        },
    )
    if malformed != 422:  # which FastAPI describes by itself
        app.openapi = partial(_described, app.openapi)  # type: ignore[method-assign]
    app.router.route_class = _Route
    app.state.function, app.state.searches = function, searches

    def render(error: RagError) -> Response:
        return JSONResponse(envelope.error_body(error), error.status, error.headers)

    def rendered(noun: Callable[[Any], RagError]) -> Callable[[Request, Any], Awaitable[Response]]:
        async def handle(request: Request, raised: Exception) -> Response:
            error = noun(raised)
            trace: Trace = request.state.trace
            trace.error = error.code
            trace.because = error.because if error.status >= 500 else None
            return render(error)

        return handle

    app.add_exception_handler(RagError, rendered(lambda error: error))
    app.add_exception_handler(RequestValidationError, rendered(partial(_invalid, malformed)))
    app.add_exception_handler(HTTPException, rendered(_http))
    # The last added is the outermost.
    app.add_middleware(BodyLimit, max_bytes=max_body_bytes, message=too_large)
    app.add_middleware(UnhandledErrorMiddleware, fault=lambda: render(RagError()))
    _let_browsers_in(app, headers)
    app.add_middleware(RequestContextMiddleware, function=function)
    return app


def _let_browsers_in(app: FastAPI, headers: Iterable[str]) -> None:
    app.add_middleware(
        Cors,
        allow_origins=read_server_settings().cors_origins,
        allow_methods=["GET", "POST", "PATCH", "DELETE", "OPTIONS"],
        allow_headers=[*CORS_HEADERS, *headers],
        expose_headers=EXPOSED_HEADERS,
    )


class _Route(APIRoute):
    """Renders a handler's model in the handler's own thread, by pydantic itself. FastAPI would send it
    through another one to validate it once more, which costs a busy process a tenth of its requests."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        @wraps(endpoint)
        def handle(*arguments: Any, **named: Any) -> Any:
            answer = endpoint(*arguments, **named)
            if isinstance(answer, BaseModel):
                status = options.get("status_code") or 200
                return Response(answer.model_dump_json(), status, media_type="application/json")
            return answer

        super().__init__(path, endpoint if iscoroutinefunction(endpoint) else handle, **options)


def _described(describe: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The app's OpenAPI description, without the 422 that FastAPI adds and that nobody here ever gives."""
    description = describe()
    for operations in description["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    return description


@asynccontextmanager
async def _start(app: FastAPI) -> AsyncIterator[None]:
    """A wrong or missing setting stops the start, not the first request."""
    core = _started(app)
    gateway = core.chat_gateway
    async with gateway.keeping_connections() if gateway else nullcontext():
        yield
    core.close()
    opentelemetry.start(None)
    # Another start in this process makes its own.
    get_services.cache_clear()


def _started(app: FastAPI) -> Services:
    core = get_services()
    if app.state.searches:
        core.prepare()
    else:
        # Those that do not search sign, keep snapshots, or read documents: with a malformed key, a store that
        # is not to be had, a model without a key, or half of what says who asks without a credential, they do
        # not start.
        _ = core.signer, core.snapshots, core.graph_model
    core.warn_if_anonymous()
    return core


def lambda_handler(app: FastAPI) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The AWS Lambda entry point. Mangum cannot stream: streams need the app under uvicorn."""
    from mangum import Mangum

    if on_lambda():
        _started(app)
    adapter = Mangum(app, lifespan="off")

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        try:
            return adapter(event, context)
        finally:
            # Between two requests the process is frozen, and sends nothing.
            opentelemetry.flush()

    return handler


def _invalid(status: int, invalid: RequestValidationError) -> RagError:
    """Name the field and the rule; never echo the value."""
    faults = [{name: fault[name] for name in ("type", "loc", "msg")} for fault in invalid.errors()]
    fault = faults[0]
    if fault["type"] == "json_invalid":
        return InvalidRequest("The body is not valid JSON.", status=status, faults=faults)
    # Without the part of the request that it stands in.
    place = ".".join(str(step) for step in fault["loc"][1:]) or "body"
    details = {"field": place, "missing": fault["type"] == "missing"}
    message = f"{place}: {fault['msg'].removeprefix('Value error, ')}"
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
