"""Where addresses that strangers name may lead: to the public internet, and into no network of ours.

Asked of every address before it is connected to, after the one look-up of its name (http.py), so that no
notation, no redirect and no name server that changes its mind leads around it.
"""

import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx

from shared.errors import AddressRefused

MAX_LENGTH = 2000
# IPv6 addresses with an IPv4 address in their last four bytes, to which a gateway leads.
TRANSLATED = ip_network("64:ff9b::/96")
# What counts as global and is not for everybody: Azure's host, which hands out credentials; protocols' own,
# with Oracle's metadata among them; what documentation may use.
INSIDE = [ip_network(text) for text in ("168.63.129.16/32", "192.0.0.0/24", "3fff::/20")]
# All that is given out of IPv6 for everybody.
GLOBAL = ip_network("2000::/3")
_HOST = re.compile(rb"[a-z0-9._-]+|[0-9a-f:.]+(%\w+)?")
# Names that mean this machine, or its neighbours, without being looked up.
NAMES = ("localhost", "localdomain", "local", "internal", "home.arpa")
Address = IPv4Address | IPv6Address


class AddressPolicy:
    """The public internet, and besides those networks of one's own that are `allowed`."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        """Raises ValueError for what is no network."""
        self._allowed: list[IPv4Network | IPv6Network] = [ip_network(text) for text in allowed]

    def require(self, address: str) -> None:
        """Raises AddressRefused for an IP address that nobody may be sent to."""
        target = _inner(ip_address(address.partition("%")[0]))
        if any(target in network for network in self._allowed):
            return
        if not _is_public(target):
            raise AddressRefused

    def require_url(self, text: str) -> str:
        """The address of a page as it is written in requests. Raises AddressRefused for one that is wrong, or
        that leads elsewhere whatever a name server says."""
        url = _parsed(text)
        if url.scheme not in ("http", "https") or len(str(url)) > MAX_LENGTH:
            raise AddressRefused("An address begins with http:// or https:// and is not too long.")
        if not _HOST.fullmatch(url.raw_host) or (url.port or 0) > 65535:
            raise AddressRefused("This is no address.")
        if url.userinfo:
            raise AddressRefused("An address has no credentials in it.")
        literal = _literal(url.host)
        if literal:
            self.require(literal)
        elif url.host.rstrip(".").rpartition(".")[2] in NAMES or url.host.rstrip(".").endswith("home.arpa"):
            self.require("127.0.0.1")
        return str(url.copy_with(fragment=None))


def _parsed(text: str) -> httpx.URL:
    """Raises AddressRefused for what no name server is asked about."""
    try:
        url = httpx.URL(text.strip())
        # Neither labels that are empty or too long, nor what only looks like an international name.
        url.host.rstrip(".").encode("idna")
    except (httpx.InvalidURL, UnicodeError):
        raise AddressRefused("This is no address.") from None
    return url


def _literal(host: str) -> str | None:
    """The IP address that the host is, in whatever notation: 127.1, 0x7f000001, 017700000001, 2130706433."""
    try:
        return str(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
    except (OSError, UnicodeError):
        return None


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for."""
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
