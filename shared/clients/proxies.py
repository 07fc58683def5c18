"""Proxies of the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY), as httpx reads them.

Loopback addresses never have one.
"""

from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from shared.errors import ConfigurationError

SCHEMES = ("http", "https", "socks5", "socks5h")


def proxy_of_url(url: str) -> str | None:
    """As proxy_of. Called for each address of the settings, so that an unusable proxy stops the start."""
    parts = urlsplit(url)
    return proxy_of(parts.scheme, parts.hostname or "")


@cache
def proxy_of(scheme: str, host: str) -> str | None:
    """The URL of the proxy for requests to that host, or None. Raises ConfigurationError for a proxy that
    cannot be used; the message has the name of its variable, since a proxy's URL may contain a password."""
    if is_loopback(host):
        return None
    proxies = getproxies()
    name = scheme if proxies.get(scheme) else "all"
    proxy = proxies.get(name)
    if not proxy or proxy_bypass(host):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    protocol = proxy.partition("://")[0].lower()
    if protocol not in SCHEMES:
        raise ConfigurationError(
            f"{name.upper()}_PROXY: {protocol}:// is not supported; use one of {', '.join(SCHEMES)}, "
            f"or add {host} to NO_PROXY"
        )
    if protocol.startswith("socks") and find_spec("socksio") is None:
        raise ConfigurationError(
            f"{name.upper()}_PROXY: a SOCKS proxy needs the package socksio; install it, "
            f"or add {host} to NO_PROXY"
        )
    return proxy


def is_loopback(host: str) -> bool:
    """Whether the host is this machine: localhost, or an address such as 127.0.0.1 and ::1."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
