"""Ids of collections and orgs, and names in their place."""

import re
from collections.abc import Sequence

from mnemosyne.errors import ConflictError, NotFoundError
from mnemosyne.models.base import Model, Pagination

# A UUID, with or without the prefix of the search contract and others.
_ID = re.compile(r"([a-z]+_)?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


class Item(Model):
    id: str
    name: str | None = None


class Items(Model):
    data: list[Item]
    pagination: Pagination | None = None


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def id_by_name(noun: str, name: str, items: Sequence[Item]) -> str:
    """The id of the one item of that name. Raises NotFoundError, whose details hold the names that
    exist, and ConflictError with the ids of several items of that name."""
    ids = [item.id for item in items if item.name == name]
    if len(ids) == 1:
        return ids[0]
    if ids:
        raise ConflictError(
            f"{len(ids)} {noun}s have the name {name!r}. Pass an id: {', '.join(ids)}.",
            status_code=409,
            code="ambiguous_name",
        )
    # The message may reach a user who must not see the other names.
    raise NotFoundError(
        f"No {noun} has the name {name!r}. Check the name; details['names'] lists those that exist.",
        status_code=404,
        code=f"{noun}_not_found",
        details={"names": sorted(item.name for item in items if item.name)},
    )
