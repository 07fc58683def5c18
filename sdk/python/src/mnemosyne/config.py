"""Settings of a client: key, address, time-outs, retries. Only this module reads the environment."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx

from mnemosyne.errors import ConfigurationError

# The local stack's address: without a configured one a key is sent to this machine only.
LOCAL = "http://127.0.0.1:54321/api/v1"
KEY, ADDRESS = "MNEMOSYNE_API_KEY", "MNEMOSYNE_BASE_URL"
# A model may need a minute for an answer, but a connection does not.
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
THIS_MACHINE = ("all://localhost", "all://127.0.0.1", "all://[::1]")
# (Without the proxy's URL, which may contain a password.)
UNUSABLE_PROXY = (
    "The proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY cannot be used: it must begin with http://, https:// "
    "or, after `pip install httpx[socks]`, with socks5://. Or pass http_client."
)


@dataclass(frozen=True, slots=True)
class Settings:
    """`api_key` may be a function that returns the key, called before each attempt. `timeout` is None by
    default."""

    api_key: Any = field(repr=False)
    base_url: str
    timeout: httpx.Timeout | None
    max_retries: int

    @classmethod
    def of(
        cls,
        api_key: str | Callable[[], Any] | None,
        base_url: str | None,
        timeout: float | httpx.Timeout | None,
        max_retries: int,
    ) -> "Settings":
        """Raises ConfigurationError, which names the invalid value and never shows the key."""
        if max_retries < 0:
            raise ConfigurationError("max_retries: must be 0 or more")
        return cls(
            api_key if callable(api_key) else key_of(api_key or os.environ.get(KEY, "")),
            _address(base_url or os.environ.get(ADDRESS) or LOCAL),
            None if timeout is None else httpx.Timeout(timeout),
            max_retries,
        )

    @property
    def is_local(self) -> bool:
        """Whether the deployment runs on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def root_url(self) -> str:
        """The address of the deployment, without the platform API's path."""
        return re.sub(r"(/api)?/v1$", "", self.base_url)

    def timeout_for(self, seconds: float | None, default: float | None) -> httpx.Timeout:
        """The time-out of a request with `seconds` of its own; `default` applies if the client has no time-
        out."""
        if seconds is not None:
            return httpx.Timeout(seconds)
        if self.timeout is not None:
            return self.timeout
        return TIMEOUT if default is None else httpx.Timeout(default, connect=TIMEOUT.connect)


def key_of(value: Any) -> str:
    """The key. Raises ConfigurationError for another value."""
    if not isinstance(value, str):
        raise ConfigurationError("api_key: must be text, or a function that returns it")
    key = value.strip()
    if not key:
        raise ConfigurationError(f"An API key is needed: pass api_key, or set {KEY}.")
    # httpx would refuse such a header with an error that shows it.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError("api_key: must be printable ASCII without spaces")
    return key


def _address(value: str) -> str:
    try:
        parts = urlsplit(value.strip())
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise ConfigurationError("base_url: must be an address") from None
    if parts.scheme not in ("http", "https") or not has_host:
        raise ConfigurationError("base_url: must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError("base_url: must be without a user, a query and a fragment")
    return value.strip().rstrip("/")
