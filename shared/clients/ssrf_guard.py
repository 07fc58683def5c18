"""SSRF guard: URLs of users lead to the public internet, never to internal networks.

http_transport.py applies it to every IP address between the one look-up of its name and the connection. No
notation, no redirect and no changed DNS record bypasses it.
"""

import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx

from shared.errors import AddressRefused

MAX_LENGTH = 2000
# IPv6 addresses that a gateway translates to the IPv4 address in their last four bytes (NAT64).
TRANSLATED = ip_network("64:ff9b::/96")
# Networks that count as global and are not public: Azure's host, which serves credentials; protocol
# assignments, with Oracle's metadata service; addresses for documentation.
INSIDE = [ip_network(text) for text in ("168.63.129.16/32", "192.0.0.0/24", "3fff::/20")]
# The global unicast addresses of IPv6 that are assigned so far.
GLOBAL = ip_network("2000::/3")
_HOST = re.compile(rb"[a-z0-9._-]+|[0-9a-f:.]+(%\w+)?")
# Top-level names of this machine, and of a local network besides home.arpa.
LOCAL_NAMES = ("localhost", "localdomain")
NETWORK_NAMES = ("local", "internal")
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressPolicy:
    """The public internet, and the internal networks that are `allowed`."""

    def __init__(self, allowed: Iterable[str | Network] = ()) -> None:
        """Raises ValueError for a malformed network."""
        self._allowed = [ip_network(network) for network in allowed]

    def require(self, address: str) -> None:
        """Raises AddressRefused for an IP address that is not allowed."""
        target = _inner(ip_address(address.partition("%")[0]))
        if any(target in network for network in self._allowed):
            return
        if not _is_public(target):
            raise AddressRefused

    def require_url(self, text: str) -> str:
        """The URL as it is requested. Raises AddressRefused for a malformed URL, and for one whose host is an
        address or a name that is not allowed."""
        url = _parsed(text)
        if url.scheme not in ("http", "https") or len(str(url)) > MAX_LENGTH:
            raise AddressRefused(
                f"A URL must begin with http:// or https:// and have at most {MAX_LENGTH} characters."
            )
        if not _HOST.fullmatch(url.raw_host) or (url.port or 0) > 65535:
            raise AddressRefused("The URL is not valid. Check its spelling.")
        if url.userinfo:
            raise AddressRefused("A URL must not contain credentials. Remove them.")
        name = url.host.rstrip(".")
        if literal := _literal(url.host):
            self.require(literal)
        elif (last := name.rpartition(".")[2]) in LOCAL_NAMES:
            self.require("127.0.0.1")
        elif not self._allowed and (last in NETWORK_NAMES or name.endswith("home.arpa")):
            # With allowed networks, the look-up before a connection shows where the name leads.
            raise AddressRefused
        return str(url.copy_with(fragment=None))


def _parsed(text: str) -> httpx.URL:
    """Raises AddressRefused for a URL whose host name cannot be looked up."""
    try:
        url = httpx.URL(text.strip())
        # Fails for labels that are empty or too long, and for malformed international names.
        url.host.rstrip(".").encode("idna")
    except (httpx.InvalidURL, UnicodeError):
        raise AddressRefused("The URL is not valid. Check its spelling.") from None
    return url


def _literal(host: str) -> str | None:
    """The IP address in the host, in any notation: 127.1, 0x7f000001, 017700000001, 2130706433."""
    try:
        return str(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
    except (OSError, UnicodeError):
        return None


def _inner(address: Address) -> Address:
    """The IPv4 address that is embedded in an IPv6 address, or the address itself."""
    if isinstance(address, IPv6Address):
        if address in TRANSLATED:
            return IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address
    return address


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and (address not in GLOBAL or address.sixtofour or address.teredo):
        return False
    if any(address in network for network in INSIDE):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
