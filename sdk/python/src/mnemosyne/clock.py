"""How long an attempt may take altogether. Written by hand, as its asynchronous twin (aio/clock.py): here the
clock is looked at with each piece that comes."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import httpx

from mnemosyne.retries import DRAIN_SECONDS, Late


class Deadline:
    """The deadline of all reading inside, `seconds` from now; None for none. Raises Late."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A complete response counts, also after the deadline."""

    def read(self, response: httpx.Response) -> None:
        """The whole body of the response, which is closed then."""
        if self._end is not None and isinstance(response.stream, httpx.SyncByteStream):
            # No wait for a piece is longer than the remaining time.
            waits = response.request.extensions.get("timeout", {})
            waits["read"] = max(self._end - time.monotonic(), 0.001)
            response.stream = _Clocked(response.stream, self._end)
        try:
            response.read()
        finally:
            response.close()


class _Clocked(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, end: float) -> None:
        self._stream = stream
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            if time.monotonic() > self._end:
                raise Late
            yield piece

    def close(self) -> None:
        self._stream.close()


def drain(response: httpx.Response, rest: Iterator[Any]) -> None:
    """Read the rest of the response, so that the connection can be used again; but not
    for long."""
    end = time.monotonic() + DRAIN_SECONDS
    # A waiting read ends when its socket is shut down.
    timer = threading.Timer(DRAIN_SECONDS, _hang_up, [response])
    timer.daemon = True
    timer.start()
    try:
        with suppress(httpx.RequestError, httpx.StreamError, OSError):
            while time.monotonic() < end and next(rest, None) is not None:
                pass
    finally:
        timer.cancel()


def _hang_up(response: httpx.Response) -> None:
    """(A connection of HTTP/2 is not this answer's alone.)"""
    stream = response.extensions.get("network_stream")
    if stream is None or response.is_closed or response.http_version == "HTTP/2":
        return
    opened = stream.get_extra_info("socket")
    if isinstance(opened, socket.socket):
        with suppress(OSError):
            # The socket itself is shut down: TLS would release a buffer that the reader still uses.
            socket.socket.shutdown(opened, socket.SHUT_RDWR)
