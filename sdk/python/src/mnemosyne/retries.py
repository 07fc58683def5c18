"""Whether to try again, and when: exponential back-off with full jitter, or as long as the API asks for.

What may be done twice is repeated after any passing fault, and so is what the API knows again by its
idempotency key. All else is repeated only where nothing was done: no connection came about, or the API
refused the request and said when to come again.
"""

import random
import time
from dataclasses import dataclass, field

import httpx

from mnemosyne.requests import Request

PASSING = frozenset({408, 429, 500, 502, 503, 504})
REFUSED = frozenset({429, 503})
# An earlier attempt with the same idempotency key is running. (No other 409 has Retry-After.)
UNDER_WAY = 409
FIRST_SECONDS, MOST_SECONDS = 0.5, 8.0
# A longer Retry-After is not waited for: the call raises instead.
LONGEST_RETRY_AFTER = 60.0
# The wait for the end of the response after a stream's last part.
DRAIN_SECONDS = 1.0
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Late(httpx.ReadTimeout):
    """An attempt exceeded its time-out."""

    def __init__(self) -> None:
        super().__init__("too late")


def is_passing(status: int) -> bool:
    """Whether a later attempt may succeed."""
    return status in PASSING or status >= 500


def wait_after_fault(request: Request, fault: httpx.RequestError, attempt: int) -> float | None:
    """Seconds until the next attempt, after the `attempt`-th (from 0); None for no further attempt."""
    if isinstance(fault, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return None
    return backoff(attempt) if request.may_retry or isinstance(fault, NOT_SENT) else None


def wait_after_status(request: Request, status: int, retry_after: float | None, attempt: int) -> float | None:
    """The same after a response."""
    if status not in PASSING | {UNDER_WAY}:
        return None
    keyed = request.idempotency_key is not None
    asked_to = retry_after is not None and (status in REFUSED or (status == UNDER_WAY and keyed))
    # (A 429 without Retry-After is an exhausted tier.)
    harmless = status != UNDER_WAY and (request.repeatable or (keyed and status != 429))
    if not (asked_to or harmless):
        return None
    if retry_after is None:
        return backoff(attempt)
    # A random part, so that clients with the same Retry-After do not return together.
    return retry_after + backoff(0) if retry_after <= LONGEST_RETRY_AFTER else None


def backoff(attempt: int) -> float:
    return random.uniform(0, min(MOST_SECONDS, FIRST_SECONDS * 2.0 ** min(attempt, 10)))  # noqa: S311


@dataclass(slots=True)
class Waiting:
    """Increasing pauses between polls, until a deadline."""

    seconds: float
    longest: float = 5.0
    _pause: float = 0.25
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self.seconds - (time.monotonic() - self._began)

    def pause(self, retry_after_seconds: float | None = None) -> float | None:
        """The next pause in seconds, at least the API's Retry-After; None when no time is left."""
        if self.left <= 0:
            return None
        random_pause = self._pause * random.uniform(0.5, 1.0)  # noqa: S311
        self._pause = min(self.longest, self._pause * 1.5)
        return min(self.left, max(random_pause, retry_after_seconds or 0.0))
