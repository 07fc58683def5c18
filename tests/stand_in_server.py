"""A real HTTP server on this machine that stands in for a paid API: scripted replies, recorded requests."""

import json as jsonlib
import math
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What to answer: JSON, or a function that makes it or a whole reply of the request, or raw bytes, after
    `delay` seconds and after the event `after`; `drop` closes the connection instead, and `drip` waits so
    many seconds before each byte of the body, `drip_head` before those of the head too. `chunks` are a stream
    instead: what to send, and seconds or an event to wait for in between; with `drop` it breaks off."""

    json: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    after: threading.Event | None = None
    drop: bool = False
    drip: float = 0.0
    drip_head: bool = False
    chunks: Sequence[bytes | float | threading.Event] | None = None


@dataclass(frozen=True)
class Request:
    """What came in; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return jsonlib.loads(self.body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # As many may knock at once as do.
    request_queue_size = 128


class StandIn:
    """Use as a context manager. Replies are given in order, the last one again and again. `port`: for one
    that is gone and comes back. `tls`: the server's certificate."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        # How many connections were made.
        self.connections = 0
        # Whether a client has closed a connection in the middle of a stream.
        self.left = threading.Event()
        self._replies: deque[Reply] = deque()
        self._lock = threading.Lock()
        self._arrival = threading.Condition(self._lock)
        self._stopping = threading.Event()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Buffered: heads and bodies in packets of their own wait 40 ms for each other.
            wbufsize = -1

            def setup(self) -> None:
                super().setup()
                with stand_in._lock:
                    stand_in.connections += 1

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def finish(self) -> None:
                try:
                    super().finish()
                except ConnectionError:
                    # The client left before it got the rest.
                    self.rfile.close()

            def do_POST(self) -> None:
                stand_in._serve(self)

            def do_PUT(self) -> None:
                stand_in._serve(self)

            def do_GET(self) -> None:
                stand_in._serve(self)

            def do_HEAD(self) -> None:
                stand_in._serve(self)

            def do_OPTIONS(self) -> None:
                stand_in._serve(self)

            def do_PATCH(self) -> None:
                stand_in._serve(self)

            def do_DELETE(self) -> None:
                stand_in._serve(self)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Silent: the requests are recorded."""

        self._server = _Server(("127.0.0.1", port), Handler)
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "StandIn":
        # The default poll of half a second would make every test wait that long at its end.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def replies(self, *replies: Reply) -> None:
        """Script what comes next."""
        with self._lock:
            self._replies.extend(replies)

    def wait_for_requests(self, number: int) -> None:
        """Until there were so many."""
        with self._arrival:
            assert self._arrival.wait_for(lambda: len(self.requests) >= number, 300)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = Request(handler.command, handler.path, headers, handler.rfile.read(length))
        with self._lock:
            self.requests.append(request)
            self._arrival.notify_all()
            reply = Reply(status=501, json={"error": "nothing scripted"})
            if self._replies:
                reply = self._replies.popleft() if len(self._replies) > 1 else self._replies[0]
        self._delay(reply)
        if callable(reply.json):
            made = reply.json(request)
            reply = made if isinstance(made, Reply) else replace(reply, json=made)
        if reply.chunks is not None:
            self._stream(handler, reply, reply.chunks)
            return
        if reply.drop:
            handler.close_connection = True
            handler.connection.close()
            return
        content = reply.body if reply.body is not None else jsonlib.dumps(reply.json).encode()
        if reply.drip_head:
            head = f"HTTP/1.1 {reply.status} slowly\r\nContent-Length: {len(content)}\r\n\r\n"
            content = head.encode() + content
        else:
            handler.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
        if handler.command == "HEAD":
            return
        if reply.drip:
            for byte in content:
                if self._stopping.wait(reply.drip):
                    return
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
        else:
            handler.wfile.write(content)

    def _delay(self, reply: Reply) -> None:
        if reply.delay:
            self._stopping.wait(reply.delay)
        while reply.after and not reply.after.wait(0.02) and not self._stopping.is_set():
            pass

    def _stream(
        self, handler: BaseHTTPRequestHandler, reply: Reply, chunks: Sequence[bytes | float | threading.Event]
    ) -> None:
        handler.send_response(reply.status)
        for name, value in {"Content-Type": "text/event-stream", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            for chunk in chunks:
                handler.wfile.flush()
                if isinstance(chunk, float):
                    self._wait(handler.connection, chunk, threading.Event())
                elif isinstance(chunk, threading.Event):
                    self._wait(handler.connection, math.inf, chunk)
                else:
                    handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            handler.wfile.write(b"" if reply.drop else b"0\r\n\r\n")
            handler.wfile.flush()
        except ConnectionError:
            self.left.set()
        if reply.drop or self.left.is_set():
            handler.close_connection = True

    def _wait(self, connection: socket.socket, seconds: float, event: threading.Event) -> None:
        """So long, or until the event, or until the other side is gone. Raises ConnectionError then."""
        end = time.monotonic() + seconds
        while not self._stopping.is_set() and not event.is_set() and (left := end - time.monotonic()) > 0:
            readable, _, _ = select.select([connection], [], [], min(left, 0.02))
            if readable and not connection.recv(1, socket.MSG_PEEK):
                raise ConnectionError
