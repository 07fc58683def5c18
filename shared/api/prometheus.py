"""Counters in Prometheus' text format. They come from the database, where every instance counts, so they
are true whichever instance answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from shared.access.token_signer import call_with_claims_only
from shared.errors import ApiKeysOff
from shared.services import Services

__all__ = ["CONTENT_TYPE", "exposition"]
Row = dict[str, Any]
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
# What the knowledge API's gateway says of where knowledge is kept.
STORE = {"provider": "rag", "store_type": "pgvector"}


@dataclass(frozen=True, slots=True)
class _Family:
    """What is said of a metric. `label`: what the one that the database has is called; `always`: the labels
    that are the same on each."""

    text: str
    label: str | None = None
    always: Mapping[str, str] = field(default_factory=dict)

    def labels(self, row: Row) -> dict[str, str]:
        own = {self.label: row["labels"]["label"]} if self.label else {}
        return {**self.always, **own}


FAMILIES = {
    **{
        f"rag_{operation}_{kind}": _Family(f"{text}, {what}.", "status")
        for operation, text in OPERATIONS.items()
        for kind, what in (("requests_total", "by outcome"), ("latency_seconds", "how long they took"))
    },
    "gateway_knowledge_chunks_retrieved_total": _Family("Chunks that retrievals brought.", always=STORE),
    "gateway_knowledge_retrieval_score": _Family("The best score of each retrieval.", always=STORE),
    "gateway_knowledge_documents_ingested_total": _Family("Documents that were ingested.", always=STORE),
    "gateway_knowledge_documents_deleted_total": _Family("Documents that were deleted.", always=STORE),
    "gateway_knowledge_query_tokens_total": _Family(
        "Tokens that answers took.", "kind", {"provider": STORE["provider"]}
    ),
}


class _Rows(Collector):
    """The rows of rag_metrics as metric families."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

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


def exposition(core: Services) -> bytes:
    """All metrics as text. Raises ApiKeysOff without a key to sign the reading token with, or a RagError."""
    if core.signer is None:
        raise ApiKeysOff
    registry = CollectorRegistry()
    registry.register(_Rows(call_with_claims_only(core.database, core.signer, "rag_metrics", metrics=True)))
    return generate_latest(registry)
