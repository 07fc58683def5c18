"""Apps in this process, on a pipeline of a test's choosing; and a proxy that counts what passes."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import uvicorn
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.types import ASGIApp

from functions.server import SLUGS, Functions
from local import playground_server
from shared.api.dependencies import services_dependency
from shared.api.request_head_limit import HttpProtocol
from shared.clients.postgrest import SECRET_HEADER
from shared.config import Settings
from shared.services import Services

# Headers that the counting proxy passes on.
PASSED_ON = (
    "apikey", "Authorization", "Content-Profile", "Content-Type", "Idempotency-Key", "Prefer", SECRET_HEADER,
)  # fmt: skip
# What Python takes for JSON, or Postgres does not store, or readers in other languages do not represent.
NO_METADATA = [
    '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e400}', '{"a": [1e300]}', '{"a": {"b": -1e-301}}',
    f'{{"a": {10**300}}}',
    r'{"a": "\ud800"}', r'{"\ud800": 1}', r'{"a": "\u0000"}',
]  # fmt: skip


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def json_of(response: Any, status: int = 200) -> dict[str, Any]:
    """The body of a response with that status."""
    assert response.status_code == status, response.text
    body: dict[str, Any] = response.json()
    return body


def platform_error(response: Any, status: int) -> dict[str, Any]:
    """The error of the platform contract's envelope."""
    body = json_of(response, status)
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"type", "code", "message", "details"}
    return error


@contextmanager
def services_with(settings: Settings, **changes: Any) -> Iterator[Services]:
    """A pipeline with some settings changed; strings of secrets become secrets."""
    secret = {
        "openai_api_key", "rag_llm_api_key", "rag_metrics_token", "rag_rerank_api_key", "rag_signing_key",
        "supabase_jwt_secret",
    }  # fmt: skip
    update = {
        name: SecretStr(value) if name in secret and value is not None else value
        for name, value in changes.items()
    }
    services = Services(settings.model_copy(update=update))
    try:
        yield services
    finally:
        services.close()


EVENT_LOOPS = ExitStack()


@cache
def event_loop() -> BlockingPortal:
    """One event loop for the requests of all clients, as in a server: a loop and threads of its own cost a
    request more processor time than most functions. conftest.py stops it."""
    return EVENT_LOOPS.enter_context(start_blocking_portal())


@contextmanager
def client_of(app: FastAPI, services: Services) -> Iterator[TestClient]:
    """The app on that pipeline."""
    app.dependency_overrides[services_dependency] = lambda: services
    client = TestClient(app)
    client.portal = event_loop()
    try:
        yield client
    finally:
        app.dependency_overrides.clear()


@contextmanager
def app_with(app: FastAPI, settings: Settings, **changes: Any) -> Iterator[TestClient]:
    """The app on a pipeline with some settings changed."""
    with services_with(settings, **changes) as services, client_of(app, services) as client:
        yield client


@contextmanager
def live(app: FastAPI, services: Services) -> Iterator[str]:
    """The same behind a real server, whose clients see a stream as it comes and may leave; its address."""
    with client_of(app, services), serve(app) as url:
        yield url


Event = dict[str, Any]


def invoke(handler: Callable[[Event, Any], Event], event: Event) -> Event:
    """What Lambda gets, from a thread with a loop of its own, which must be left empty."""

    def work() -> Event:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return handler(event, None)
        finally:
            assert not asyncio.all_tasks(loop)
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@contextmanager
def site(services: Services) -> Iterator[str]:
    """The playground before every function, all on that pipeline; its address."""
    functions = Functions(SLUGS)
    app = Starlette(routes=list(playground_server.routes()))
    app.router.default = functions
    with ExitStack() as until:
        for function in functions.apps:
            until.enter_context(client_of(function, services))
        yield until.enter_context(serve(app))


@contextmanager
def serve(app: ASGIApp) -> Iterator[str]:
    """A real server; its address."""
    server = uvicorn.Server(
        uvicorn.Config(app, http=HttpProtocol, loop="uvloop", lifespan="off", log_config=None, ws="none")
    )
    # With IPPROTO_TCP the event loop turns Nagle's algorithm off, which delays each response by 40 ms.
    kind = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    with socket.socket(*kind) as socket_of_server:
        socket_of_server.bind(("127.0.0.1", 0))
        # From now on requests wait, also for a server that is slow to start.
        socket_of_server.listen(128)
        options = {"sockets": [socket_of_server]}
        thread = threading.Thread(target=server.run, kwargs=options, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{socket_of_server.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)


@contextmanager
def proxy_to(address: str, below: str = "", lost: Collection[int] = ()) -> Iterator[tuple[str, list[str]]]:
    """An address that passes every POST on to another one, which serves paths `below` a path, and the paths
    that were asked for. `lost`: of which POSTs, counted from 0, the connection breaks before the answer."""
    requests: list[str] = []
    with httpx.Client(base_url=address) as client:

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                number = len(requests)
                requests.append(self.path)
                content = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
                response = client.post(self.path.removeprefix(below), content=content, headers=headers)
                if number in lost:
                    return
                self.send_response(response.status_code)
                self.send_header("Content-Type", response.headers.get("Content-Type", ""))
                self.send_header("Content-Length", str(len(response.content)))
                self.end_headers()
                self.wfile.write(response.content)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Silent: the paths are recorded."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", requests
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
