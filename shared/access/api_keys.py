"""API keys of users: create, list, rotate, revoke, under row security."""

import hashlib
import re
import secrets

from shared.clients.postgrest import Database
from shared.errors import NotFound
from shared.types import Principal, Row

PREFIXES = {"live": "mn_live_", "test": "mn_test_", "admin": "mn_admin_", "sk": "sk_"}
_KEY = re.compile(rf"(?:{'|'.join(PREFIXES.values())})[A-Za-z0-9_-]{{43}}")


def is_key(credential: str) -> bool:
    return _KEY.fullmatch(credential) is not None


def holds_key(text: str) -> bool:
    return _KEY.search(text) is not None


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def create(database: Database, caller: Principal, kind: str, fields: Row) -> Row:
    """Create a key of the caller. `fields`: name and scopes, optionally org_id, collection and expires_at.
    The result has the key's text as `key`, which is never stored.

    Raises NotFound for an org or collection that the caller does not see, Forbidden for the scope admin of a
    caller who is no admin, InvalidRequest.
    """
    return _new_key(database, caller, PREFIXES[kind], "rag_create_key", fields)


def list_keys(database: Database, caller: Principal, key_id: str | None = None) -> list[Row]:
    """The keys that the caller may manage, or one of them: at most 1000, working and new keys first."""
    return database.rows(caller, "rag_list_keys", {"key_id": key_id}, idempotent=True)


def rotate(database: Database, caller: Principal, key_id: str, overlap_seconds: int) -> Row:
    """A new key, as by `create`, that replaces one of the caller, which still works for `overlap_seconds`.
    Raises NotFound."""
    rows = list_keys(database, caller, key_id)
    if not rows:
        raise _not_found()
    prefix = next(start for start in PREFIXES.values() if rows[0]["prefix"].startswith(start))
    arguments = {"key_id": key_id, "overlap_seconds": overlap_seconds}
    return _new_key(database, caller, prefix, "rag_rotate_key", arguments)


def revoke(database: Database, caller: Principal, key_id: str) -> None:
    """Revoke a key, which may be revoked already. Raises NotFound."""
    if not database.call(caller, "rag_revoke_key", {"key_id": key_id}, idempotent=True):
        raise _not_found()


def _not_found() -> NotFound:
    return NotFound("There is no such key. Check its id.", code="key_not_found")


def _new_key(database: Database, caller: Principal, prefix: str, function: str, arguments: Row) -> Row:
    # 256 random bits: a fast hash is as safe as a slow one.
    text = prefix + secrets.token_urlsafe(32)
    own = {"prefix": text[: len(prefix) + 4], "hash": hash_of(text)}
    (row,) = database.call(caller, function, {**arguments, **own})
    return {**row, "key": text}
