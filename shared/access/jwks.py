"""A project's public keys, from the JWKS that Supabase Auth publishes, fetched when a token first needs one.

Known keys are answered without a lock. They are asked for anew after ten minutes and are of no use after an
hour; a key id that nobody knows makes for one request a minute at most, however many of them are tried.
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

from jose import jwk
from jose.backends.base import Key

from shared.clients.http import deadline, http_client
from shared.errors import KeysUnavailable

log = logging.getLogger("rag")

# As long as Supabase lets its edge and its own client libraries keep a JWKS.
FRESH_SECONDS = 600
# How long known keys outlive an endpoint that fails: a key that was removed must stop working.
USABLE_SECONDS = 3600
PAUSE_SECONDS = 60
# While nothing is known at all, a failure is tried again sooner: nobody could sign in meanwhile.
FIRST_PAUSE_SECONDS = 5
MAXIMUM_BYTES = 64 * 1024
_KEY_ID = re.compile(r"(?!.*\.\.)[A-Za-z0-9._-]{1,128}")


def is_key_id(value: object) -> TypeGuard[str]:
    """Whether it could name a key: no path, no address, nothing that anything could be made to open."""
    return isinstance(value, str) and _KEY_ID.fullmatch(value) is not None


@dataclass(frozen=True)
class _Known:
    """What a fetch that began `at` that time brought: algorithm and key by key id."""

    keys: Mapping[str, tuple[str, Key]]
    at: float


@dataclass
class _Attempt:
    at: float
    over: threading.Event = field(default_factory=threading.Event)
    failure: str | None = "still waiting"


class KeySet:
    """The keys published at `url`. Safe to use from many threads; holds no connection between fetches."""

    def __init__(
        self, url: str, *, timeout_seconds: float = 5, clock: Callable[[], float] = time.time
    ) -> None:
        """The clock is the wall's: a monotonic one stands still, on Linux, while the machine sleeps."""
        self._url = url
        self._timeout = timeout_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._known = _Known({}, -math.inf)
        self._attempt = _Attempt(-math.inf)

    def key(self, kid: str, algorithm: str) -> Key | None:
        """The key of that id, or None when the project has none of it for that algorithm.

        Raises KeysUnavailable when the key is not known and the endpoint does not tell.
        """
        attempt = None
        if not self._knows(kid, FRESH_SECONDS):
            attempt = self._refreshed(needed=not self._knows(kid, USABLE_SECONDS))
        if self._knows(kid, USABLE_SECONDS):
            of, key = self._known.keys.get(kid, (None, None))
            return key if of == algorithm else None
        if attempt is not None and attempt.failure:
            raise KeysUnavailable(because=attempt.failure)
        return None

    def _knows(self, kid: str, seconds: float) -> bool:
        known = self._known
        return kid in known.keys and self._within(seconds, known.at)

    def _within(self, seconds: float, since: float) -> bool:
        # A clock that was set back makes everything old, not young.
        return 0 <= self._clock() - since < seconds

    def _refreshed(self, needed: bool) -> _Attempt:
        """The latest attempt, made now if the last is a minute old; over, for who begins or needs it."""
        with self._lock:
            attempt = self._attempt
            pause = PAUSE_SECONDS if self._known.keys or not attempt.failure else FIRST_PAUSE_SECONDS
            begins = not self._within(pause, attempt.at)
            if begins:
                attempt = _Attempt(self._clock())
                # A thread, so that a name server that hangs cannot hold a caller for longer than agreed.
                threading.Thread(target=self._fetch, args=(attempt,), name="jwks", daemon=True).start()
                self._attempt = attempt
        if begins or needed:
            attempt.over.wait(self._timeout + 1)
        return attempt

    def _fetch(self, attempt: _Attempt) -> None:
        try:
            known = _Known(_keys_of(self._download()), attempt.at)
            with self._lock:
                # One that hung and was overtaken must not bring old keys back.
                if attempt is self._attempt:
                    self._known = known
            attempt.failure = None
        except Exception as error:
            attempt.failure = type(error).__name__
            log.warning("the project's public keys could not be fetched (%s)", attempt.failure)
        finally:
            attempt.over.set()

    def _download(self) -> bytes:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        content = b""
        with (
            deadline(self._timeout),
            http_client(self._timeout) as client,
            client.stream("GET", self._url, headers=headers, follow_redirects=False) as answer,
        ):
            if answer.status_code != 200:
                raise ValueError("not 200")
            # Raw, so that nothing small can unfold into something large.
            for piece in answer.iter_raw():
                content += piece
                if len(content) > MAXIMUM_BYTES:
                    raise ValueError("too large")
        return content


def _keys_of(content: bytes) -> dict[str, tuple[str, Key]]:
    """The keys of a JWKS that can verify tokens; what is malformed or of another kind is passed over."""
    listed = json.loads(content)["keys"]
    if not isinstance(listed, list):
        raise TypeError("keys is no list")
    keys: dict[str, tuple[str, Key]] = {}
    for entry in listed:
        if algorithm := _algorithm_of(entry):
            try:
                key = jwk.construct(entry, algorithm)
            except Exception:
                log.debug("a malformed key is passed over")
            else:
                if algorithm == "ES256" or 2048 <= key.prepared_key.key_size <= 8192:
                    keys.setdefault(entry["kid"], (algorithm, key))
    return keys


def _algorithm_of(entry: Any) -> str | None:
    """What a key of a JWKS verifies here: ES256, RS256 or nothing. A secret or a private key: nothing."""
    match entry:
        case {"kty": "EC", "crv": "P-256", "x": str(), "y": str()}:
            algorithm = "ES256"
        case {"kty": "RSA", "n": str(), "e": str()}:
            algorithm = "RS256"
        case _:
            return None
    operations = entry.get("key_ops", ["verify"])
    fits = (
        is_key_id(entry.get("kid"))
        and "d" not in entry
        and entry.get("alg", algorithm) == algorithm
        and entry.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
    )
    return algorithm if fits else None
