"""A request's trace as OpenTelemetry spans: one for the request, one a step inside it.

Neither SDK nor exporter is imported unless a collector is configured. Spans are made when the request has
ended, from the times that its trace holds, so the steps know nothing of them.
"""

from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING

from shared.observability.tracing import Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

FLUSH_SECONDS = 2
_provider: "TracerProvider | None" = None


def start(endpoint: str | None) -> None:
    """Send spans to that collector from now on, over HTTP in the background; None stops it."""
    global _provider  # noqa: PLW0603  # a process has one
    if _provider is not None:
        _provider.shutdown()
        _provider = None
    if endpoint is None:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    provider = TracerProvider(
        # Whatever the caller's traceparent says: who is watched is not for callers to decide.
        sampler=ALWAYS_ON,
        resource=Resource.create({"service.name": "rag"}),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=FLUSH_SECONDS))
    )
    _provider = provider


def flush() -> None:
    """Wait until what ended is sent, at most FLUSH_SECONDS: before a Lambda freezes."""
    if _provider is not None:
        # The SDK's own time-out has no effect yet.
        sending = Thread(target=_provider.force_flush, daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)


def export(trace: Trace, headers: Mapping[str, str]) -> None:
    """Hand over an ended request's spans, as children of the caller's `traceparent` if there is one."""
    if _provider is None:
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    tracer = _provider.get_tracer("rag")
    parent = TraceContextTextMapPropagator().extract({name.lower(): value for name, value in headers.items()})
    request = tracer.start_span(
        f"{trace.method} {trace.route or 'no route'}",
        parent,
        SpanKind.SERVER,
        {
            "faas.name": trace.function,
            "http.request.method": trace.method,
            "http.route": trace.route or "",
            "http.response.status_code": trace.status,
            "rag.request_id": trace.request_id,
        },
        start_time=trace.started,
    )
    if trace.status >= 500:
        request.set_status(Status(StatusCode.ERROR, trace.error))
    inside = set_span_in_context(request)
    for step in trace.steps:
        tracer.start_span(step.name, inside, start_time=step.started).end(step.ended)
    request.end(trace.ended)
