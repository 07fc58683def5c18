"""Limit on a request's head, at a real server."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from shared.api.request_head_limit import HEAD_BYTES
from tests.functions.app_server import serve


async def body_size(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers with the number of bytes of the body."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(str(len(body)))(scope, receive, send)


@pytest.fixture(scope="module")
def connection_address() -> Iterator[tuple[str, int]]:
    with serve(body_size) as url:
        parts = urlsplit(url)
        yield parts.hostname or "", parts.port or 0


def response_to(address: tuple[str, int], pieces: Iterator[bytes]) -> bytes:
    """The server's response to pieces that are sent until it closes the connection."""
    with socket.create_connection(address, timeout=10) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        received = b""
        try:
            while data := connection.recv(65_536):
                received += data
        except ConnectionResetError:
            pass
        return received


def endless(first: bytes, repeated: bytes, limit: int = 4_000) -> Iterator[bytes]:
    """`first`, then at most limit × 16 kB, 1,000 times the allowed size of a head."""
    yield first
    for _ in range(limit):
        yield (repeated * 16_384)[:16_384]


def test_an_endless_head_or_trailer_is_refused(connection_address: tuple[str, int]):
    chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    rows = [
        ("path", b"GET /", b"a"),
        ("header value", b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: ", b"a"),
        ("many headers", b"GET / HTTP/1.1\r\nHost: a\r\n", b"X-Short: 1\r\n"),
        ("trailer value", chunked + b"1\r\na\r\n0\r\nX-Long: ", b"a"),
        ("chunk extension", chunked + b"1;a=", b"a"),
    ]
    for name, first, repeated in rows:
        sent = 0

        def counted(first: bytes = first, repeated: bytes = repeated) -> Iterator[bytes]:
            nonlocal sent
            for piece in endless(first, repeated):
                yield piece
                sent += len(piece)

        response_to(connection_address, counted())
        # What the socket buffers of both ends hold is beyond the server's control.
        assert sent < 10_000_000, name


def test_a_large_body_is_read(connection_address: tuple[str, int]):
    size = 20 * HEAD_BYTES
    head = f"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n".encode()
    response = response_to(connection_address, iter([head, b"a" * size]))
    assert response.startswith(b"HTTP/1.1 200 ")
    assert response.endswith(str(size).encode())
