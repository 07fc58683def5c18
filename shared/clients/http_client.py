"""HTTP clients with a total deadline, and the retry within it.

httpx bounds each read alone, so a server that sends one byte a second could hold a request without end.
"""

import random
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from shared import PRODUCT
from shared.clients.http_transport import deadline_at, remaining_seconds, transport_class
from shared.clients.proxies import proxy_of_url

if TYPE_CHECKING:
    from openai import OpenAI

Result = TypeVar("Result")
HEADERS = {"User-Agent": PRODUCT}
# Pauses before a busy or broken service is called again, in seconds; at least its Retry-After.
SERVICE_PAUSES = (0.25, 1.0)
RETRYABLE = {408, 409, 429, *range(500, 600)}
# The largest random extension of a pause, so that clients which failed together do not return together.
JITTER = 0.2


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Requests of the clients below fail inside with httpx.TimeoutException once the seconds are over."""
    token = deadline_at.set(min(deadline_at.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        deadline_at.reset(token)


def retry(
    attempt: Callable[[], Result], pauses: Iterable[float], wait: Callable[[Exception], float | None]
) -> Result:
    """The result of the first attempt that succeeds. After an error there is a pause and another attempt,
    unless the pause would outlast the deadline. `wait` returns the minimum of the pause in seconds, or None
    for an error that is final."""
    for pause in pauses:
        try:
            return attempt()
        except Exception as error:
            at_least = wait(error)
            if at_least is None:
                raise
            seconds = max(pause * random.uniform(1, 1 + JITTER), at_least)  # noqa: S311  # no secret
            if seconds > remaining_seconds():
                raise
        time.sleep(seconds)
    return attempt()


def retry_service(
    attempt: Callable[[], Result], lost: type[Exception] | tuple[type[Exception], ...]
) -> Result:
    """`retry` for an HTTP service: after an error of the types `lost`, which mean a broken connection, and
    after an error with a response that is busy or broken, no sooner than its Retry-After."""

    def wait(error: Exception) -> float | None:
        if isinstance(error, lost):
            return 0.0
        response = getattr(error, "response", None)
        if response is None or response.status_code not in RETRYABLE:
            return None
        return retry_after(response.headers) or 0.0

    return retry(attempt, SERVICE_PAUSES, wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a response's headers ask to wait, as a number or a date; None for no such header.
    `headers`: with names in lower case, or of any case. Of a malformed header, 0."""
    milliseconds, wait = headers.get("retry-after-ms", ""), headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}", milliseconds, re.ASCII):
        return int(milliseconds) / 1000
    if not wait:
        return None
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", wait, re.ASCII):
        return float(wait)
    try:
        return max(0.0, parsedate_to_datetime(wait).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def http_client(seconds: float, transport: httpx.HTTPTransport | None = None) -> httpx.Client:
    """A client whose single waits take at most `seconds`. It closes its transport, one of http_transport."""
    return httpx.Client(transport=transport or http_transport(), timeout=seconds, headers=HEADERS)


def http_transport(
    limits: httpx.Limits | None = None,
    admits: Callable[[str], None] | None = None,
    org_id: str = "",
) -> httpx.HTTPTransport:
    """A transport whose requests obey `deadline`. Without `admits` they use the proxies of the environment.

    `admits` is for hosts that users of the org `org_id` chose. It raises for an IP address that must not be
    connected to, and is called for each address of a host between the one look-up and the connection.
    """
    import httpcore

    new_transport = transport_class(httpx, httpcore)
    transport: httpx.HTTPTransport = new_transport(
        _trusted_authorities(), limits or httpx.Limits(), admits, org_id
    )
    return transport


def async_client(address: str, seconds: float) -> httpx.AsyncClient:
    """A client for the endpoint at `address`, which streams, in one event loop. Single waits take at most
    `seconds`; the caller bounds the whole. The client keeps connections, and no cookies."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=15)
    transport = httpx.AsyncHTTPTransport(
        verify=_trusted_authorities(), limits=limits, proxy=proxy_of_url(address)
    )
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    return httpx.AsyncClient(transport=transport, timeout=seconds, cookies=no_cookies, headers=HEADERS)


def openai_client(key: str, address: str, seconds: float, *, is_gateway: bool = False) -> "OpenAI":
    """A client of an OpenAI-compatible endpoint whose requests obey `deadline`, too. It makes no retries of
    its own: they would wait a minute where a Retry-After says so. OPENAI_ORG_ID and OPENAI_PROJECT_ID are not
    sent to a gateway. Raises ConfigurationError for a proxy that cannot be used."""
    import httpcore2
    import httpx2
    from openai import Omit, OpenAI

    proxy_of_url(address)
    # The openai package takes clients of the next generation of httpx; those of httpx only for a while yet.
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=20)
    transport = transport_class(httpx2, httpcore2)(_trusted_authorities(), limits)
    client = _direct_client()(transport=transport, timeout=seconds)
    headers: Any = {**HEADERS}
    if is_gateway:
        headers |= {"OpenAI-Organization": Omit(), "OpenAI-Project": Omit()}
    return OpenAI(api_key=key, base_url=address, http_client=client, max_retries=0, default_headers=headers)


@cache
def _direct_client() -> type[Any]:
    """The class of clients that send a request as it is: redirects, cookies and authentication, which the
    openai package needs of none of its clients, take a fifth of a call's processor time."""
    import httpx2

    class DirectClient(httpx2.Client):
        def send(self, request: httpx2.Request, *, stream: bool = False, **_: Any) -> httpx2.Response:
            if self.is_closed:
                raise RuntimeError("the client of the endpoint is closed")
            response = self._transport.handle_request(request)
            response.request = request
            try:
                if not stream:
                    response.read()
            except BaseException:
                response.close()
                raise
            return response

    return DirectClient


def read_at_most(limit: int, parts: Iterable[bytes]) -> bytes | None:
    """The body of a response; None above the limit."""
    data = bytearray()
    for part in parts:
        data += part
        if len(data) > limit:
            return None
    return bytes(data)


@cache
def _trusted_authorities() -> ssl.SSLContext:
    """Read once, since reading takes longer than a request."""
    return httpx.create_ssl_context()
