"""Choice of the source's implementation for a claimed row."""

from collections.abc import Sequence

from shared.clients.ssrf_guard import AddressPolicy
from shared.ingestion.job_queue import Row
from shared.ingestion.sources.bucket import Bucket
from shared.ingestion.sources.source import EndpointRefused, Source
from shared.ingestion.sources.website import Website


def open_source(row: Row, networks: AddressPolicy, endpoints: Sequence[str]) -> Source:
    """`endpoints`: the S3-compatible services of the settings, besides AWS. Raises a RagError for an address
    that is not allowed."""
    if row["kind"] == "website":
        return Website(row["address"], networks, row["item_limit"], row["org_id"])
    if row["endpoint"] and row["endpoint"] not in endpoints:
        raise EndpointRefused
    return Bucket(row["address"], row["endpoint"], row["region"], row["credentials"], networks)
