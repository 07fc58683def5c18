"""Limit of one user's ingestions that run at the same time in this process.

The local model and the cutting of texts use all processors; without the limit one user's requests would take
the threads and the processors of every other request."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from threading import Lock
from time import monotonic

from shared.errors import IngestionBusy

# Between two attempts of a waiting request. Waiting takes no thread.
POLL_SECONDS = 0.1


class IngestionLimit:
    """Safe to use from several event loops."""

    def __init__(self, per_user: int) -> None:
        self._per_user = per_user
        self._running: Counter[str] = Counter()
        self._lock = Lock()

    @asynccontextmanager
    async def slot(
        self, user_id: str, seconds: float, check: Callable[[], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """Hold one of the user's slots. Raises IngestionBusy when none is free for so many seconds, and
        the errors of `check`, which runs before each attempt but the first."""
        deadline = monotonic() + seconds
        while not self._take(user_id):
            if monotonic() >= deadline:
                raise IngestionBusy
            await asyncio.sleep(POLL_SECONDS)
            await check()
        try:
            yield
        finally:
            with self._lock:
                self._running[user_id] -= 1
                # A user without a request takes no memory.
                self._running += Counter()

    def _take(self, user_id: str) -> bool:
        with self._lock:
            free = self._running[user_id] < self._per_user
            self._running[user_id] += free
            return free
