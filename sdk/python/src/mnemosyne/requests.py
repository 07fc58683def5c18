"""Requests, and whether they may be repeated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from mnemosyne.uploads import Upload

# A deep answer takes the server up to 95 seconds, with a margin for slow models.
WHOLE_SECONDS = 180.0
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Request:
    """`repeatable`: done twice, it is as if done once. `accepted`: statuses besides 2xx that are answers.
    `seconds`: how long each attempt may take; `tries`: how many there are; else the client's own.
    `default_seconds`: how long, if the client has no time-out of its own.
    `idempotency_key`: by which the API knows all attempts as one; `has_generated_key`: the caller gave
    none. `at_root`: the path is not below /api/v1."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    json: Any = None
    form: Mapping[str, str] | None = None
    file: Upload | None = None
    repeatable: bool = True
    accepted: tuple[int, ...] = ()
    seconds: float | None = None
    default_seconds: float | None = None
    tries: int | None = None
    idempotency_key: str | None = None
    has_generated_key: bool = False
    at_root: bool = False

    @property
    def may_retry(self) -> bool:
        return self.repeatable or self.idempotency_key is not None


def creation(path: str, idempotency_key: str | None, *, repeatable: bool = False, **sent: Any) -> Request:
    """A request that creates an object once, however often it is sent. Without a key one is generated;
    `repeatable`: it may be repeated also without a key. Raises ValueError for an invalid key."""
    return Request(
        "POST",
        path,
        repeatable=repeatable,
        idempotency_key=checked_key(idempotency_key) or str(uuid4()),
        has_generated_key=idempotency_key is None,
        **sent,
    )


def checked_key(key: str | None) -> str | None:
    """The idempotency key. Raises ValueError for an invalid one."""
    if key is not None and not (0 < len(key) < 256 and key.isascii() and key.isprintable()):
        raise ValueError("idempotency_key: must be 1 to 255 printable ASCII characters")
    return key


def without_none(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def query(**fields: Value) -> dict[str, str]:
    """The fields as texts of a query or a form."""
    return {name: _text(value) for name, value in fields.items() if value is not None}


def path(*parts: str) -> str:
    """A path below the base URL. Raises ValueError for an id that would lead to another path."""
    for part in parts:
        if not part or set(part) == {"."}:
            raise ValueError("an id must not be empty or consist of dots")
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
