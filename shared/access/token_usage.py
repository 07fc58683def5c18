"""Tokens that a request uses, and the quotas that its org has used up.

The database counts by org and day (sql/90_operations/28_token_quotas.sql). The check of the rate limit
returns the exceeded quotas, the clients of models add their tokens, and middleware.py records them before the
response ends. Concurrent requests may exceed a limit by their own tokens.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from anyio import CancelScope
from starlette.concurrency import run_in_threadpool

from shared.clients.http_client import deadline
from shared.clients.postgrest import Database
from shared.errors import EmbeddingQuotaExceeded, ModelQuotaExceeded, logged
from shared.tracing import MAX_TOKENS
from shared.types import PrincipalSource

# Time limit of the call that records a request's tokens.
RECORD_SECONDS = 5.0


class Quota(StrEnum):
    """`model`: chat models and rerankers; `embedding`: embedded texts."""

    MODEL = "model"
    EMBEDDING = "embedding"


_ERRORS = {Quota.MODEL: ModelQuotaExceeded, Quota.EMBEDDING: EmbeddingQuotaExceeded}


# A number of tokens, or a function that estimates it, which the thread that records the usage calls.
Tokens = int | Callable[[], int]


@dataclass
class TokenUsage:
    """The calls of models of one request with their tokens, and the quotas that its org has used up.
    `target`: the database and the caller with which the calls are recorded."""

    calls: list[tuple[Quota, Tokens]] = field(default_factory=list)
    exceeded: frozenset[str] = frozenset()
    target: tuple[Database, PrincipalSource] | None = None

    def record(self) -> None:
        """Record the calls until now, once."""
        if self.calls and self.target:
            ended = TokenUsage(self.calls[:])
            self.calls.clear()
            record(*self.target, ended)

    async def record_in_thread(self) -> None:
        if self.calls and self.target:
            # A client that leaves now does not avoid the count.
            with CancelScope(shield=True):
                await run_in_threadpool(self.record)

    def arguments(self) -> dict[str, int]:
        """As rag_record_tokens takes them."""
        return {
            name: value
            for quota in Quota
            for name, value in (
                (f"{quota}_tokens", self.tokens(quota)),
                (f"{quota}_calls", sum(each is quota for each, _ in self.calls)),
            )
        }

    def tokens(self, quota: Quota) -> int:
        own = (tokens for each, tokens in self.calls if each is quota)
        return sum(tokens if isinstance(tokens, int) else tokens() for tokens in own)


current: ContextVar[TokenUsage | None] = ContextVar("token_usage", default=None)


@contextmanager
def measured() -> Iterator[TokenUsage]:
    """Collect the usage of calls in this context; the caller records it."""
    usage = TokenUsage()
    token = current.set(usage)
    try:
        yield usage
    finally:
        current.reset(token)


def add_call(quota: Quota, tokens: Tokens) -> None:
    """Add a call of a model to the usage of the current request, if there is one."""
    if usage := current.get():
        usage.calls.append((quota, tokens))


def record_current() -> None:
    """Record the calls of the current request until now."""
    if usage := current.get():
        usage.record()


def is_exceeded(quota: Quota) -> bool:
    usage = current.get()
    return usage is not None and quota in usage.exceeded


def require(quota: Quota) -> None:
    """Raises ModelQuotaExceeded or EmbeddingQuotaExceeded, with Retry-After in seconds."""
    if is_exceeded(quota):
        raise _ERRORS[quota](headers={"Retry-After": str(seconds_until_midnight())})


def seconds_until_midnight() -> int:
    """The rest of the day in UTC, rounded up."""
    now = datetime.now(UTC)
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((midnight - now).total_seconds()) + 1


def record(database: Database, caller: PrincipalSource, usage: TokenUsage) -> None:
    """Add the usage to that of the caller's org. A failure is logged and fails no request."""
    with logged("tokens were not recorded (%s): the quotas lack this request"), deadline(RECORD_SECONDS):
        database.call(caller, "rag_record_tokens", usage.arguments())


def reported_tokens(reply: Any) -> int | None:
    """The total of tokens in the response of a model's endpoint, which may be malformed; None without one."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    counts = usage if isinstance(usage, dict) else {}
    total = counts.get("total_tokens")
    return total if type(total) is int and 0 <= total <= MAX_TOKENS else None


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """The total divided in proportion to the weights, in whole numbers with the same sum."""
    done = covered = 0
    parts = []
    whole = sum(weights) or 1
    for weight in weights:
        covered += weight
        parts.append(total * covered // whole - done)
        done += parts[-1]
    return parts
