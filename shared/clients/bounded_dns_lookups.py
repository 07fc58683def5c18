"""DNS look-ups in threads, limited for each org.

A look-up cannot be interrupted: it keeps its thread while the name server does not answer. The names that
users choose therefore have their own pool, and one org never takes all of its threads.
"""

import math
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from time import monotonic


class Resolver:
    """Safe to use from many threads."""

    def __init__(self, threads: int, per_org: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="resolver")
        self._per_org = per_org
        self._running: Counter[str] = Counter()
        self._changed = Condition()

    def addresses(self, org_id: str, host: str, port: int, seconds: float) -> list[str]:
        """The IP addresses of a host. Raises TimeoutError, OSError, or UnicodeError for a malformed name."""
        deadline = monotonic() + seconds
        with self._changed:
            if not self._changed.wait_for(lambda: self._running[org_id] < self._per_org, _wait(seconds)):
                raise TimeoutError
            self._running[org_id] += 1
        lookup = self._pool.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        lookup.add_done_callback(lambda _: self._end(org_id))
        results = lookup.result(_wait(deadline - monotonic()))
        return list(dict.fromkeys(str(address[0]) for *_, address in results))

    def _end(self, org_id: str) -> None:
        with self._changed:
            self._running[org_id] -= 1
            if not self._running[org_id]:
                del self._running[org_id]
            self._changed.notify_all()


def _wait(seconds: float) -> float | None:
    return None if seconds == math.inf else max(0.0, seconds)
