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
    """What was answered, to be answered again."""

    status: int
    body: Any
    request_id: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right, and the duty, to answer: ended by keep or by release, else by its time."""

    _database: Database
    _caller: PrincipalSource
    _held: dict[str, str] = field(repr=False)

    def keep(self, status: int, body: Any, request_id: str, chunk_ids: Sequence[str] = ()) -> bool:
        """Whether the answer is kept: not one above 250 kB, nor of a claim whose time is over. It is replayed
        as long as the caller sees these chunks. Never raises: what cannot be kept is an answer all the
        same."""
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        answer = {"status": status, "body": text, "request_id": request_id, "chunk_ids": list(chunk_ids)}
        kept = self._end("rag_keep_reply", **answer)
        if kept is None:
            self.release()
        return bool(kept)

    def release(self) -> None:
        """There is no answer: the next who asks may try. Never raises."""
        self._end("rag_release_reply")

    def _end(self, function: str, **answer: Any) -> bool | None:
        """What the database says; None where it could not."""
        try:
            return bool(self._database.call(self._caller, function, self._held | answer, again=True))
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
    (found,) = database.call(caller, "rag_claim_reply", arguments)
    match found["outcome"]:
        case "go":
            held = {"org_id": found["org_id"], "key_hash": key_hash, "claim": found["claim"]}
            return Reservation(database, caller, held)
        case "replay":
            return StoredResponse(found["status"], found["body"], found["request_id"])
        case "busy":
            raise Conflict(
                "This request is being worked on. Please ask again in a moment.",
                code="request_in_progress",
                headers={"Retry-After": str(found["retry_after"])},
            )
    raise Conflict(
        f"The {HEADER} was used before, for another request.",
        code="idempotency_mismatch",
        details={"field": HEADER},
    )
