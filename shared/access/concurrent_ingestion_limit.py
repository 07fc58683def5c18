"""Limit of one user's concurrent ingestions in a process.

An ingestion chunks and embeds texts for seconds. Without the limit one user's requests would occupy the
threads and processors that all other requests need.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Lock
from time import monotonic

from shared.errors import IngestionBusy

# Between two attempts of a waiting request. Waiting takes no thread, but each request's body stays in memory.
POLL_SECONDS = 0.1
MAX_WAITING = 8


class IngestionLimit:
    """Safe to use from several event loops."""

    def __init__(self, per_user: int) -> None:
        self._per_user = per_user
        self._running: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._lock = Lock()

    @asynccontextmanager
    async def slot(
        self, user_id: str, wait_seconds: float, require_client: Callable[[], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """Hold one of the user's slots. Raises IngestionBusy when none is free within `wait_seconds`, or when
        eight requests of the user wait already. `require_client` runs before every retry."""
        if not self._add(self._running, user_id, self._per_user):
            await self._wait(user_id, wait_seconds, require_client)
        try:
            yield
        finally:
            self._subtract(self._running, user_id)

    async def _wait(
        self, user_id: str, wait_seconds: float, require_client: Callable[[], Awaitable[None]]
    ) -> None:
        if not self._add(self._waiting, user_id, MAX_WAITING):
            raise IngestionBusy
        deadline = monotonic() + wait_seconds
        try:
            while monotonic() < deadline:
                await asyncio.sleep(POLL_SECONDS)
                await require_client()
                if self._add(self._running, user_id, self._per_user):
                    return
            raise IngestionBusy
        finally:
            self._subtract(self._waiting, user_id)

    def _add(self, counts: Counter[str], user_id: str, most: int) -> bool:
        """Count one more, unless there are as many as allowed."""
        with self._lock:
            if counts[user_id] >= most:
                return False
            counts[user_id] += 1
            return True

    def _subtract(self, counts: Counter[str], user_id: str) -> None:
        with self._lock:
            counts[user_id] -= 1
            if not counts[user_id]:
                del counts[user_id]


@dataclass(frozen=True, slots=True)
class Guard:
    """Bounds of an ingestion that a client waits for, checked before anything is stored. `admit` takes bytes
    of text and raises RateLimited; `require_client` raises ClientLeft, and so does `poll_client`, which
    checks at most four times a second."""

    admit: Callable[[int], None]
    require_client: Callable[[], None]
    poll_client: Callable[[], None]


UNGUARDED = Guard(lambda _: None, lambda: None, lambda: None)
