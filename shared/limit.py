"""Step two: requests counted in Postgres, through slowapi, in one round trip.

slowapi decides; its storage is one SQL function that counts for the calling user and tells where the
window stands. slowapi asks a storage three questions (incr, get, get_expiry) that know nothing of callers,
so the spending at hand travels in a context variable, and the first answer serves all three.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from time import time
from typing import Any

from limits import RateLimitItem, parse
from limits.storage import Storage
from slowapi import Limiter
from slowapi.errors import RateLimitExceeded
from starlette.requests import Request

from shared.errors import DatabaseFailed, RateLimited
from shared.postgrest import Database
from shared.types import Principal


@dataclass
class Spending:
    """One request against one user's budget, and, once counted, where the window stands."""

    database: Database
    caller: Principal
    bucket: str
    limit: RateLimitItem
    hits: int = 0
    resets_at: int = 0

    def headers(self) -> dict[str, str]:
        """The X-RateLimit headers: whole numbers, the reset as a Unix timestamp in seconds."""
        return {
            "X-RateLimit-Limit": str(self.limit.amount),
            "X-RateLimit-Remaining": str(max(0, self.limit.amount - self.hits)),
            "X-RateLimit-Reset": str(self.resets_at),
        }


_spending: ContextVar[Spending] = ContextVar("spending")


class CallersStorage(Storage):
    """`limits` storage over rag_hit. It counts for the caller of the spending at hand; keys are ignored."""

    STORAGE_SCHEME = ["rag"]  # noqa: RUF012  # as the base class declares it

    @property
    def base_exceptions(self) -> type[Exception]:
        return DatabaseFailed

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        spending = _spending.get()
        arguments = {"bucket": spending.bucket, "window_seconds": expiry, "amount": amount}
        rows = spending.database.call(spending.caller, "rag_hit", arguments)
        if not rows:
            raise DatabaseFailed
        spending.hits = rows[0]["hits"]
        # Rounded up: at the reset that we name, the window is over.
        spending.resets_at = int(datetime.fromisoformat(rows[0]["resets_at"]).timestamp()) + 1
        return spending.hits

    def get(self, key: str) -> int:
        return _spending.get().hits

    def get_expiry(self, key: str) -> float:
        return _spending.get().resets_at

    def check(self) -> bool:
        return True

    def reset(self) -> int | None:
        raise NotImplementedError("nobody resets somebody else's count")

    def clear(self, key: str) -> None:
        raise NotImplementedError("nobody resets somebody else's count")


class _SettingsOfOurs(Limiter):
    """slowapi also reads RATELIMIT_* from the environment and .env, where a line could switch limits off."""

    def get_app_config(self, key: str, default_value: Any = None) -> Any:
        return default_value


# headers_enabled would ask the storage again and write fractions: app.py writes the headers.
_limiter = _SettingsOfOurs(
    key_func=lambda: _spending.get().caller.user_id, storage_uri="rag://", headers_enabled=False
)


@_limiter.shared_limit(lambda: str(_spending.get().limit), scope="caller")
def _admit(request: Request) -> None:
    """slowapi raises in the wrapper; a request that arrives here is within its limit."""


def spend(request: Request, database: Database, caller: Principal, bucket: str, rate: str) -> None:
    """Count this request in the caller's `bucket`, at most `rate` (for example 60/minute).

    Raises RateLimited, with Retry-After in seconds. Either way the request remembers the spending, from
    which app.py writes the headers of whatever response follows.
    """
    spending = Spending(database, caller, bucket, parse(rate))
    token = _spending.set(spending)
    try:
        _admit(request=request)
    except RateLimitExceeded:
        wait = max(1, spending.resets_at - int(time()))
        raise RateLimited(headers={"Retry-After": str(wait)}) from None
    finally:
        _spending.reset(token)
        if spending.hits:
            request.state.spending = spending
