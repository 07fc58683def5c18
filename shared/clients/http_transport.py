"""httpx transports whose sockets obey a deadline and an address policy."""

import math
import ssl
import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, partial
from threading import Lock
from types import ModuleType
from typing import Any

import httpx

from shared.clients.bounded_dns_lookups import Resolver
from shared.clients.proxies import proxy_of
from shared.library_patches.httpx import set_network_backend

# When the requests of this context must have ended, by the monotonic clock.
deadline_at: ContextVar[float] = ContextVar("deadline_at", default=math.inf)


def remaining_seconds() -> float:
    return deadline_at.get() - time.monotonic()


@cache
def transport_class(http: ModuleType, core: ModuleType) -> type[Any]:
    """The class of transports for httpx and httpcore, or for their next generation, httpx2 and httpcore2."""

    class Transport(http.HTTPTransport):  # type: ignore[misc, name-defined]  # of an argument
        def __init__(
            self,
            ssl_context: ssl.SSLContext,
            limits: httpx.Limits,
            admits: Callable[[str], None] | None = None,
            org_id: str = "",
            proxy: str | None = None,
        ) -> None:
            super().__init__(verify=ssl_context, limits=limits, proxy=proxy)
            set_network_backend(self, _Backend(core, admits, org_id))
            # A proxy would connect to addresses that `admits` has not seen.
            self._has_proxies = admits is None and proxy is None
            self._new_proxied = partial(Transport, ssl_context, limits)
            self._proxied: dict[str, Transport] = {}
            self._lock = Lock()

        def handle_request(self, request: Any) -> Any:
            if self._has_proxies and (
                proxy := proxy_of(request.url.scheme, request.url.host, request.url.port)
            ):
                with self._lock:
                    if proxy not in self._proxied:
                        self._proxied[proxy] = self._new_proxied(proxy=proxy)
                return self._proxied[proxy].handle_request(request)
            # The wait for a free connection calls no socket.
            timeouts = request.extensions.get("timeout", {})
            pool = _at_most(timeouts.get("pool"), http.PoolTimeout)
            request.extensions = {**request.extensions, "timeout": {**timeouts, "pool": pool}}
            return super().handle_request(request)

        def close(self) -> None:
            with self._lock:
                for transport in self._proxied.values():
                    transport.close()
            super().close()

        def __exit__(self, *_: object) -> None:
            self.close()

    return Transport


class _Backend:
    """Connections of httpcore, or of its next generation, to addresses that `admits` does not refuse."""

    def __init__(self, core: ModuleType, admits: Callable[[str], None] | None, org_id: str) -> None:
        self._core = core
        self._sockets = core.SyncBackend()
        self._admits = admits
        self._org_id = org_id

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> "_Stream":
        """A connection to the first of the host's addresses that answers: they share the time, where the
        operating system would give it to each."""
        end = time.monotonic() + min(remaining_seconds(), math.inf if timeout is None else timeout)
        addresses = self._resolve(host, port, end)
        if self._admits:
            for address in addresses:
                self._admits(address)
        for number, address in enumerate(addresses, start=1):
            share = (end - time.monotonic()) / (len(addresses) - number + 1)
            if share <= 0:
                break
            seconds = None if share == math.inf else share
            try:
                stream = self._sockets.connect_tcp(address, port, timeout=seconds, **options)
                return _Stream(stream, self._core)
            except (self._core.ConnectError, self._core.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise self._core.ConnectTimeout

    def _resolve(self, host: str, port: int, end: float) -> list[str]:
        try:
            resolver = _resolver(self._admits is not None)
            return resolver.addresses(self._org_id, host, port, end - time.monotonic())
        except TimeoutError:
            raise self._core.ConnectTimeout from None
        except (OSError, UnicodeError) as error:
            raise self._core.ConnectError(str(error)) from error


class _Stream:
    """A connection whose operations end at the deadline.

    httpcore writes the head of a request, then its body, and an empty buffer at its end. The head waits for
    the next write, so that a short request is one packet, and one wake-up of the server.
    """

    def __init__(self, stream: Any, core: ModuleType) -> None:
        self._stream = stream
        self._core = core
        self._head: bytes | None = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._head:
            self.write(b"", timeout)
        self._head = b""
        data: bytes = self._stream.read(max_bytes, _at_most(timeout, self._core.ReadTimeout))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        seconds = _at_most(timeout, self._core.WriteTimeout)
        if self._head == b"":
            self._head = buffer
        elif self._head is not None or buffer:
            self._stream.write((self._head or b"") + buffer, seconds)
            self._head = None

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_Stream":
        seconds = _at_most(timeout, self._core.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, seconds), self._core)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _at_most(timeout: float | None, expired: Callable[[str], Exception]) -> float | None:
    """The time-out of one operation, shortened to the deadline. Raises `expired` after the deadline."""
    remaining = remaining_seconds()
    if remaining <= 0:
        raise expired("the deadline is over")
    return timeout if remaining == math.inf else min(remaining, math.inf if timeout is None else timeout)


@cache
def _resolver(of_users: bool) -> Resolver:
    """Look-ups of names that users chose do not delay those of the settings, which belong to no org."""
    return Resolver(16, per_org=2) if of_users else Resolver(8, per_org=8)
