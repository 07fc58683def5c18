"""Waits that end: an httpx client whose requests take at most so many seconds altogether.

httpx bounds each read, so a server that drips a byte a second is waited for without end. Here every socket
operation is given what is left of the whole.
"""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from openai import OpenAI

_end: ContextVar[float] = ContextVar("end", default=float("inf"))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Requests of `patient_client()` inside fail with httpx.TimeoutException once the seconds are over."""
    token = _end.set(min(_end.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def seconds_left() -> float:
    return _end.get() - time.monotonic()


def patient_client(seconds: float, limits: httpx.Limits | None = None) -> httpx.Client:
    """A client whose single waits take at most `seconds`, and whose requests obey `within`."""
    import httpcore

    transport = httpx.HTTPTransport(verify=_trusted(), limits=limits or httpx.Limits())
    _bind(transport, httpcore)
    return httpx.Client(transport=transport, timeout=seconds)


def openai_client(key: str, address: str, seconds: float, **more: Any) -> "OpenAI":
    """The same for an OpenAI-compatible endpoint: such a client's requests obey `within`, too.

    It never tries again by itself: it would wait a minute where an answer says so.
    """
    import httpcore2
    import httpx2
    from openai import OpenAI

    # The openai package has moved on to the next generation of httpx.
    transport = httpx2.HTTPTransport(verify=_trusted())
    _bind(transport, httpcore2)
    client = httpx2.Client(transport=transport, timeout=seconds)
    return OpenAI(api_key=key, base_url=address, http_client=client, max_retries=0, **more)


@cache
def _trusted() -> ssl.SSLContext:
    """Whom HTTPS trusts: read once, since it takes longer than a request."""
    return httpx.create_ssl_context()


def _bind(transport: Any, core: ModuleType) -> None:
    # There is no public argument for it. That it works is tested with a server that drips.
    pool = transport._pool
    pool._network_backend = _Backend(pool._network_backend, core)


class _Stream:
    """A connection whose reads and writes end when the time is over."""

    def __init__(self, stream: Any, core: ModuleType) -> None:
        self._stream = stream
        self._core = core

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if seconds_left() <= 0:
            raise self._core.ReadTimeout
        data: bytes = self._stream.read(max_bytes, _at_most(timeout))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if seconds_left() <= 0:
            raise self._core.WriteTimeout
        self._stream.write(buffer, _at_most(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_Stream":
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _at_most(timeout)), self._core)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend:
    """Opens such connections, of httpcore or of its next generation."""

    def __init__(self, backend: Any, core: ModuleType) -> None:
        self._backend = backend
        self._core = core

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> _Stream:
        if seconds_left() <= 0:
            raise self._core.ConnectTimeout
        stream = self._backend.connect_tcp(host, port, timeout=_at_most(timeout), **options)
        return _Stream(stream, self._core)


def _at_most(timeout: float | None) -> float | None:
    left = seconds_left()
    return timeout if left == float("inf") else min(left, timeout if timeout is not None else left)
