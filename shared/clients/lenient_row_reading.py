"""Lenient reading of database rows: unreadable rows are left out and logged.

SQL refuses such rows. A table may still have one that the deployer wrote or an older schema accepted."""

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import httpx

from shared.types import Row

log = logging.getLogger("rag")
T = TypeVar("T")
# The columns with a row's id, the most specific first.
IDS = ("chunk_id", "id", "document_id")
# Stands for a number that Python cannot read, of more than 4,300 digits.
_UNREADABLE = object()


def readable(rows: Iterable[Row], read: Callable[[Row], T]) -> tuple[T, ...]:
    """The rows as `read` makes them, in order, without those that it cannot read."""
    results = []
    for row in rows:
        try:
            results.append(read(row))
        except (ValueError, TypeError, AttributeError, OverflowError) as unreadable:
            warn(_id_of(row), type(unreadable).__name__)
    return tuple(results)


def object_of(value: Any) -> Row:
    """The value, if it is a JSON object. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def warn(row_id: object, why: str) -> None:
    log.warning("row %s cannot be read (%s)", row_id, why)


class LenientResponse(httpx.Response):
    """A response of PostgREST whose JSON is read leniently."""

    def json(self, **_: Any) -> Any:
        return json_of(self.content)


def json_of(content: bytes) -> Any:
    """The JSON, with null for each number that Python cannot read; the log has the ids of these rows. Raises
    JSONDecodeError."""
    try:
        return json.loads(content)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _without_unreadable(json.loads(content, parse_int=_number), None)


def _number(digits: str) -> Any:
    try:
        return int(digits)
    except ValueError:
        return _UNREADABLE


def _without_unreadable(value: Any, row_id: object) -> Any:
    if value is _UNREADABLE:
        warn(row_id, "a number of too many digits")
        return None
    if isinstance(value, dict):
        row_id = _id_of(value) or row_id
        return {name: _without_unreadable(item, row_id) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_unreadable(item, row_id) for item in value]
    return value


def _id_of(row: Row) -> object:
    return next((row[name] for name in IDS if isinstance(row.get(name), str)), None)
