"""A real HTTP server that stands in for a project with a service that the local stack lacks: it answers the
paths of that service, and passes everything else on to the stack's gateway."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx

from local.stack import Stack

Answer = tuple[int, bytes, dict[str, str]]
CORS = {f"Access-Control-Allow-{name}": "*" for name in ("Origin", "Methods", "Headers")}


def in_json(value: Any, status: int = 200) -> Answer:
    return status, json.dumps(value).encode(), {"Content-Type": "application/json"}


class ProjectServer:
    """Use as a context manager. A subclass has the `prefix` of its service's paths, and answers them.
    `requests` are the paths and headers, in lower case, of all requests."""

    prefix: str

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.requests: list[tuple[str, dict[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_GET(self) -> None:
                server._serve(self)

            def do_POST(self) -> None:
                server._serve(self)

            def do_PUT(self) -> None:
                server._serve(self)

            def do_PATCH(self) -> None:
                server._serve(self)

            def do_DELETE(self) -> None:
                server._serve(self)

            def do_OPTIONS(self) -> None:
                """A page of another origin may use every route, as with the real server."""
                self.send_response(204)
                for name, value in CORS.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                """Silent: the requests are recorded."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answered(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._client = httpx.Client(base_url=self._stack.url)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._client.close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append((handler.path, headers))
        if handler.path.startswith(self.prefix):
            status, content, headers = self.answered(handler, body)
        else:
            passed = {name: value for name, value in handler.headers.items() if name.lower() != "host"}
            answer = self._client.request(handler.command, handler.path, content=body, headers=passed)
            status, content = answer.status_code, answer.content
            headers = {"Content-Type": answer.headers.get("Content-Type", "text/plain")}
        handler.send_response(status)
        for name, value in {**CORS, **headers, "Content-Length": str(len(content))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)
