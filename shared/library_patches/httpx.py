"""Network backend of an httpx transport, set after the transport was made.

Written for httpx 0.28.1 with httpcore 1.0.9, and for httpx2 2.16.2 with httpcore2 2.16.2. `HTTPTransport`
takes no network backend, although `httpcore.ConnectionPool` does. Hence this module sets that of its pool.
Without it, no connection obeys the deadline, and ssrf_guard.py sees no address of a user's URL.
Guarded by tests/shared/library_patches/test_httpx.py.
"""

from typing import Any


def set_network_backend(transport: Any, backend: Any) -> None:
    """Open all connections of the transport, also those to its proxy, by the backend. Raises AttributeError
    or KeyError for a version without these attributes, whose transport would connect to any address."""
    _ = vars(transport._pool)["_network_backend"]
    transport._pool._network_backend = backend
