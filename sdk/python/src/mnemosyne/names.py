# Generated from aio/ by `make generated`. Do not edit.
"""Names of collections and orgs in place of their ids."""

from typing import Literal

from mnemosyne.identifiers import Item, Items, id_by_name, is_id
from mnemosyne.requests import Request, query
from mnemosyne.transport import Transport


def id_of(transport: Transport, noun: Literal["collection", "org"], text: str) -> str:
    """The id, or the id of the one item of that name. A name costs a request for each 100 items, and each
    call makes it again, since items can be renamed. Raises NotFoundError and ConflictError."""
    if not text or is_id(text):
        return text
    items: list[Item] = []
    has_more = True
    while has_more:
        request = Request("GET", f"/{noun}s", query(limit=100, offset=len(items)))
        page = Items.of(transport.send(request))
        items += page.data
        has_more = bool(page.data and page.pagination and page.pagination.has_more)
    return id_by_name(noun, text, items)
