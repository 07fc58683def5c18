"""An API key's exchange for the short-lived token that it is a name for.

A key is looked up by its hash, in the database, by a token that can see that one row and nothing else.
What the look-up says is cached for less than the minted token's life, so a revoked key ends within
CACHED_SECONDS.
"""

import time
from datetime import datetime
from threading import Lock

from cachetools import TLRUCache

from shared.errors import Unauthorized
from shared.keys import hash_of
from shared.postgrest import Database
from shared.sign import LIFETIME_SECONDS, Signer
from shared.types import Principal

CACHED_SECONDS = 40.0
CACHED_KEYS = 10_000
# The token of a look-up is used at once.
LOOK_UP_SECONDS = 10


class KeyRing:
    """Exchanges keys for principals. Safe to use from many threads."""

    def __init__(self, database: Database, signer: Signer) -> None:
        self._database = database
        self._signer = signer
        self.algorithm = signer.algorithm
        self._lock = Lock()
        # Values are (principal, seconds to keep it).
        self._known: TLRUCache[str, tuple[Principal, float]] = TLRUCache(
            CACHED_KEYS, ttu=lambda _, value, now: now + value[1], timer=time.monotonic
        )

    def principal(self, key: str) -> Principal:
        """Whom the key stands for, with the token to act with.

        An unknown, revoked or expired key costs one look-up by hash, whichever it is, and raises
        Unauthorized.
        """
        digest = hash_of(key)
        with self._lock:
            known = self._known.get(digest)
        if known is None:
            known = self._exchange(digest)
            with self._lock:
                self._known[digest] = known
        return known[0]

    def _exchange(self, digest: str) -> tuple[Principal, float]:
        finder = Principal("", self._signer.token(LOOK_UP_SECONDS, rag={"key_hash": digest}))
        rows = self._database.call(finder, "rag_open_key", {}, again=True)
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
        return principal, min(CACHED_SECONDS, left)


def _seconds_until(moment: str | None) -> float:
    if moment is None:
        return LIFETIME_SECONDS
    return max(1.0, datetime.fromisoformat(moment).timestamp() - time.time())
