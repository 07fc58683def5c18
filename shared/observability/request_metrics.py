"""Durations and tokens of ended requests, collected in the process and added to the database.

Histograms by function: of requests by status, of steps, of calls of the database and models, of tokens.
The database sums them over all instances (sql/90_operations); api/prometheus.py serves the sums. A batch is
sent with the token of the latest caller, about a second after the end of a request; on Lambda, at its end.
Requests without a valid credential wait for the next caller. No user and no text is part of a batch.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock, Timer
from typing import Any

from shared.clients.http_client import deadline
from shared.clients.postgrest import Database
from shared.errors import DatabaseFailed, RagError, Unauthorized
from shared.tracing import Call, Trace
from shared.types import PrincipalSource

log = logging.getLogger("rag")
REQUESTS, STEPS = "rag_request_duration_seconds", "rag_step_duration_seconds"
DATABASE_CALLS = "db_client_operation_duration_seconds"
MODEL_CALLS, TOKENS = "gen_ai_client_operation_duration_seconds", "gen_ai_client_token_usage"
OWN_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
# Upper bounds of the buckets, as rag.request_metric_bounds has them.
BOUNDS: dict[str, tuple[float, ...]] = {
    REQUESTS: OWN_BOUNDS,
    STEPS: OWN_BOUNDS,
    DATABASE_CALLS: (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10),
    MODEL_CALLS: tuple(0.01 * 2**power for power in range(14)),
    TOKENS: tuple(4.0**power for power in range(14)),
}
# How long a batch collects requests, and the time limit of its call.
BATCH_SECONDS, CALL_SECONDS = 1.0, 2.0
Key = tuple[str, str, str]


@dataclass(slots=True)
class Histogram:
    """Values of one metric, function and label. `counts` and `exemplars`: for each bucket, and for values
    above all bounds."""

    bounds: tuple[float, ...]
    total: int = 0
    sum: float = 0.0
    counts: list[int] = field(init=False)
    exemplars: list[str | None] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)
        self.exemplars = [None] * (len(self.bounds) + 1)

    def add(self, value: float, trace_id: str, at: float) -> None:
        bucket = bisect_left(self.bounds, value)
        self.total += 1
        self.sum += value
        self.counts[bucket] += 1
        self.exemplars[bucket] = f"{trace_id} {value:.6f} {at:.3f}"

    def merge(self, earlier: "Histogram") -> None:
        self.total += earlier.total
        self.sum += earlier.sum
        self.counts = [count + more for count, more in zip(self.counts, earlier.counts, strict=True)]
        pairs = zip(self.exemplars, earlier.exemplars, strict=True)
        self.exemplars = [own or other for own, other in pairs]

    def entry(self, key: Key) -> dict[str, Any]:
        """As rag_record_requests reads it: its buckets count all values up to their bound."""
        name, function, label = key
        buckets, seen = [], 0
        for count in self.counts[:-1]:
            seen += count
            buckets.append(seen)
        return {
            "name": name,
            "function": function,
            "label": label,
            "total": self.total,
            "sum": self.sum,
            "buckets": buckets,
            "exemplars": self.exemplars,
        }


class RequestMetrics:
    """The histograms that are not in the database yet. Safe to use from many threads.

    `is_enabled`: whether the settings demand them. Otherwise middleware.py adds no request."""

    def __init__(self) -> None:
        self.is_enabled = False
        self._lock = Lock()
        self._histograms: dict[Key, Histogram] = {}
        # The database and the latest caller of the batch; the timer that sends it.
        self._target: tuple[Database, PrincipalSource] | None = None
        self._timer: Timer | None = None

    def add(self, trace: Trace, target: tuple[Database, PrincipalSource] | None, *, soon: bool) -> None:
        """Count an ended request. With `soon`, a target's batch is sent in about a second, and otherwise by
        `flush`."""
        with self._lock:
            for name, label, value in _values(trace):
                key = name, trace.function, label
                histogram = self._histograms.setdefault(key, Histogram(BOUNDS[name]))
                histogram.add(value, trace.trace_id, trace.ended / 1e9)
            if target is None:
                return
            self._target = target
            if soon and self._timer is None:
                self._timer = Timer(BATCH_SECONDS, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Send the counts, if a caller was authenticated since the last batch."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            target, histograms = self._target, self._histograms
            self._target = self._timer = None
            if target is None:
                return
            self._histograms = {}
        entries = [histogram.entry(key) for key, histogram in histograms.items()]
        database, caller = target
        try:
            with deadline(CALL_SECONDS):
                database.call(caller, "rag_record_requests", {"histograms": entries})
        except RagError as error:
            log.warning("request metrics were not recorded (%s)", error.log_reason)
            # After a time-out the batch may be in the database. A refused one would be refused again.
            if isinstance(error, DatabaseFailed | Unauthorized):
                self._restore(histograms)

    def _restore(self, histograms: dict[Key, Histogram]) -> None:
        """Keep a batch for the next call."""
        with self._lock:
            for key, histogram in histograms.items():
                if later := self._histograms.get(key):
                    later.merge(histogram)
                else:
                    self._histograms[key] = histogram


request_metrics = RequestMetrics()


def _values(trace: Trace) -> Iterator[tuple[str, str, float]]:
    """Metric, label and value of everything that a request adds."""
    yield REQUESTS, str(trace.status), (trace.ended - trace.started) / 1e9
    spent: dict[str, float] = {}
    for step in trace.steps:
        spent[step.name] = spent.get(step.name, 0) + (step.ended - step.started) / 1e9
    for name, seconds in spent.items():
        yield STEPS, name, seconds
    for call in trace.calls:
        yield from _values_of_call(call)


def _values_of_call(call: Call) -> Iterator[tuple[str, str, float]]:
    seconds = (call.ended - call.started) / 1e9
    operation = call.attributes.get("gen_ai.operation.name")
    if operation is None:
        yield DATABASE_CALLS, call.name, seconds
        return
    yield MODEL_CALLS, f"{operation} {'error' if call.error else 'ok'}", seconds
    for kind in ("input", "output"):
        if (tokens := call.attributes.get(f"gen_ai.usage.{kind}_tokens")) is not None:
            yield TOKENS, f"{operation} {kind}", float(tokens)
