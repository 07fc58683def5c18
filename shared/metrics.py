"""Counters in Prometheus' text format. They come from the database, where every instance counts, so they
are true whichever instance answers."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from shared.errors import ApiKeysOff
from shared.pipeline import Pipeline
from shared.sign import call_as_nobody

__all__ = ["CONTENT_TYPE", "exposition"]
FAMILIES = {
    "rag_requests": "Requests counted against a limit, by function and by whether it let them through."
}


class _Rows(Collector):
    """The rows of rag_metrics as metric families."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Metric]:
        for name, text in FAMILIES.items():
            rows = [row for row in self._rows if row["name"] == f"{name}_total"]
            labels = sorted({label for row in rows for label in row["labels"]})  # type: ignore[attr-defined]
            family = CounterMetricFamily(name, text, labels=labels)
            for row in rows:
                values = [str(row["labels"][label]) for label in labels]  # type: ignore[index]
                family.add_metric(values, float(row["value"]))  # type: ignore[arg-type]
            yield family


def exposition(core: Pipeline) -> bytes:
    """All metrics as text. Raises ApiKeysOff without a key to sign the reading token with, or a RagError."""
    if core.signer is None:
        raise ApiKeysOff
    registry = CollectorRegistry()
    registry.register(_Rows(call_as_nobody(core.database, core.signer, "rag_metrics", metrics=True)))
    return generate_latest(registry)
