"""Counters in Prometheus' text format. They come from the database, where every instance counts, so they
are true whichever instance answers."""

import hmac
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from shared.config import Settings
from shared.errors import ApiKeysOff, NotFound, Unauthorized
from shared.pipeline import Pipeline
from shared.sign import signer_for
from shared.types import Principal

__all__ = ["CONTENT_TYPE", "admit_operator", "exposition"]
FAMILIES = {
    "rag_requests": "Requests counted against a limit, by function and by whether it let them through."
}
READING_SECONDS = 10


def admit_operator(settings: Settings, authorization: str | None) -> None:
    """Raises NotFound where no RAG_METRICS_TOKEN is set, Unauthorized without that token."""
    if settings.rag_metrics_token is None:
        raise NotFound
    expected = f"Bearer {settings.rag_metrics_token.get_secret_value()}"
    if not hmac.compare_digest((authorization or "").encode(), expected.encode()):
        raise Unauthorized("The token of the metrics is required.")


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
    signer = signer_for(core.settings)
    if signer is None:
        raise ApiKeysOff
    reader = Principal("", signer.token(READING_SECONDS, rag={"metrics": True}))
    registry = CollectorRegistry()
    registry.register(_Rows(core.database.call(reader, "rag_metrics", {}, again=True)))
    return generate_latest(registry)
