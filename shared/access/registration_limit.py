"""Rate limit of registrations by the client's address, in each process."""

from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from shared.access.rate_limit import RateWindow

# Of one address in a process.
RATE = parse("10/hour")


class RegistrationLimit:
    """Safe to use from many threads."""

    def __init__(self) -> None:
        self._limiter = FixedWindowRateLimiter(MemoryStorage())

    def count(self, address: str) -> RateWindow:
        """Count a registration by the address, or by its network in IPv6, where a client has a whole /64. A
        socket of both versions shows an IPv4 address as ::ffff:192.0.2.1."""
        try:
            client = ip_address(address)
            if isinstance(client, IPv6Address):
                client = client.ipv4_mapped or client
            key = str(ip_network((client, 32 if client.version == 4 else 64), strict=False))
        except ValueError:
            key = address
        admitted = self._limiter.hit(RATE, key)
        resets_at, remaining = self._limiter.get_window_stats(RATE, key)
        amount, seconds = RATE.amount, RATE.get_expiry()
        return RateWindow(amount, seconds, amount - remaining, ceil(resets_at), admitted)
