"""Rate limit of requests without a credential, by the client's address, in each process."""

from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from shared.access.rate_limit import RateWindow


class AddressLimit:
    """Safe to use from many threads."""

    def __init__(self, rate: str) -> None:
        self._rate = parse(rate)
        self._limiter = FixedWindowRateLimiter(MemoryStorage())

    def count(self, address: str) -> RateWindow:
        """Count a request of the address, or of its network in IPv6, where a client has a whole /64. A socket
        of both versions shows an IPv4 address as ::ffff:192.0.2.1."""
        try:
            client = ip_address(address)
            if isinstance(client, IPv6Address):
                client = client.ipv4_mapped or client
            key = str(ip_network((client, 32 if client.version == 4 else 64), strict=False))
        except ValueError:
            key = address
        admitted = self._limiter.hit(self._rate, key)
        resets_at, remaining = self._limiter.get_window_stats(self._rate, key)
        amount, seconds = self._rate.amount, self._rate.get_expiry()
        return RateWindow(amount, seconds, amount - remaining, ceil(resets_at), admitted)
