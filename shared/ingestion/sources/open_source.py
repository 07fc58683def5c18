"""Choice of the source's implementation for a claimed row."""

from collections.abc import Sequence
from functools import lru_cache

from shared.clients.ssrf_guard import AddressPolicy
from shared.ingestion.sources.bucket import Bucket
from shared.ingestion.sources.source import ClaimedSource, EndpointRefused, Source
from shared.ingestion.sources.website import Website


def open_source(row: ClaimedSource, networks: AddressPolicy, endpoints: Sequence[str]) -> Source:
    """`endpoints`: the S3-compatible services of the settings, besides AWS. Raises a RagError for an address
    that is not allowed."""
    if row["kind"] == "website":
        run = (row["source_id"], row["run_number"])
        return _website(
            row["address"], networks, row["item_limit"], row["org_id"], row["include_noindex"], run
        )
    if row["endpoint"] and row["endpoint"] not in endpoints:
        raise EndpointRefused
    return Bucket(row["address"], row["endpoint"], row["region"], row["credentials"], networks)


@lru_cache(maxsize=8)
def _website(
    address: str,
    networks: AddressPolicy,
    max_items: int,
    org_id: str,
    include_noindex: bool,
    _run: tuple[str, int],
) -> Website:
    """The website of a run: its time slices in this process share one listing."""
    return Website(address, networks, max_items, org_id, include_noindex=include_noindex)
