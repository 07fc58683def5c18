"""Requests before they are sent: what is asked for, and whether it may be asked for twice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from mnemosyne.uploads import Upload

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Request:
    """`repeatable`: done twice, it is as if done once. `accepted`: statuses besides 2xx that are answers.
    `seconds`: how long each attempt may take; `tries`: how many there are; else the client's own."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    json: Any = None
    form: Mapping[str, str] | None = None
    file: Upload | None = None
    repeatable: bool = True
    accepted: tuple[int, ...] = ()
    seconds: float | None = None
    tries: int | None = None


def given(**fields: Any) -> dict[str, Any]:
    """Those that were said: None is as good as nothing."""
    return {name: value for name, value in fields.items() if value is not None}


def query(**fields: Value) -> dict[str, str]:
    """The same as a query or a form has them."""
    return {name: _text(value) for name, value in fields.items() if value is not None}


def path(*parts: str) -> str:
    """An address below the base URL. Raises ValueError for an id that would lead to another one."""
    for part in parts:
        if not part or set(part) == {"."}:
            raise ValueError("an id must not be empty, nor dots")
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
