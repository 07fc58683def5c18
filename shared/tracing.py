"""Trace of a request: its steps, its calls of services, their durations and its outcome.

middleware.py creates it; `step` and `call` add to it. At the end it becomes one log line (request_log.py)
and, if a collector is configured, spans (opentelemetry.py). Its id is in all of them, in the response's
headers and in Postgres' application_name. It contains no tokens or texts: ids, counts, and names that the
code or the settings state.
"""

import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from shared.errors import RagError

# W3C Trace Context, version 00: trace id, span id, flags.
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")
Attribute = str | int | float
# Larger counts of tokens are malformed.
MAX_TOKENS = 10_000_000


def new_id(bits: int) -> str:
    """A random id in hexadecimal digits, not zero."""
    return f"{random.randrange(1, 2**bits):0{bits // 4}x}"  # noqa: S311  # no secret


@dataclass(frozen=True, slots=True)
class Step:
    """A step with its start and end, in nanoseconds since the epoch."""

    name: str
    started: int
    ended: int
    span_id: str = field(default_factory=lambda: new_id(64))

    @property
    def milliseconds(self) -> float:
        return (self.ended - self.started) / 1e6


@dataclass(slots=True)
class Call:
    """A call of the database or a model, with attributes as OpenTelemetry names them. `parent_id`: the step
    that made it. `error`: the code or the type of its error."""

    name: str
    attributes: dict[str, Attribute]
    started: int
    parent_id: str | None
    span_id: str = field(default_factory=lambda: new_id(64))
    ended: int = 0
    error: str | None = None


@dataclass(slots=True)
class Trace:
    """The steps and the outcome of one request."""

    request_id: str
    function: str
    method: str
    trace_id: str = field(default_factory=lambda: new_id(128))
    # The client's span, if the request has a valid `traceparent`.
    parent_id: str | None = None
    span_id: str = field(default_factory=lambda: new_id(64))
    # From the monotonic clock to the wall clock, in nanoseconds.
    offset: int = field(default_factory=lambda: time.time_ns() - time.perf_counter_ns())
    started: int = field(init=False)
    steps: list[Step] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    # The route's template, since a path may contain anything; the status, 0 without a response.
    route: str | None = None
    status: int = 0
    ended: int = 0
    # The error code in the response, and the cause, which only the log contains.
    error: str | None = None
    log_reason: str | None = None
    # For the response alone: they may be any text.
    ignored_filters: Sequence[str] = ()

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
# The span id of the innermost step of this context.
_step_id: ContextVar[str | None] = ContextVar("step", default=None)


def ids_of_client(traceparents: Sequence[str]) -> tuple[str | None, str | None]:
    """The trace id and the span id of a client's `traceparent`; None for a missing, repeated or malformed
    one. `tracestate` and `baggage` are ignored, since a client may write any text there."""
    match = _TRACEPARENT.fullmatch(traceparents[0]) if len(traceparents) == 1 else None
    return (match[1], match[2]) if match else (None, None)


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
    started, span_id = trace.now(), new_id(64)
    outer = _step_id.get()
    _step_id.set(span_id)
    try:
        yield
    finally:
        # Not a reset: a generator may be closed in another context than the one that it began in.
        _step_id.set(outer)
        trace.steps.append(Step(name, started, trace.now(), span_id))


@contextmanager
def call(name: str, attributes: Mapping[str, Attribute]) -> Iterator[Call]:
    """Record the context as a call of the current request, if there is one. The context may add attributes,
    such as counts of tokens."""
    trace = current.get()
    if trace is None:
        yield Call(name, {**attributes}, 0, None)
        return
    entry = Call(name, {**attributes}, trace.now(), _step_id.get())
    try:
        yield entry
    except BaseException as error:
        entry.error = error.code if isinstance(error, RagError) else type(error).__name__
        raise
    finally:
        entry.ended = trace.now()
        trace.calls.append(entry)


def server_attributes(url: str) -> dict[str, Attribute]:
    """The server of a URL from the settings."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or "", "server.port": port}


def model_attributes(operation: str, provider: str, model: str | None, url: str) -> dict[str, Attribute]:
    """Attributes of a model's call by the conventions for generative AI. `model` is None for a name that the
    caller chose, since that may be any text."""
    named: dict[str, Attribute] = {"gen_ai.request.model": model} if model else {}
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider,
        **named,
        **server_attributes(url),
    }


def usage_attributes(reply: Any) -> dict[str, Attribute]:
    """The counts of tokens in the response of an OpenAI-compatible endpoint, which may be malformed."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    counts = usage if isinstance(usage, dict) else {}
    return {
        f"gen_ai.usage.{kind}_tokens": count
        for kind, name in (("input", "prompt_tokens"), ("output", "completion_tokens"))
        if type(count := counts.get(name)) is int and 0 <= count <= MAX_TOKENS
    }
