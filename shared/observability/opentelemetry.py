"""Export of request traces as OpenTelemetry spans: the request, its steps, and their calls of services.

SDK and exporter are imported only when a collector is configured. The spans are created after the end of the
request, from the times in its trace. Calls have the attributes of OpenTelemetry's conventions for databases
(db.*) and generative AI (gen_ai.*), without the queries, prompts and answers that those permit.
"""

from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING

from shared.tracing import Attribute, Trace

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace import SpanContext, SpanKind

FLUSH_SECONDS = 2
# Calls of one request that are exported: a worker's request makes thousands.
MAX_CALLS = 500
_processor: "BatchSpanProcessor | None" = None
_resource: "Resource | None" = None


def start(endpoint: str | None) -> None:
    """Send spans to the collector, over HTTP in the background. None stops the export."""
    global _processor, _resource  # noqa: PLW0603  # a process has one of each
    if _processor is not None:
        _processor.shutdown()  # type: ignore[no-untyped-call]
        _processor = None
    if endpoint is None:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # An attribute of OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES replaces ours.
    _resource = Resource.create({"service.name": "rag", **OTELResourceDetector().detect().attributes})
    _processor = BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=FLUSH_SECONDS))


def flush() -> None:
    """Send the finished spans, within FLUSH_SECONDS, before Lambda freezes the process."""
    if _processor is not None:
        # The SDK's own time-out has no effect yet.
        sending = Thread(target=_processor.force_flush, daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)


def export(trace: Trace) -> None:
    """Export the spans of a request that has ended, as children of the client's span, if any. Every request
    is exported: the client's sampling flag does not decide."""
    processor = _processor
    if processor is None:
        return
    from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

    def context_of(span_id: str, *, is_remote: bool = False) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(int(trace.trace_id, 16), int(span_id, 16), is_remote, flags)

    request = context_of(trace.span_id)
    steps = {step.span_id: context_of(step.span_id) for step in trace.steps}
    for call in trace.calls[:MAX_CALLS]:
        parent = steps.get(call.parent_id or "", request)
        times = call.started, call.ended
        context = context_of(call.span_id)
        span = _span(call.name, context, parent, SpanKind.CLIENT, call.attributes, call.error, times)
        processor.on_end(span)
    for step in trace.steps:
        times = step.started, step.ended
        span = _span(step.name, steps[step.span_id], request, SpanKind.INTERNAL, {}, None, times)
        processor.on_end(span)
    route: dict[str, Attribute] = {"http.route": trace.route} if trace.route else {}
    span = _span(
        f"{trace.method} {trace.route or 'no route'}",
        request,
        context_of(trace.parent_id, is_remote=True) if trace.parent_id else None,
        SpanKind.SERVER,
        {
            "faas.name": trace.function,
            "http.request.method": trace.method,
            "http.response.status_code": trace.status,
            "rag.request_id": trace.request_id,
            **route,
        },
        (trace.error or str(trace.status)) if trace.status >= 500 else None,
        (trace.started, trace.ended),
    )
    processor.on_end(span)


def _span(
    name: str,
    context: "SpanContext",
    parent: "SpanContext | None",
    kind: "SpanKind",
    attributes: Mapping[str, Attribute],
    error: str | None,
    times: tuple[int, int],
) -> "ReadableSpan":
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Status, StatusCode

    failed = {"error.type": error} if error else {}
    return ReadableSpan(
        name,
        context,
        parent,
        _resource,
        {**attributes, **failed},
        kind=kind,
        status=Status(StatusCode.ERROR) if error else Status(),
        start_time=times[0],
        end_time=times[1],
    )
