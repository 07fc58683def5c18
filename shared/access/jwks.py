"""Public keys of an issuer of tokens, from its JWKS.

The first token that needs a key fetches them. Cached keys are read without a lock, fetched again after ten
minutes and discarded after an hour. Unknown key ids cause at most one fetch a minute.
"""

import json
import logging
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from jose import jwk
from jose.backends.base import Key

from shared.clients.bounded_counts import BoundedCounts
from shared.clients.http_client import deadline, http_client, read_at_most
from shared.clients.proxies import proxy_of_url
from shared.errors import KeysUnavailable

log = logging.getLogger("rag")

# As long as Supabase lets its edge and its own client libraries keep a JWKS.
FRESH_SECONDS = 600
# How long cached keys are used while the endpoint fails: a removed key must stop working.
USABLE_SECONDS = 3600
PAUSE_SECONDS = 60
# The pause while no key is cached and no user can sign in.
FIRST_PAUSE_SECONDS = 5
MAX_BYTES = 64 * 1024
# Requests that wait for a fetch after one that failed. A process works on forty requests.
MAX_WAITING = 8
# The process's requests that wait for an endpoint that failed, of any issuer.
_waiting_for_failing = BoundedCounts()
# AWS Cognito's are a SHA-256 in base64.
_KEY_ID = re.compile(r"(?!.*\.\.)[A-Za-z0-9._-]{1,128}|[A-Za-z0-9+/]{43}=")


def is_key_id(value: object) -> TypeGuard[str]:
    """Whether the value has the form of a key id. A URL does not."""
    return isinstance(value, str) and _KEY_ID.fullmatch(value) is not None


@dataclass(frozen=True)
class _CachedKeys:
    """The result of a fetch that began `at` that time: algorithm and key by key id."""

    keys: Mapping[str, tuple[str, Key]]
    at: float


@dataclass
class _Attempt:
    """`at`: its begin, and after a failure its end, so that a slow endpoint has a pause too."""

    at: float
    ended: threading.Event = field(default_factory=threading.Event)
    failure: str | None = "no response yet"


class KeySet:
    """The keys published at `url`. Safe to use from many threads; keeps no connection."""

    def __init__(
        self, url: str, *, timeout_seconds: float = 5, clock: Callable[[], float] = time.time
    ) -> None:
        """The clock is a wall clock: on Linux a monotonic one stops while the machine sleeps."""
        proxy_of_url(url)
        self._url = url
        self._timeout = timeout_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._cached = _CachedKeys({}, -math.inf)
        self._attempt = _Attempt(-math.inf)
        self._has_failed = False

    def key(self, kid: str, algorithm: str) -> Key | None:
        """The key with that id, or None when the project has none for that algorithm.

        Raises KeysUnavailable when the key is not cached and the fetch fails.
        """
        attempt = None
        if not self._knows(kid, FRESH_SECONDS):
            attempt = self._refreshed(needed=not self._knows(kid, USABLE_SECONDS))
        if self._knows(kid, USABLE_SECONDS):
            own_algorithm, key = self._cached.keys.get(kid, (None, None))
            return key if own_algorithm == algorithm else None
        if attempt is not None and attempt.failure:
            raise KeysUnavailable(log_reason=attempt.failure)
        return None

    def _knows(self, kid: str, seconds: float) -> bool:
        cached = self._cached
        return kid in cached.keys and self._within(seconds, cached.at)

    def _within(self, seconds: float, since: float) -> bool:
        # A time in the future means that the clock was set back: it counts as old.
        return 0 <= self._clock() - since < seconds

    def _refreshed(self, needed: bool) -> _Attempt:
        """The latest attempt; a new one when the last is a minute old. The caller that starts or needs it
        waits for its end."""
        with self._lock:
            attempt = self._attempt
            pause = PAUSE_SECONDS if self._cached.keys or not attempt.failure else FIRST_PAUSE_SECONDS
            starts = not self._within(pause, attempt.at)
            if starts:
                attempt = _Attempt(self._clock())
                # In a thread, so that a slow name server does not delay the caller beyond the time-out.
                threading.Thread(target=self._fetch, args=(attempt,), name="jwks", daemon=True).start()
                self._attempt = attempt
        if starts or needed:
            self._wait_for(attempt)
        return attempt

    def _wait_for(self, attempt: _Attempt) -> None:
        """Waits for the end of the attempt. While endpoints fail, eight callers of a process wait at most:
        strangers' tokens would occupy all threads."""
        if not self._has_failed:
            attempt.ended.wait(self._timeout + 1)
        elif _waiting_for_failing.add("", MAX_WAITING):
            try:
                attempt.ended.wait(self._timeout + 1)
            finally:
                _waiting_for_failing.subtract("")

    def _fetch(self, attempt: _Attempt) -> None:
        try:
            cached = _CachedKeys(keys_of(self._download()), attempt.at)
            with self._lock:
                # A slow attempt must not replace the keys of a later one.
                if attempt is self._attempt:
                    self._cached = cached
            attempt.failure = None
            self._has_failed = False
        except Exception as error:
            attempt.failure = type(error).__name__
            attempt.at, self._has_failed = self._clock(), True
            log.warning(
                "public keys could not be fetched from %s (%s): check SUPABASE_URL or "
                "RAG_THIRD_PARTY_ISSUERS",
                urlsplit(self._url).hostname,
                attempt.failure,
            )
        finally:
            attempt.ended.set()

    def _download(self) -> bytes:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        with (
            deadline(self._timeout),
            http_client(self._timeout) as client,
            client.stream("GET", self._url, headers=headers, follow_redirects=False) as response,
        ):
            if response.status_code != 200:
                raise ValueError("not 200")
            # Raw, so that a small response cannot be decompressed to a large one.
            content = read_at_most(MAX_BYTES, response.iter_raw())
        if content is None:
            raise ValueError("too large")
        return content


def keys_of(content: bytes) -> dict[str, tuple[str, Key]]:
    """The keys of a JWKS that can verify tokens; malformed and other keys are ignored."""
    entries = json.loads(content)["keys"]
    if not isinstance(entries, list):
        raise TypeError("keys is no list")
    keys: dict[str, tuple[str, Key]] = {}
    for entry in entries:
        if algorithm := _algorithm_of(entry):
            try:
                key = jwk.construct(entry, algorithm)
            except Exception:
                log.debug("a malformed key is ignored")
            else:
                if algorithm == "ES256" or 2048 <= key.prepared_key.key_size <= 8192:
                    keys.setdefault(entry["kid"], (algorithm, key))
    return keys


def _algorithm_of(entry: Any) -> str | None:
    """The algorithm of a public key, ES256 or RS256; None for every other entry."""
    match entry:
        case {"kty": "EC", "crv": "P-256", "x": str(), "y": str()}:
            algorithm = "ES256"
        case {"kty": "RSA", "n": str(), "e": str()}:
            algorithm = "RS256"
        case _:
            return None
    operations = entry.get("key_ops", ["verify"])
    is_usable = (
        is_key_id(entry.get("kid"))
        and "d" not in entry
        and entry.get("alg", algorithm) == algorithm
        and entry.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
    )
    return algorithm if is_usable else None
