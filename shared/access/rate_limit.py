"""Rate limits of callers: counted in Postgres through slowapi in one round trip.

slowapi first asks for the limits. The SQL function that knows them (a tier or an API key may have its own)
also counts the request in the window of each. slowapi then asks its storage for the state of each window, and
passes no caller. The check of the request is therefore in a context variable, and its one result answers all
questions.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from time import monotonic, time
from typing import Any

from cachetools import TLRUCache
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import Storage
from slowapi import Limiter
from slowapi.errors import RateLimitExceeded
from starlette.requests import Request

from shared.clients.postgrest import Database
from shared.errors import DatabaseFailed, NoOrg, RateLimited
from shared.types import Principal, PrincipalSource

# The unit in which text is counted.
KILOBYTE = 1024
# How long a refusal is repeated without the database, and for how many callers.
REFUSAL_SECONDS = 5.0
REFUSALS = 10_000


@dataclass(frozen=True, slots=True)
class RateWindow:
    """A window of one of the caller's limits, and its state after this request."""

    allowed: int
    seconds: int
    hits: int
    # A Unix timestamp in whole seconds, rounded up: the window has ended by then.
    resets_at: int
    admitted: bool

    @classmethod
    def of(cls, row: dict[str, Any]) -> "RateWindow":
        resets_at = int(datetime.fromisoformat(row["resets_at"]).timestamp()) + 1
        return cls(row["allowed"], row["seconds"], row["hits"], resets_at, row["admitted"])

    @property
    def remaining(self) -> int:
        return max(0, self.allowed - self.hits) if self.admitted else 0

    @property
    def tightness(self) -> tuple[bool, int]:
        """Sorts a window that refused first, then the one with the fewest remaining requests."""
        return self.admitted, self.remaining

    @property
    def retry_after(self) -> dict[str, str]:
        """The header of a refusal, in seconds."""
        return {"Retry-After": str(max(1, self.resets_at - int(time())))}

    def headers(self) -> dict[str, str]:
        """The X-RateLimit headers: whole numbers, the reset as a Unix timestamp in seconds."""
        return {
            "X-RateLimit-Limit": str(self.allowed),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.resets_at),
        }


@dataclass
class RateLimitCheck:
    """One request, or `amount` of them, counted against the caller's limits. `windows` is the state of each
    window, by its seconds, once counted."""

    database: Database
    caller: Principal
    function: str
    bucket: str
    rate: RateLimitItem
    amount: int = 1
    windows: dict[int, RateWindow] = field(default_factory=dict)
    # Those of tokens that the caller's org has used up today.
    exceeded_quotas: frozenset[str] = frozenset()
    has_org: bool | None = None
    # Whether a user who belongs to no org is refused.
    needs_org: bool = True

    def count(self) -> None:
        """The one round trip. Raises a RagError."""
        arguments = {
            "function": self.function,
            "bucket": self.bucket,
            "requests": self.rate.amount,
            "window_seconds": self.rate.get_expiry(),
            "amount": self.amount,
        }
        # Repeated after a broken connection: a request may count twice, and none is left uncounted.
        rows = self.database.call(self.caller, "rag_check_rate_limit", arguments, idempotent=True)
        if not rows:
            raise DatabaseFailed
        for window in map(RateWindow.of, rows):
            known = self.windows.get(window.seconds)
            if known is None or window.tightness < known.tightness:
                self.windows[window.seconds] = window
        self.exceeded_quotas = frozenset(rows[-1]["exceeded_quotas"])
        self.has_org = rows[-1]["has_org"]

    @property
    def tightest(self) -> RateWindow:
        """The window that refused, or else the one with the fewest remaining requests."""
        return min(self.windows.values(), key=lambda window: window.tightness)


class RefusalCache:
    """Refusals of a process, by caller and bucket: for five seconds, or until the window resets, a refusal is
    repeated without the database, and the request statistics do not count the request. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._lock = Lock()
        self._refusals: TLRUCache[Any, dict[int, RateWindow]] = TLRUCache(REFUSALS, _expires_at, clock)

    def get(self, check: RateLimitCheck) -> dict[int, RateWindow]:
        """The windows of a refusal to repeat."""
        with self._lock:
            return self._refusals.get(_identity(check), {})

    def add(self, check: RateLimitCheck) -> None:
        with self._lock:
            self._refusals[_identity(check)] = check.windows


def _identity(check: RateLimitCheck) -> tuple[Any, ...]:
    """With the scopes, since the token of a link belongs to one org, whose tier may differ."""
    return check.caller.user_id, check.caller.key_id, check.caller.scopes, check.bucket


def _expires_at(_: Any, windows: dict[int, RateWindow], now: float) -> float:
    resets_at = min(window.resets_at for window in windows.values() if not window.admitted)
    return now + min(REFUSAL_SECONDS, resets_at - time())


_current: ContextVar[RateLimitCheck] = ContextVar("rate_limit")


class PostgresRateLimitStorage(Storage):
    """`limits` storage over rag_check_rate_limit, which counts for the current caller. Keys are ignored."""

    STORAGE_SCHEME = ["rag"]  # noqa: RUF012  # as the base class declares it

    @property
    def base_exceptions(self) -> type[Exception]:
        return DatabaseFailed

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        window = _current.get().windows[expiry]
        return window.hits if window.admitted else window.allowed + 1

    def get(self, key: str) -> int:
        return _current.get().tightest.hits

    def get_expiry(self, key: str) -> float:
        return _current.get().tightest.resets_at

    def check(self) -> bool:
        return True

    def reset(self) -> int | None:
        raise NotImplementedError("counts are not reset")

    def clear(self, key: str) -> None:
        raise NotImplementedError("counts are not reset")


class _LimiterWithoutEnvironment(Limiter):
    """slowapi also reads RATELIMIT_* from the environment and .env, where a line could switch limits off."""

    def get_app_config(self, key: str, default_value: Any = None) -> Any:
        return default_value


# headers_enabled would call the storage again and write fractions; middleware.py writes the headers.
_limiter = _LimiterWithoutEnvironment(
    key_func=lambda: _current.get().caller.user_id, storage_uri="rag://", headers_enabled=False
)


def _limits() -> str:
    """The limits of this request, as slowapi reads them. Counting the request returns them."""
    check = _current.get()
    check.count()
    return ";".join(f"{window.allowed}/{window.seconds} seconds" for window in check.windows.values())


@_limiter.shared_limit(_limits, scope="caller")
def _admit(request: Request) -> None:
    """slowapi raises in the wrapper; a request that arrives here is within its limits."""


def check_rate_limit(request: Request, check: RateLimitCheck, refusals: RefusalCache) -> None:
    """Count this request against the caller's limits, unless one of them refused the caller just before.

    Raises RateLimited, with Retry-After in seconds, and NoOrg for a user who belongs to no org. In all
    cases the request keeps the tightest window, from which middleware.py writes the headers of the response.
    """
    token = _current.set(check)
    try:
        check.windows = refusals.get(check)
        if check.windows:
            raise RateLimited(headers=check.tightest.retry_after)
        _admit(request=request)
        if getattr(request.state, "view_rate_limit", None) is None:
            # slowapi ignores limits that it cannot read. No request is admitted that way.
            raise DatabaseFailed
        if check.needs_org and not check.has_org:
            raise NoOrg
    except RateLimitExceeded:
        refusals.add(check)
        raise RateLimited(headers=check.tightest.retry_after) from None
    finally:
        _current.reset(token)
        if check.windows:
            request.state.rate_limit = check.tightest


def check_text_limit(
    database: Database, caller: PrincipalSource, function: str, text_bytes: int, bytes_per_minute: int
) -> None:
    """Count text against the user's limit, which all of their API keys share. More text than the limit uses
    up a whole minute. Raises RateLimited, with Retry-After in seconds."""
    if text_bytes == 0:
        return
    principal = caller if isinstance(caller, Principal) else caller()
    rate = RateLimitItemPerMinute(bytes_per_minute // KILOBYTE)
    amount = min(-(-text_bytes // KILOBYTE), rate.amount)
    check = RateLimitCheck(database, principal, function, "ingest", rate, amount)
    check.count()
    if not check.tightest.admitted:
        message = (
            f"You sent more than {rate.amount} KB of text in a minute. Please wait, or send less at once."
        )
        raise RateLimited(message, headers=check.tightest.retry_after)
