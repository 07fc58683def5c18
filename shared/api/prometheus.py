"""Metrics in Prometheus' text format, read from the database.

They include all instances; usage_metrics.py (observability) writes them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from shared.access.token_signer import call_with_claims_only, worker_principal
from shared.generation.confidence import CALIBRATIONS
from shared.services import Services
from shared.types import Row

OPERATIONS = {
    "query": "Questions to an index",
    "retrieve": "Retrievals without an answer",
    "chat": "Chat completions",
    "index": "Documents indexed, by request",
    "indexes": "Lists of indexes",
    "indexes_document": "Lists of an index's documents",
    "indexes_update_document": "Changes of documents",
    "indexes_delete_document": "Deletions of documents",
    "persist": "Snapshots written",
    "load": "Snapshots loaded",
    "delete_index": "Indexes deleted",
}
# The labels of the knowledge API's gateway for its store.
STORE = {"provider": "rag", "store_type": "pgvector"}


@dataclass(frozen=True, slots=True)
class _Family:
    """A metric's help text. `label`: the name of the database's label; `constant`: labels of every sample."""

    text: str
    label: str | None = None
    constant: Mapping[str, str] = field(default_factory=dict)

    def labels(self, row: Row) -> dict[str, str]:
        own = {self.label: row["labels"]["label"]} if self.label else {}
        return {**self.constant, **own}


FAMILIES = {
    **{
        f"rag_{operation}_{kind}": _Family(f"{text}, {what}.", "status")
        for operation, text in OPERATIONS.items()
        for kind, what in (("requests_total", "by outcome"), ("latency_seconds", "how long they took"))
    },
    "gateway_knowledge_chunks_retrieved_total": _Family("Chunks that retrievals brought.", constant=STORE),
    "gateway_knowledge_retrieval_score": _Family("The best score of each retrieval.", constant=STORE),
    "gateway_knowledge_documents_ingested_total": _Family("Documents that were ingested.", constant=STORE),
    "gateway_knowledge_documents_deleted_total": _Family("Documents that were deleted.", constant=STORE),
    "gateway_knowledge_query_tokens_total": _Family(
        "Tokens that answers took.", "kind", {"provider": STORE["provider"]}
    ),
}
QUOTAS = {
    "rag_quota_tokens_today": "Tokens of models since midnight UTC, of all orgs.",
    "rag_quota_orgs_alerted": "Orgs that have reached the alert of their quota today.",
    "rag_quota_orgs_exceeded": "Orgs that have used up their quota today.",
}
QUEUE_LABELS = ["queue", "state"]
QUEUES = ("documents", "extractions", "deliveries", "removals", "sources")


class _Rows(Collector):
    """The rows of rag_metrics, and the worker's queues, as metric families."""

    def __init__(self, rows: list[Row], queues: Mapping[str, Row]) -> None:
        self._rows = rows
        self._queues = queues

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "rag_requests",
            "Requests counted against a limit, by function and by whether it let them through.",
            labels=["function", "outcome"],
        )
        for row in self._of("rag_requests_total"):
            labels = row["labels"]
            requests.add_metric([labels["function"], labels["outcome"]], row["value"])
        yield requests
        for name, family in FAMILIES.items():
            if rows := self._of(name):
                yield (
                    _counter(name, family, rows)
                    if name.endswith("_total")
                    else _histogram(name, family, rows)
                )
        for name, text in QUOTAS.items():
            gauge = GaugeMetricFamily(name, text, labels=["quota"])
            for row in self._of(name):
                gauge.add_metric([row["labels"]["label"]], row["value"])
            yield gauge
        calibrated = GaugeMetricFamily(
            "rag_confidence_calibrated",
            "Whether confidence has a calibration for the deployment's embedding model; 0: medium at most.",
            labels=["model"],
        )
        for row in self._of("rag_confidence_calibrated"):
            model = row["labels"]["label"]
            calibrated.add_metric([model], max(row["value"], model in CALIBRATIONS))
        yield calibrated
        items = GaugeMetricFamily("rag_queue_items", "Items of the worker's queues.", labels=QUEUE_LABELS)
        oldest = GaugeMetricFamily(
            "rag_queue_oldest_due_seconds", "How long the oldest item has been due.", labels=["queue"]
        )
        for queue in QUEUES:
            state = self._queues[queue]
            for name in ("waiting", "running"):
                items.add_metric([queue, name], state[name])
            oldest.add_metric([queue], state["oldest_seconds"] or 0)
        yield items
        yield oldest

    def _of(self, name: str) -> list[Row]:
        return [row for row in self._rows if row["name"] == name]


def _counter(name: str, family: _Family, rows: list[Row]) -> Metric:
    metric = CounterMetricFamily(name, family.text, labels=list(family.labels(rows[0])))
    for row in rows:
        metric.add_metric(list(family.labels(row).values()), row["value"])
    return metric


def _histogram(name: str, family: _Family, rows: list[Row]) -> Metric:
    metric = HistogramMetricFamily(name, family.text, labels=list(family.labels(rows[0])))
    for row in rows:
        buckets = [
            (str(float(bound)), count) for bound, count in zip(row["bounds"], row["buckets"], strict=True)
        ]
        metric.add_metric(list(family.labels(row).values()), [*buckets, ("+Inf", row["total"])], row["value"])
    return metric


def exposition(services: Services) -> tuple[bytes, str]:
    """All metrics and their content type. Raises a RagError, ApiKeysOff without a key to sign with."""
    signer = services.require_signer()
    rows = call_with_claims_only(services.database, signer, "rag_metrics", metrics=True)
    (health,) = services.database.call(worker_principal(signer), "rag_health", {}, idempotent=True)
    registry = CollectorRegistry()
    registry.register(_Rows(rows, health["queues"]))
    return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4
