"""Authentication by API key: the key is exchanged for a short-lived token.

The database looks up the hash of the key, for a token that sees that one row alone. The result is cached for
less than the lifetime of the issued token, so that a revoked key stops working within CACHED_SECONDS.
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
# Concurrent look-ups of a process, and the wait for one of them: no rate limit covers invalid keys.
LOOK_UPS = 8
LOOK_UP_WAIT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class _Session:
    """The principal of a key, and when and for how many seconds it is cached."""

    principal: Principal
    since: float
    seconds: float


class ApiKeyAuthenticator:
    """Safe to use from many threads."""

    def __init__(self, database: Database, signer: Signer, *, clock: Callable[[], float] = time.time) -> None:
        """The clock is a wall clock, as for tokens: a monotonic one stops while the machine sleeps."""
        self._database = database
        self._signer = signer
        self.algorithm = signer.algorithm
        self._clock = clock
        self._lock = Lock()
        self._looking_up = Semaphore(LOOK_UPS)
        self._sessions: LRUCache[str, _Session] = LRUCache(CACHED_KEYS)

    def principal(self, key: str) -> Principal:
        """The owner of the key, with a token. An unknown, revoked or expired key costs one look-up and raises
        Unauthorized."""
        digest = hash_of(key)
        with self._lock:
            session = self._sessions.get(digest)
        # An entry from the future means that the clock was set back: it counts as old.
        if session is None or not 0 <= self._clock() - session.since < session.seconds:
            session = self._exchange(digest)
            with self._lock:
                self._sessions[digest] = session
        return session.principal

    def _exchange(self, digest: str) -> _Session:
        since = self._clock()
        rows = self._look_up(digest)
        if not rows:
            raise Unauthorized("The API key is not valid. Check that it is complete and not revoked.")
        (key,) = rows
        remaining = _seconds_until(key["expires_at"])
        claims = {
            "key": key["key_id"],
            "org": key["org_id"],
            "collection": key["collection_id"],
            "scopes": key["scopes"],
            "requests_per_minute": key["requests_per_minute"],
        }
        token = self._signer.token(min(LIFETIME_SECONDS, remaining), sub=key["owner_id"], rag=claims)
        principal = Principal(key["owner_id"], token, frozenset(key["scopes"]), key["key_id"])
        return _Session(principal, since, min(CACHED_SECONDS, remaining))

    def _look_up(self, digest: str) -> list[dict[str, Any]]:
        if not self._looking_up.acquire(timeout=LOOK_UP_WAIT_SECONDS):
            raise DatabaseTimedOut(log_reason="too many keys at once")
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
