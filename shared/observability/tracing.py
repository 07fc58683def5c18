"""One request's story: which steps it went through, how long each took, how it ended.

The request's edge opens it, the steps write into it from wherever they run, and its end is one log line
and, where an exporter is configured, spans. It never holds a token or a text.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Step:
    """One step's beginning and end, in nanoseconds since the epoch."""

    name: str
    started: int
    ended: int

    @property
    def milliseconds(self) -> float:
        return (self.ended - self.started) / 1e6


@dataclass(slots=True)
class Trace:
    """What is known of the request at hand."""

    request_id: str
    function: str
    method: str
    # From the steady clock that steps are measured with to the wall's, in nanoseconds.
    offset: int = field(default_factory=lambda: time.time_ns() - time.perf_counter_ns())
    started: int = field(init=False)
    steps: list[Step] = field(default_factory=list)
    # How it ended: the route's template (a path may hold anything), the status (0: no response).
    route: str | None = None
    status: int = 0
    ended: int = 0
    # Of what went wrong: the code that the caller was told, and the cause that only the log is.
    error: str | None = None
    because: str | None = None

    def __post_init__(self) -> None:
        self.started = self.now()

    def now(self) -> int:
        """Nanoseconds since the epoch; never less than before, whatever is done to the machine's clock."""
        return self.offset + time.perf_counter_ns()

    def end(self, route: str | None, status: int) -> None:
        self.route, self.status, self.ended = route, status, self.now()

    def milliseconds(self) -> dict[str, float]:
        """By step, in the order of their first beginning."""
        spent: dict[str, float] = {}
        for step in sorted(self.steps, key=lambda step: step.started):
            spent[step.name] = round(spent.get(step.name, 0) + step.milliseconds, 1)
        return spent


current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def milliseconds_since(started: float) -> int:
    """Since a moment of time.perf_counter."""
    return round((time.perf_counter() - started) * 1000)


@contextmanager
def step(name: str) -> Iterator[None]:
    """Time what happens inside as a step of the request at hand; outside of a request it only happens."""
    trace = current.get()
    if trace is None:
        yield
        return
    started = trace.now()
    try:
        yield
    finally:
        trace.steps.append(Step(name, started, trace.now()))
