"""Logs as JSON, one line a request, and never a token or a text in them."""

import logging
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from shared.observability.tracing import Trace

log = logging.getLogger("rag")


def configure() -> None:
    """Write what is logged as `rag` to stderr, a JSON object a line; nothing is passed on to the root
    logger, whose handlers (Lambda brings one) would write it a second time."""
    if log.handlers:
        return
    # It says in plain text, with the user's id, what our own line says.
    logging.getLogger("slowapi").disabled = True
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter(
            "%(levelname)s %(message)s",
            rename_fields={"levelname": "level"},
            timestamp="time",
        )
    )
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def request_ended(trace: Trace) -> None:
    """The one line of a request."""
    line: dict[str, Any] = {
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
    if trace.because:
        line["because"] = trace.because
    log.log(logging.ERROR if trace.status >= 500 else logging.INFO, "request", extra=line)
