"""Request log: one JSON line for each request, without tokens and texts.

Warnings within a request have its trace id, too.
"""

import logging
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from shared.tracing import Trace, current

log = logging.getLogger("rag")


def configure() -> None:
    """Write the logger `rag` to stderr, one JSON object a line. The root logger gets no records: its handlers
    (Lambda adds one) would write them again."""
    if log.handlers:
        return
    # slowapi logs refusals as plain text with the user's id.
    logging.getLogger("slowapi").disabled = True
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter("%(levelname)s %(message)s", rename_fields={"levelname": "level"}, timestamp="time")
    )
    handler.addFilter(_with_trace_id)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def _with_trace_id(record: logging.LogRecord) -> bool:
    if trace := current.get():
        record.trace_id = trace.trace_id
    return True


def request_ended(trace: Trace) -> None:
    line: dict[str, Any] = {
        "trace_id": trace.trace_id,
        "request_id": trace.request_id,
        "function": trace.function,
        "method": trace.method,
        "route": trace.route,
        "status": trace.status,
        "ms": round((trace.ended - trace.started) / 1e6, 1),
        "steps": trace.milliseconds(),
    }
    if trace.error:
        line["error"] = trace.error
    if trace.log_reason:
        line["because"] = trace.log_reason
    # A stream, and an agent's tool, may fail after the status was sent.
    failed = trace.status >= 500 or (trace.status < 300 and trace.log_reason is not None)
    log.log(logging.ERROR if failed else logging.INFO, "request", extra=line)
