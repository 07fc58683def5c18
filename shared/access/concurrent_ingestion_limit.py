"""Limit of one user's concurrent ingestions in a process.

An ingestion chunks and embeds texts for seconds. Without the limit one user's requests would occupy the
threads and processors that all other requests need.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic

from shared.clients.bounded_counts import BoundedCounts
from shared.errors import IngestionBusy

# Between two attempts of a waiting request. Waiting takes no thread, but each request's body stays in memory.
POLL_SECONDS = 0.1
MAX_WAITING = 8


class IngestionLimit:
    """Safe to use from several event loops."""

    def __init__(self, per_user: int) -> None:
        self._per_user = per_user
        self._running, self._waiting = BoundedCounts(), BoundedCounts()

    @asynccontextmanager
    async def slot(
        self, user_id: str, wait_seconds: float, require_client: Callable[[], Awaitable[None]]
    ) -> AsyncIterator[None]:
        """Hold one of the user's slots. Raises IngestionBusy when none is free within `wait_seconds`, or when
        eight requests of the user wait already. `require_client` runs before every retry."""
        if not self._running.add(user_id, self._per_user):
            await self._wait(user_id, wait_seconds, require_client)
        try:
            yield
        finally:
            self._running.subtract(user_id)

    async def _wait(
        self, user_id: str, wait_seconds: float, require_client: Callable[[], Awaitable[None]]
    ) -> None:
        if not self._waiting.add(user_id, MAX_WAITING):
            raise IngestionBusy
        deadline = monotonic() + wait_seconds
        try:
            while monotonic() < deadline:
                await asyncio.sleep(POLL_SECONDS)
                await require_client()
                if self._running.add(user_id, self._per_user):
                    return
            raise IngestionBusy
        finally:
            self._waiting.subtract(user_id)


@dataclass(frozen=True, slots=True)
class Guard:
    """Bounds of an ingestion that a client waits for, checked before anything is stored. `admit` takes bytes
    of text and raises RateLimited; `require_client` raises ClientLeft, and so does `poll_client`, which
    checks at most four times a second."""

    admit: Callable[[int], None]
    require_client: Callable[[], None]
    poll_client: Callable[[], None]


UNGUARDED = Guard(lambda _: None, lambda: None, lambda: None)
