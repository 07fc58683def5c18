"""Requests with an Idempotency-Key: worked on once, and answered the same for 24 hours."""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from shared.clients.postgrest import Database
from shared.errors import Conflict, InvalidRequest, RagError
from shared.types import PrincipalSource, Scope

log = logging.getLogger("rag")
HEADER = "Idempotency-Key"
_PRINTABLE = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response to replay."""

    status: int
    body: Any
    request_id: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """A claim on a request: ended by keep or by release, else when it expires."""

    _database: Database
    _caller: PrincipalSource
    _claim: dict[str, str] = field(repr=False)

    def keep(self, status: int, body: Any, request_id: str, chunk_ids: Sequence[str] = ()) -> bool:
        """Whether the response is stored: not one above 250 kB, nor for an expired claim. It is replayed as
        long as the caller sees these chunks. Never raises: a response that cannot be stored is still sent."""
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        answer = {"status": status, "body": text, "request_id": request_id, "chunk_ids": list(chunk_ids)}
        stored = self._end("rag_keep_reply", **answer)
        if stored is None:
            self.release()
        return bool(stored)

    def release(self) -> None:
        """Without a response: the next request may try. Never raises."""
        self._end("rag_release_reply")

    def _end(self, function: str, **answer: Any) -> bool | None:
        """The result of the database, or None after an error."""
        try:
            return bool(self._database.call(self._caller, function, self._claim | answer, again=True))
        except RagError as error:
            log.warning("an idempotent request could not be ended (%s)", error.because)
            return None


def begin(
    database: Database,
    caller: PrincipalSource,
    org_id: str | None,
    key: str,
    body: bytes,
    lease_seconds: int,
    *,
    collection: str | None = None,
    scope: Scope = Scope.CHAT_READ,
) -> Reservation | StoredResponse:
    """What to do with a request: answer it under the claim, or replay the reply.

    `body` is all that makes two requests the same: the route with what was sent. `scope` is what an API key
    needs for it. Kept in the org of the `collection` that it is about, else in the org, which members of one
    need not name. Raises InvalidRequest for a key that is none; Conflict where the key came with another
    body, and, with Retry-After, while the same is being worked on; RateLimited for whoever has too many kept;
    NotFound for a collection or an org that is not the caller's.
    """
    if not _PRINTABLE.fullmatch(key):
        raise InvalidRequest(
            f"{HEADER} must be 1 to 255 printable characters.",
            code="invalid_idempotency_key",
            details={"field": HEADER},
        )
    key_hash = sha256(key.encode()).hexdigest()
    arguments = {
        "org_id": org_id,
        "key_hash": key_hash,
        "body_hash": sha256(body).hexdigest(),
        "lease_seconds": lease_seconds,
        "collection_id": collection,
        "scope": scope,
    }
    (row,) = database.call(caller, "rag_claim_reply", arguments)
    match row["outcome"]:
        case "go":
            claim = {"org_id": row["org_id"], "key_hash": key_hash, "claim": row["claim"]}
            return Reservation(database, caller, claim)
        case "replay":
            return StoredResponse(row["status"], row["body"], row["request_id"])
        case "busy":
            raise Conflict(
                "This request is being worked on. Please ask again in a moment.",
                code="request_in_progress",
                headers={"Retry-After": str(row["retry_after"])},
            )
    raise Conflict(
        f"The {HEADER} was used before, for another request.",
        code="idempotency_mismatch",
        details={"field": HEADER},
    )
