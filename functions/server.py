"""Several functions as one ASGI app: what a container starts, with `python -m functions.server`.

RAG_FUNCTIONS chooses them; only the chosen are imported, and health is always among them. A function is a
file of this folder that holds an `app`.
"""

import json
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from threading import Lock

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from shared.api import openapi_reference
from shared.api.app import create_app
from shared.api.contracts import rag
from shared.config import read_server_settings
from shared.errors import ConfigurationError

# Every function's slug, and its module.
SLUGS = {
    module.name.replace("_", "-"): f"functions.{module.name}"
    for module in iter_modules([str(Path(__file__).parent)])
    if module.name != "server"
}
ALWAYS = "health"
# Cloud Run kills a container ten seconds after it asked it to end.
DRAIN_SECONDS = 8
# The longest time that a thread keeps the interpreter while another one waits for it. With Python's 5 ms a
# search, which waits some twenty times, takes up to a tenth of a second longer beside an ingestion.
SWITCH_SECONDS = 0.0005
# Longer than clients and balancers keep their connections, or they meet one that is just being closed.
KEEP_ALIVE_SECONDS = 75


class Functions:
    """An ASGI app that hands each request to the function that has a route for its path, and serves the
    reference of all of them."""

    def __init__(self, slugs: Iterable[str]) -> None:
        self.apps: list[FastAPI] = [import_module(SLUGS[slug]).app for slug in slugs]
        self._lock = Lock()
        self._written: tuple[bytes, bytes] | None = None
        # It also answers for paths that no function serves.
        self._own = create_app(rag, "server", errors=(404,))
        self._own.add_api_route("/openapi.json", self._document, include_in_schema=False)
        self._own.add_api_route("/docs", self._page, include_in_schema=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for app in self.apps:
            # Whatever the method: a wrong one is the function's to refuse.
            if any(route.matches(scope)[0] is not Match.NONE for route in app.routes):
                await app(scope, receive, send)
                return
        await self._own(scope, receive, send)

    def _document(self) -> Response:
        return Response(self._reference()[0], media_type="application/json")

    def _page(self) -> Response:
        return HTMLResponse(self._reference()[1], headers=openapi_reference.HEADERS)

    def _reference(self) -> tuple[bytes, bytes]:
        """The OpenAPI document of all functions, and its page: written once, which takes a second."""
        with self._lock:
            if self._written is None:
                document = openapi_reference.merged(self.apps)
                self._written = json.dumps(document).encode(), openapi_reference.page(document).encode()
            return self._written

    @asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        """Every function started, and at the end stopped.

        They share the services of the process. Each function closes them when it stops; by then none serves
        requests, and closing twice does nothing.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        async with AsyncExitStack() as stack:
            for app in self.apps:
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield


def select_slugs(names: Iterable[str]) -> list[str]:
    """The slugs to serve. Raises ConfigurationError on one that does not exist, or on none."""
    slug_set = set(names)
    if slug_set == {"all"}:
        return list(SLUGS)
    if not slug_set or not slug_set <= set(SLUGS):
        raise ConfigurationError(f"RAG_FUNCTIONS: all, or some of {', '.join(SLUGS)}, with commas between")
    return [slug for slug in SLUGS if slug in slug_set | {ALWAYS}]


def create() -> Starlette:
    """The app over the functions that RAG_FUNCTIONS chooses. Raises ConfigurationError."""
    functions = Functions(select_slugs(read_server_settings().functions))
    app = Starlette(lifespan=lambda _: functions.started())
    app.router.default = functions
    return app


def main() -> None:
    """Serve until SIGTERM; then take no more, finish what came, and end with 0."""
    import uvicorn

    try:
        app = create()
    except ConfigurationError as wrong:
        sys.exit(str(wrong))
    # uvicorn raises the signal once more when it has drained, which would end the process as killed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.run(
        app,
        host="0.0.0.0",  # noqa: S104  # a container is reached from outside
        port=read_server_settings().port,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        # The platform logs requests itself, and these would show query strings.
        access_log=False,
        server_header=False,
    )


if __name__ == "__main__":
    main()
