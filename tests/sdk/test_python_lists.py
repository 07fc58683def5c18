"""The Python SDK pages through long lists, a page in memory at a time. Asked by a client with a key, of a
server that has the pages ready."""

import gc
import weakref
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mnemosyne import Mnemosyne
from tests.sdk.python_client import DOCUMENT, HOME, KEY
from tests.stand_in_server import Reply, StandIn

TOTAL, LIMIT = 1000, 100


def page(ids: Sequence[int], offset: int, total: int = TOTAL, limit: int = LIMIT) -> Reply:
    more = {"total": total, "limit": limit, "offset": offset, "has_more": offset + limit < total}
    return Reply(json={"data": [{**DOCUMENT, "id": f"d{each}"} for each in ids], "pagination": more})


def scripted(gateway: StandIn) -> None:
    gateway.replies(*(page(range(start, start + LIMIT), start) for start in range(0, TOTAL, LIMIT)))


def offsets(gateway: StandIn) -> list[int]:
    return [int(parse_qs(urlsplit(request.path).query)["offset"][0]) for request in gateway.requests]


def test_many_documents_are_listed_page_by_page(gateway: StandIn):
    scripted(gateway)
    with Mnemosyne(KEY, gateway.url) as client:
        first = client.documents.list(HOME, limit=LIMIT)
        assert (isinstance(first, list), len(first), first[-1].id) == (True, LIMIT, "d99")
        assert first.pagination
        assert first.pagination.total == TOTAL
        documents, names = first.auto_paging_iter(), list[str]()
        references = list[weakref.ref[Any]]()
        for document in documents:
            names.append(document.id)
            if len(names) % LIMIT == 1:
                references.append(weakref.ref(document))
    assert names == [f"d{number}" for number in range(TOTAL)]
    assert offsets(gateway) == list(range(0, TOTAL, LIMIT))
    gc.collect()
    # The first page, which is held above, and the last document.
    assert sum(reference() is not None for reference in references) <= 2


def test_rows_added_during_paging_cause_no_duplicates(gateway: StandIn):
    """Newest first: another one moves the last of a page to the next."""
    gateway.replies(page([3, 2], 0, 4, 2), page([2, 1], 2, 5, 2), page([0], 4, 5, 2))
    with Mnemosyne(KEY, gateway.url) as client:
        ids = [document.id for document in client.documents.list(HOME, limit=2).auto_paging_iter()]
    assert ids == ["d3", "d2", "d1", "d0"]


def test_an_empty_page_is_the_last_one(gateway: StandIn):
    gateway.replies(page([], 0))
    with Mnemosyne(KEY, gateway.url) as client:
        assert list(client.documents.list(HOME).auto_paging_iter()) == []
    assert len(gateway.requests) == 1
