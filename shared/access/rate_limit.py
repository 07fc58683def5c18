"""Step two: requests counted in Postgres, through slowapi, in one round trip.

slowapi decides. It first asks for the limits, and the one SQL function that knows them (a tier's or a key's
may differ from the deployment's) also counts the request in all of their windows. slowapi then asks its
storage where each window stands, in questions that know nothing of callers: so the check of the request is
in a context variable, and its one result answers all of them.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from time import time
from typing import Any

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import Storage
from slowapi import Limiter
from slowapi.errors import RateLimitExceeded
from starlette.requests import Request

from shared.clients.postgrest import Database
from shared.errors import DatabaseFailed, RateLimited
from shared.types import Principal, PrincipalSource

# The unit in which text is counted.
KILOBYTE = 1024


@dataclass(frozen=True, slots=True)
class Window:
    """One of the limits that a caller stands under, and where it stands after this request."""

    allowed: int
    seconds: int
    hits: int
    # A Unix timestamp in whole seconds, rounded up: at the reset that we name, the window is over.
    resets_at: int
    admitted: bool

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Window":
        resets_at = int(datetime.fromisoformat(row["resets_at"]).timestamp()) + 1
        return cls(row["allowed"], row["seconds"], row["hits"], resets_at, row["admitted"])

    @property
    def remaining(self) -> int:
        return max(0, self.allowed - self.hits) if self.admitted else 0

    @property
    def tightness(self) -> tuple[bool, int]:
        """What sorts the window first that refused, and then the one with the least room."""
        return self.admitted, self.remaining


@dataclass
class RateLimitCheck:
    """One request, or `amount` of them, against its caller's budget, and, once counted, where each window
    stands."""

    database: Database
    caller: Principal
    function: str
    bucket: str
    rate: RateLimitItem
    amount: int = 1
    windows: dict[int, Window] = field(default_factory=dict)

    def count(self) -> None:
        """The one round trip. Raises a RagError."""
        arguments = {
            "function": self.function,
            "bucket": self.bucket,
            "requests": self.rate.amount,
            "window_seconds": self.rate.get_expiry(),
            "amount": self.amount,
        }
        # Again after a broken connection: a request may then count twice, and none goes uncounted.
        rows = self.database.call(self.caller, "rag_check_rate_limit", arguments, again=True)
        if not rows:
            raise DatabaseFailed
        for window in map(Window.of, rows):
            known = self.windows.get(window.seconds)
            if known is None or window.tightness < known.tightness:
                self.windows[window.seconds] = window

    @property
    def tightest(self) -> Window:
        """The window that refused, or else the one with the least room."""
        return min(self.windows.values(), key=lambda window: window.tightness)

    @property
    def retry_after(self) -> Mapping[str, str]:
        """The header of a refusal, in seconds."""
        return {"Retry-After": str(max(1, self.tightest.resets_at - int(time())))}

    def headers(self) -> dict[str, str]:
        """The X-RateLimit headers: whole numbers, the reset as a Unix timestamp in seconds."""
        window = self.tightest
        return {
            "X-RateLimit-Limit": str(window.allowed),
            "X-RateLimit-Remaining": str(window.remaining),
            "X-RateLimit-Reset": str(window.resets_at),
        }


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


# headers_enabled would ask the storage again and write fractions: middleware.py writes the headers.
_limiter = _LimiterWithoutEnvironment(
    key_func=lambda: _current.get().caller.user_id, storage_uri="rag://", headers_enabled=False
)


def _limits() -> str:
    """All limits that this request stands under, as slowapi reads them; counting it is what tells."""
    check = _current.get()
    check.count()
    return ";".join(f"{window.allowed}/{window.seconds} seconds" for window in check.windows.values())


@_limiter.shared_limit(_limits, scope="caller")
def _admit(request: Request) -> None:
    """slowapi raises in the wrapper; a request that arrives here is within its limits."""


def check_rate_limit(request: Request, check: RateLimitCheck) -> None:
    """Count this request in the caller's budget.

    Raises RateLimited, with Retry-After in seconds. Either way the request keeps the check, from which
    middleware.py writes the headers of the response.
    """
    token = _current.set(check)
    try:
        _admit(request=request)
        if getattr(request.state, "view_rate_limit", None) is None:
            # slowapi passes over limits that it cannot read; nobody is let through by that.
            raise DatabaseFailed
    except RateLimitExceeded:
        raise RateLimited(headers=check.retry_after) from None
    finally:
        _current.reset(token)
        if check.windows:
            request.state.rate_limit = check


def check_text_limit(
    database: Database, caller: PrincipalSource, function: str, text_bytes: int, bytes_per_minute: int
) -> None:
    """Count text in the user's budget, which all of their API keys share. More text than the limit takes the
    whole of a minute. Raises RateLimited, with Retry-After in seconds."""
    if text_bytes == 0:
        return
    who = caller if isinstance(caller, Principal) else caller()
    rate = RateLimitItemPerMinute(bytes_per_minute // KILOBYTE)
    amount = min(-(-text_bytes // KILOBYTE), rate.amount)
    check = RateLimitCheck(database, who, function, "ingest", rate, amount)
    check.count()
    if not check.tightest.admitted:
        message = f"More text than {rate.amount} KB a minute. Please wait, or send less at once."
        raise RateLimited(message, headers=check.retry_after)
