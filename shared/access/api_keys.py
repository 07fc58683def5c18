"""API keys of users: create, list, rotate, revoke. Row security decides whose are whose."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from shared.clients.postgrest import Database
from shared.errors import NotFound
from shared.types import Principal

BEGINNINGS = {"live": "mn_live_", "test": "mn_test_", "admin": "mn_admin_", "sk": "sk_"}
_KEY = re.compile(rf"(?:{'|'.join(BEGINNINGS.values())})[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made: its text is shown once and never stored. `row` is what lists show of it."""

    text: str = field(repr=False)
    row: dict[str, Any]


def is_key(credential: str) -> bool:
    """Whether it has an API key's form."""
    return _KEY.fullmatch(credential) is not None


def holds_key(text: str) -> bool:
    """Whether there is a key somewhere in it."""
    return _KEY.search(text) is not None


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def create(database: Database, caller: Principal, kind: str, fields: dict[str, Any]) -> NewKey:
    """A key of the caller's own. `fields`: name and scopes, optionally org_id, collection and expires_at.

    Raises NotFound for an org or collection that the caller does not see, Forbidden for the scope admin
    without being one, InvalidRequest.
    """
    return _new_key(database, caller, BEGINNINGS[kind], "rag_create_key", fields)


def list_keys(database: Database, caller: Principal, key_id: str | None = None) -> list[dict[str, Any]]:
    """The keys that the caller may manage, or the one: at most 1000, working ones first, then the newest."""
    rows: list[dict[str, Any]] = database.call(caller, "rag_list_keys", {"key_id": key_id}, again=True)
    return rows


def rotate(database: Database, caller: Principal, key_id: str, overlap_seconds: int) -> NewKey:
    """A new key in an own key's place, which goes on for `overlap_seconds`. Raises NotFound."""
    rows = list_keys(database, caller, key_id)
    if not rows:
        raise NotFound("There is no such key.", code="key_not_found")
    beginning = next(start for start in BEGINNINGS.values() if rows[0]["prefix"].startswith(start))
    arguments = {"key_id": key_id, "overlap_seconds": overlap_seconds}
    return _new_key(database, caller, beginning, "rag_rotate_key", arguments)


def revoke(database: Database, caller: Principal, key_id: str) -> None:
    """End a key; ending it again is fine. Raises NotFound."""
    if not database.call(caller, "rag_revoke_key", {"key_id": key_id}, again=True):
        raise NotFound("There is no such key.", code="key_not_found")


def _new_key(
    database: Database, caller: Principal, beginning: str, function: str, arguments: dict[str, Any]
) -> NewKey:
    # 256 random bits, so one plain hash is as good as a slow one.
    text = beginning + secrets.token_urlsafe(32)
    own = {"prefix": text[: len(beginning) + 4], "hash": hash_of(text)}
    (row,) = database.call(caller, function, {**arguments, **own})
    return NewKey(text, row)
