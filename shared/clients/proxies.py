"""Proxies of the environment: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in either case of letters.

The addresses of this machine never have one.
"""

from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from shared.errors import ConfigurationError


def proxy_of_url(url: str) -> str | None:
    """As proxy_of. Called for each address of the settings, so that an unusable proxy stops the start."""
    parts = urlsplit(url)
    return proxy_of(parts.scheme, parts.hostname or "", parts.port)


@cache
def proxy_of(scheme: str, host: str, port: int | None) -> str | None:
    """The URL of the proxy for requests to that host, or None. Raises ConfigurationError for a proxy that
    cannot be used, with the name of its variable: its URL may contain a password."""
    if is_loopback(host):
        return None
    proxies = getproxies()
    name = scheme if proxies.get(scheme) else "all"
    proxy = proxies.get(name)
    is_excluded = "*" in proxies.get("no", "").replace(" ", "").split(",")
    if not proxy or is_excluded or proxy_bypass(f"{host}:{port}" if port else host):
        return None
    variable = f"{name.upper()}_PROXY"
    try:
        url = httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}").url
    except (ValueError, httpx.InvalidURL):
        raise ConfigurationError(
            f"{variable}: not a URL of a proxy with http://, https:// or socks5://; correct it, "
            f"or add {host} to NO_PROXY"
        ) from None
    if url.scheme.startswith("socks") and find_spec("socksio") is None:
        raise ConfigurationError(
            f"{variable}: a SOCKS proxy needs the package socksio; install it, or add {host} to NO_PROXY"
        )
    return proxy if "://" in proxy else f"http://{proxy}"


def is_loopback(host: str) -> bool:
    """Whether the host is this machine: localhost, or an address such as 127.0.0.1, ::1 and 0.0.0.0."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
