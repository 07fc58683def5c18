"""Waits that end: an httpx client whose requests take at most so many seconds altogether.

httpx bounds each read, so a server that drips a byte a second is waited for without end. Here every socket
operation is given what is left of the whole.
"""

import math
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import ModuleType
from typing import TYPE_CHECKING, Any

import httpx

from shared.clients.dns import Resolver

if TYPE_CHECKING:
    from openai import OpenAI

_end: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Requests of `patient_client()` inside fail with httpx.TimeoutException once the seconds are over."""
    token = _end.set(min(_end.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def remaining_seconds() -> float:
    return _end.get() - time.monotonic()


def sleep_before_retry(pauses: Iterator[float], at_least: float = 0) -> bool:
    """Wait for the next of the pauses, or longer, before another try; False, at once, when there is none
    left or no time for it."""
    pause = max(next(pauses, math.inf), at_least)
    if pause > remaining_seconds():
        return False
    time.sleep(pause)
    return True


def http_client(
    seconds: float,
    limits: httpx.Limits | None = None,
    admits: Callable[[str], None] | None = None,
    org_id: str = "",
) -> httpx.Client:
    """A client whose single waits take at most `seconds`, and whose requests obey `deadline`.

    `admits` is for hosts that users of the org `org_id` chose. It raises for an IP address that must not be
    connected to, and is called for each address of a host between the one look-up and the connection.
    """
    import httpcore

    transport = httpx.HTTPTransport(verify=_trusted(), limits=limits or httpx.Limits())
    _bind(transport, httpcore, admits, org_id)
    return httpx.Client(transport=transport, timeout=seconds)


def async_client(seconds: float) -> httpx.AsyncClient:
    """For an endpoint that streams, in one event loop. Single waits take at most `seconds`; the whole is for
    whoever reads to end. It keeps connections, but nothing that the endpoint would have it remember."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=15)
    transport = httpx.AsyncHTTPTransport(verify=_trusted(), limits=limits)
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    return httpx.AsyncClient(transport=transport, timeout=seconds, cookies=no_cookies)


def openai_client(key: str, address: str, seconds: float, **more: Any) -> "OpenAI":
    """The same for an OpenAI-compatible endpoint: such a client's requests obey `deadline`, too.

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


def gateway_client(key: str, address: str, seconds: float) -> "OpenAI":
    """The same for a gateway, which is not told what OPENAI_ORG_ID and OPENAI_PROJECT_ID say."""
    from openai import Omit

    unsaid = {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    return openai_client(key, address, seconds, default_headers=unsaid)


@cache
def _resolver(of_users: bool) -> Resolver:
    """Names that users chose do not hold up those of the deployment's settings, which belong to no org."""
    return Resolver(16, for_each_org=2) if of_users else Resolver(8, for_each_org=8)


@cache
def _trusted() -> ssl.SSLContext:
    """Whom HTTPS trusts: read once, since it takes longer than a request."""
    return httpx.create_ssl_context()


def _bind(
    transport: Any, core: ModuleType, admits: Callable[[str], None] | None = None, org_id: str = ""
) -> None:
    # There is no public argument for it. That it works is tested with a server that drips.
    pool = transport._pool
    pool._network_backend = _Backend(pool._network_backend, core, admits, org_id)


class _Stream:
    """A connection whose reads and writes end when the time is over."""

    def __init__(self, stream: Any, core: ModuleType) -> None:
        self._stream = stream
        self._core = core

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if remaining_seconds() <= 0:
            raise self._core.ReadTimeout
        data: bytes = self._stream.read(max_bytes, _at_most(timeout))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if remaining_seconds() <= 0:
            raise self._core.WriteTimeout
        self._stream.write(buffer, _at_most(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_Stream":
        if remaining_seconds() <= 0:
            raise self._core.ConnectTimeout
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _at_most(timeout)), self._core)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend:
    """Opens such connections, of httpcore or of its next generation."""

    def __init__(
        self, backend: Any, core: ModuleType, admits: Callable[[str], None] | None, org_id: str
    ) -> None:
        self._backend = backend
        self._core = core
        self._admits = admits
        self._org_id = org_id

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> _Stream:
        """To the first of the host's addresses that answers: they share the time, where the operating
        system would give it to each."""
        deadline = time.monotonic() + min(remaining_seconds(), timeout if timeout is not None else math.inf)
        addresses = self._resolve(host, port, deadline)
        if self._admits:
            for address in addresses:
                self._admits(address)
        for number, address in enumerate(addresses):
            share = (deadline - time.monotonic()) / (len(addresses) - number)
            if share <= 0:
                break
            own = None if share == math.inf else share
            try:
                return _Stream(self._backend.connect_tcp(address, port, timeout=own, **options), self._core)
            except (self._core.ConnectError, self._core.ConnectTimeout):
                if number == len(addresses) - 1:
                    raise
        raise self._core.ConnectTimeout

    def _resolve(self, host: str, port: int, deadline: float) -> list[str]:
        """The host's addresses."""
        resolver = _resolver(self._admits is not None)
        try:
            return resolver.addresses(self._org_id, host, port, deadline - time.monotonic())
        except TimeoutError:
            raise self._core.ConnectTimeout from None
        except (OSError, UnicodeError) as unknown:
            raise self._core.ConnectError(str(unknown)) from unknown


def _at_most(timeout: float | None) -> float | None:
    left = remaining_seconds()
    if left == math.inf:
        return timeout
    # Never zero, which a socket would take for "do not wait at all" and fail otherwise.
    return max(0.001, left if timeout is None else min(left, timeout))
