"""Interface of a source: a listing of items with versions, and the content of an item."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from shared.errors import FetchFailed, InvalidRequest, UnreadableDocument

# Bytes of one item.
MAX_BYTES = 25 * 1024 * 1024
ITEMS_AT_ONCE = 500


class ItemGone(UnreadableDocument, code="item_gone"):
    """The item is listed and does not exist. Remove it from the listing."""


class ItemLeftOut(Exception):
    """The item is listed, and is no document of the source, for a reason that the run counts. `keeps`: the
    document that it had stays, because the item may have content again."""

    def __init__(self, reason: str, *, keeps: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.keeps = keeps


class ItemsGone(FetchFailed, code="items_gone"):
    """Most items of the listing do not exist, so that nothing was deleted. Check the source."""


class NothingListed(InvalidRequest, code="no_items"):
    """The source lists no item, so that nothing was deleted. Check its address and prefix, or delete it."""


class ListingRefused(InvalidRequest, code="listing_refused"):
    """The source cannot be listed. Check its address."""


class EndpointRefused(InvalidRequest, code="endpoint_not_allowed"):
    """The endpoint is not allowed. Ask the operator to add it to RAG_SOURCE_ENDPOINTS."""


class CredentialsRefused(InvalidRequest, code="invalid_credentials"):
    """The credentials need an access_key_id and a secret_access_key. Change the source's credentials."""


@dataclass(frozen=True, slots=True)
class Item:
    """A page or an object. `id` is its address. Without a `version` it must be fetched to be compared."""

    id: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The content of an item, for a document. `version` is for items whose listing has none."""

    data: bytes = field(repr=False)
    title: str | None = None
    filename: str | None = None
    content_type: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    version: str | None = None


class ClaimedSource(TypedDict):
    """A source that the worker has claimed (rag_claim_sources). `listed` and `gone`: items of earlier time
    slices of the run."""

    org_id: str
    source_id: str
    user_id: str
    lease: str
    attempts: int
    kind: str
    address: str
    endpoint: str | None
    region: str | None
    item_limit: int
    include_noindex: bool
    resume_after: str | None
    run_number: int
    listed: int
    gone: int
    credentials: dict[str, Any] | None
    waiting_jobs: int


class Source(Protocol):
    """Raises a RagError for a listing that is not complete, whose items are then not deleted. `lists_all`:
    whether an item that is not listed is gone."""

    lists_all: bool

    def items(self, after: str) -> Iterator[Sequence[Item]]:
        """The items whose ids are greater than `after`, in the order of their ids, in batches."""
        ...

    def fetch(self, item: Item, known_version: str | None) -> Content | None:
        """The content; None if it still has the known version. Raises ItemGone, ItemLeftOut, and a RagError
        for an item that cannot be read."""
        ...


def too_many_items(max_items: int) -> ListingRefused:
    return ListingRefused(
        f"The source has more than {max_items:,} items. Choose a narrower address, or raise max_items.",
        code="too_many_items",
    )
