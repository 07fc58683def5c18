"""Audit events of namespaces, written to the database with the usage metrics of the same call."""

from dataclasses import asdict

from shared.clients.postgrest import Database
from shared.errors import logged
from shared.observability.usage_metrics import Measure
from shared.types import PrincipalSource


def record_event(
    database: Database,
    caller: PrincipalSource,
    event: str,
    namespace: str,
    *measures: Measure,
    documents: int = 0,
    chunks: int = 0,
    top_score: float | None = None,
) -> None:
    """Record an audit event of a namespace and count the measures, in one call. A failure is logged and does
    not fail the request."""
    arguments = {
        "event": event,
        "namespace": namespace,
        "documents": documents,
        "chunks": chunks,
        "top_score": top_score,
        "measures": [asdict(measure) for measure in measures],
    }
    with logged(f"the audit event {event} was not recorded (%s)"):
        database.call(caller, "rag_record_event", arguments)
