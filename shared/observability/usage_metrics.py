"""Usage metrics, written to the database for all instances. api/prometheus.py serves the sums."""

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field

from starlette.concurrency import run_in_threadpool

from shared.clients.postgrest import Database
from shared.errors import logged
from shared.types import PrincipalSource


@dataclass(frozen=True, slots=True)
class Measure:
    """One value of a metric. `label`: success or failure of a request, prompt or completion of tokens."""

    name: str
    value: float
    label: str = ""


def record(database: Database, caller: PrincipalSource, *measures: Measure) -> None:
    """Count the measures in one call. A failure is logged and does not fail the request."""
    with logged("usage metrics were not recorded (%s): the counters lack this request"):
        database.call(caller, "rag_record_metrics", {"measures": [asdict(measure) for measure in measures]})


@dataclass(slots=True)
class RequestTimer:
    """Measures the duration and outcome of one request of the index API."""

    database: Database
    caller: PrincipalSource
    operation: str
    outcome: str = "failure"
    started: float = field(default_factory=time.perf_counter)

    def record(self) -> None:
        seconds = time.perf_counter() - self.started
        record(
            self.database,
            self.caller,
            Measure(f"rag_{self.operation}_requests_total", 1, self.outcome),
            Measure(f"rag_{self.operation}_latency_seconds", seconds, self.outcome),
        )


@contextmanager
def timed(database: Database, caller: PrincipalSource, operation: str) -> Iterator[None]:
    """Record the duration and outcome of a request of the index API."""
    timer = RequestTimer(database, caller, operation)
    try:
        yield
        timer.outcome = "success"
    finally:
        timer.record()


@asynccontextmanager
async def timed_async(database: Database, caller: PrincipalSource, operation: str) -> AsyncGenerator[None]:
    """`timed` for an event loop, which it does not block."""
    timer = RequestTimer(database, caller, operation)
    try:
        yield
        timer.outcome = "success"
    finally:
        await run_in_threadpool(timer.record)
