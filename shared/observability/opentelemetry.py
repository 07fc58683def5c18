"""Export of request traces as OpenTelemetry spans, one for each step.

SDK and exporter are imported only when a collector is configured. The spans are created after the end of the
request, from the times in its trace.
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
    """Send spans to the collector, over HTTP in the background. None stops the export."""
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
        # The caller's traceparent does not decide which requests are sampled.
        sampler=ALWAYS_ON,
        resource=Resource.create({"service.name": "rag"}),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=FLUSH_SECONDS))
    )
    _provider = provider


def flush() -> None:
    """Send the finished spans, within FLUSH_SECONDS, before Lambda freezes the process."""
    if _provider is not None:
        # The SDK's own time-out has no effect yet.
        sending = Thread(target=_provider.force_flush, daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)


def export(trace: Trace, headers: Mapping[str, str]) -> None:
    """Export the spans of a request that has ended, as children of the caller's `traceparent`, if any."""
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
