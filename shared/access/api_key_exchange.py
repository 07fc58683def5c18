"""An API key's exchange for the short-lived token that it is a name for.

A key is looked up by its hash, in the database, by a token that can see that one row and nothing else.
What the look-up says is cached for less than the minted token's life, so a revoked key ends within
CACHED_SECONDS.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Lock, Semaphore
from typing import Any

from cachetools import LRUCache

from shared.access.api_keys import hash_of
from shared.access.token_signer import LIFETIME_SECONDS, Signer, call_with_claims_only
from shared.clients.postgrest import Database
from shared.errors import DatabaseTimedOut, Unauthorized
from shared.types import Principal

CACHED_SECONDS = 40.0
CACHED_KEYS = 10_000
# How many look-ups a process has under way at most: made-up keys come without a limit of their own.
LOOK_UPS = 8
PATIENCE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class _Opened:
    principal: Principal
    since: float
    seconds: float


class ApiKeyExchange:
    """Exchanges keys for principals. Safe to use from many threads."""

    def __init__(self, database: Database, signer: Signer, *, clock: Callable[[], float] = time.time) -> None:
        """The clock is the wall's, as the tokens' is: a monotonic one stands still while a machine sleeps."""
        self._database = database
        self._signer = signer
        self.algorithm = signer.algorithm
        self._clock = clock
        self._lock = Lock()
        self._looking_up = Semaphore(LOOK_UPS)
        self._known: LRUCache[str, _Opened] = LRUCache(CACHED_KEYS)

    def principal(self, key: str) -> Principal:
        """Whom the key stands for, with the token to act with.

        An unknown, revoked or expired key costs one look-up by hash, whichever it is, and raises
        Unauthorized.
        """
        digest = hash_of(key)
        with self._lock:
            known = self._known.get(digest)
        # A clock that was set back makes what is known old, not young.
        if known is None or not 0 <= self._clock() - known.since < known.seconds:
            known = self._exchange(digest)
            with self._lock:
                self._known[digest] = known
        return known.principal

    def _exchange(self, digest: str) -> _Opened:
        since = self._clock()
        rows = self._look_up(digest)
        if not rows:
            raise Unauthorized("The API key is not valid.")
        (key,) = rows
        left = _seconds_until(key["expires_at"])
        claims = {
            "key": key["key_id"],
            "org": key["org_id"],
            "collection": key["collection_id"],
            "scopes": key["scopes"],
            "requests_per_minute": key["requests_per_minute"],
        }
        token = self._signer.token(min(LIFETIME_SECONDS, left), sub=key["owner_id"], rag=claims)
        principal = Principal(key["owner_id"], token, frozenset(key["scopes"]), key["key_id"])
        return _Opened(principal, since, min(CACHED_SECONDS, left))

    def _look_up(self, digest: str) -> list[dict[str, Any]]:
        if not self._looking_up.acquire(timeout=PATIENCE_SECONDS):
            raise DatabaseTimedOut(because="too many keys at once")
        try:
            rows: list[dict[str, Any]] = call_with_claims_only(
                self._database, self._signer, "rag_open_key", key_hash=digest
            )
        finally:
            self._looking_up.release()
        return rows


def _seconds_until(moment: str | None) -> float:
    if moment is None:
        return LIFETIME_SECONDS
    return max(1.0, datetime.fromisoformat(moment).timestamp() - time.time())
