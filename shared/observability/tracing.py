"""Trace of a request: its steps, their durations and its outcome.

middleware.py creates it and `step` adds to it. At the end it becomes one log line (request_log.py) and, if a
collector is configured, spans (opentelemetry.py). It contains no tokens or texts.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """A step with its start and end, in nanoseconds since the epoch."""

    name: str
    started: int
    ended: int

    @property
    def milliseconds(self) -> float:
        return (self.ended - self.started) / 1e6


@dataclass(slots=True)
class Trace:
    """The steps and the outcome of one request."""

    request_id: str
    function: str
    method: str
    # From the monotonic clock to the wall clock, in nanoseconds.
    offset: int = field(default_factory=lambda: time.time_ns() - time.perf_counter_ns())
    started: int = field(init=False)
    steps: list[Step] = field(default_factory=list)
    # The route's template, since a path may contain anything; the status, 0 without a response.
    route: str | None = None
    status: int = 0
    ended: int = 0
    # The error code in the response, and the cause, which only the log contains.
    error: str | None = None
    log_reason: str | None = None

    def __post_init__(self) -> None:
        self.started = self.now()

    def now(self) -> int:
        """Nanoseconds since the epoch. Monotonic, also when the wall clock is set back."""
        return self.offset + time.perf_counter_ns()

    def end(self, route: str | None, status: int) -> None:
        self.route, self.status, self.ended = route, status, self.now()

    def milliseconds(self) -> dict[str, float]:
        """The duration of each step, in the order of their first start."""
        spent: dict[str, float] = {}
        for step in sorted(self.steps, key=lambda step: step.started):
            spent[step.name] = round(spent.get(step.name, 0) + step.milliseconds, 1)
        return spent


current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def milliseconds_since(started: float) -> int:
    """`started` is a value of time.perf_counter."""
    return round((time.perf_counter() - started) * 1000)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Record the context as a step of the current request, if there is one."""
    trace = current.get()
    if trace is None:
        yield
        return
    started = trace.now()
    try:
        yield
    finally:
        trace.steps.append(Step(name, started, trace.now()))
