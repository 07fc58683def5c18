"""Server of several functions as one ASGI app: `python -m functions.server`.

RAG_FUNCTIONS selects the functions to import; health is always included. A function is a file of this folder
with an `app`.
"""

import gc
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from threading import Thread

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from shared.api import openapi_reference
from shared.api.app import create_app
from shared.api.contracts import rag
from shared.api.dependencies import get_services
from shared.api.health_probes import log_refusals
from shared.config import read_server_settings, usable_processors
from shared.errors import ConfigurationError

# functions/__init__.py disabled collections. A process that imports this module may create no handler.
gc.enable()

# Every function's slug, and its module.
SLUGS = {
    module.name.replace("_", "-"): f"functions.{module.name}"
    for module in iter_modules([str(Path(__file__).parent)])
    if module.name not in ("schedule", "server")
}
ALWAYS = "health"
# As agents write the address of the function mcp.
MCP_WITH_SLASH = "/mcp/"
# Cloud Run kills a container ten seconds after SIGTERM.
DRAIN_SECONDS = 8
# How long a thread may hold the GIL while another one waits. With Python's default of 5 ms a search, which
# waits about twenty times, takes up to a tenth of a second longer during an ingestion.
SWITCH_SECONDS = 0.0005
# Longer than clients and load balancers keep idle connections, which would else send on a closing one.
KEEP_ALIVE_SECONDS = 75
# On a busy machine, a process imports the functions for longer than uvicorn's default of five seconds. The
# parent would kill it, and the next one, without end. A process that hangs is replaced after this time.
HEALTH_CHECK_SECONDS = 30
# In a container: microseconds of processor time, or max, in a period of microseconds.
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class Functions:
    """An ASGI app that routes each request to the function with its path, and describes them as OpenAPI."""

    def __init__(self, slugs: Iterable[str]) -> None:
        self.apps: list[FastAPI] = [import_module(SLUGS[slug]).app for slug in slugs]
        routes = [(route, app) for app in self.apps for route in app.routes if isinstance(route, Route)]
        self._patterns = [(route.path_regex, app) for route, app in routes]
        # Paths without parameters.
        self._paths = {
            route.path: self._app_of(route.path) for route, _ in routes if not route.param_convertors
        }
        # It also answers requests for unknown paths.
        self._own = create_app(rag, "server", errors=(404,))
        self._own.add_api_route("/openapi.json", self._document, include_in_schema=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path == MCP_WITH_SLASH:
            path, scope = path[:-1], {**scope, "path": scope["path"][:-1]}
        app = self._paths.get(path) or self._app_of(path) or self._own
        await app(scope, receive, send)

    def _app_of(self, path: str) -> FastAPI | None:
        """The first app with a route of the path, which also refuses other methods."""
        return next((app for pattern, app in self._patterns if pattern.match(path)), None)

    def _document(self) -> Response:
        return Response(self._description, media_type="application/json")

    @cached_property
    def _description(self) -> bytes:
        """The OpenAPI document of all functions, made in a second."""
        return json.dumps(openapi_reference.merged(self.apps)).encode()

    @asynccontextmanager
    async def started(self, *, check_embedder: bool = True) -> AsyncIterator[None]:
        """Start all functions, and stop them at the end. With `check_embedder`, a remote embedder embeds a
        word first, and models that refuse requests are logged.

        They share the services of the process. Each closes them when it stops: then no function serves
        requests any more, and a second close has no effect.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        if check_embedder and any(app.state.searches for app in self.apps):
            services = get_services()
            await run_in_threadpool(services.check_embedder)
            # Beside the first requests.
            Thread(target=log_refusals, args=(services,), name="models", daemon=True).start()
        async with AsyncExitStack() as stack:
            for app in self.apps:
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield


class Server(Router):
    """A router that logs a wrong setting as one sentence when the start fails, without a traceback."""

    async def lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_reason(message: Message) -> None:
            error = sys.exception()
            await send(
                {**message, "message": str(error)} if isinstance(error, ConfigurationError) else message
            )

        await super().lifespan(scope, receive, send_reason)


def select_slugs(names: Iterable[str]) -> list[str]:
    """The slugs to serve. Raises ConfigurationError for an unknown slug and for an empty list."""
    slug_set = set(names)
    if slug_set == {"all"}:
        return list(SLUGS)
    if not slug_set or not slug_set <= set(SLUGS):
        raise ConfigurationError(f"RAG_FUNCTIONS: all, or some of {', '.join(SLUGS)}, separated by commas")
    return [slug for slug in SLUGS if slug in slug_set | {ALWAYS}]


def create() -> Router:
    """The app of the functions in RAG_FUNCTIONS. Raises ConfigurationError."""
    functions = Functions(select_slugs(read_server_settings().rag_functions))
    return Server(default=functions, lifespan=lambda _: functions.started())


def process_count() -> int:
    """The number of server processes: that of WEB_CONCURRENCY, or of the processors."""
    return read_server_settings().web_concurrency or processor_count()


def processor_count() -> int:
    """The processors that this process may use, within the quota of its container."""
    count = usable_processors()
    try:
        quota, period = CPU_QUOTA.read_text().split()
        return max(1, min(count, int(quota) // int(period)))
    except (OSError, ValueError):
        # The text "max" is no quota.
        return count


def main() -> None:
    """Serve until SIGTERM, then finish the running requests and exit with 0."""
    import uvicorn
    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess

    from shared.api.request_head_limit import HttpProtocol

    try:
        settings = read_server_settings()
        # Several processes import the functions themselves.
        select_slugs(settings.rag_functions)
    except ConfigurationError as error:
        sys.exit(str(error))
    config = uvicorn.Config(
        "functions.server:create",
        factory=True,
        workers=process_count(),
        host="0.0.0.0",  # noqa: S104  # a container is reached from outside
        port=settings.port,
        http=HttpProtocol,
        loop="uvloop",
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_worker_healthcheck=HEALTH_CHECK_SECONDS,
        # request_log.py logs requests; uvicorn's lines would contain query strings.
        access_log=False,
        server_header=False,
    )
    if config.workers == 1:
        # uvicorn raises the signal again after the drain, which would end the process by the signal.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        server = uvicorn.Server(config)
        server.run()
        sys.exit(0 if server.started else STARTUP_FAILURE)
    processes = Multiprocess(config, [config.bind_socket()])
    processes.run()
    has_failed = any(process.exitcode == STARTUP_FAILURE for process in processes.processes)
    sys.exit(STARTUP_FAILURE if has_failed else 0)


if __name__ == "__main__":
    main()
