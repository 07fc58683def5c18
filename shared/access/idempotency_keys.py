"""Database side of Idempotency-Key: reservations, and responses stored for 24 hours."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from shared.clients.postgrest import Database
from shared.errors import Conflict, InvalidRequest, logged
from shared.types import PrincipalSource, Scope

HEADER = "Idempotency-Key"
_PRINTABLE = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response of an earlier request with the same key."""

    status: int
    body: Any
    request_id: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """The exclusive right to execute a request. It ends by keep, by release, or by its lease."""

    _database: Database
    _caller: PrincipalSource
    _claim: dict[str, str] = field(repr=False)

    def keep(self, status: int, body: Any, request_id: str, chunk_ids: Sequence[str] = ()) -> bool:
        """Store the response, which is replayed while the caller sees these chunks. False for a response
        above 250 kB, and after the lease. Never raises, since the request has succeeded."""
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        response = {"status": status, "body": text, "request_id": request_id, "chunk_ids": list(chunk_ids)}
        is_stored = self._end("rag_store_response", **response)
        if is_stored is None:
            self.release()
        return bool(is_stored)

    def release(self) -> None:
        """End without a response: the next such request is executed. Never raises."""
        self._end("rag_release_response")

    def _end(self, function: str, **response: Any) -> bool | None:
        """The database's result; None where the call fails."""
        with logged(
            "the response of an idempotent request could not be stored (%s): a retry may run it again"
        ):
            return bool(self._database.call(self._caller, function, self._claim | response, idempotent=True))
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
    """Reserve the execution of a request, or return the response to replay.

    `body` identifies the request: its route and input. `scope` is the scope that an API key needs. The
    response is stored in the org of the `collection`, else in the org, which members of one may omit. Raises
    InvalidRequest for an invalid key; Conflict for a key that was used with another body, and, with
    Retry-After, while the same request is executed; RateLimited for a caller with too many stored responses;
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
    (row,) = database.call(caller, "rag_claim_response", arguments)
    match row["outcome"]:
        case "go":
            claim = {"org_id": row["org_id"], "key_hash": key_hash, "claim": row["claim"]}
            return Reservation(database, caller, claim)
        case "replay":
            return StoredResponse(row["status"], row["body"], row["request_id"])
        case "busy":
            raise Conflict(
                "The same request is still running. Please try again in a moment.",
                code="request_in_progress",
                headers={"Retry-After": str(row["retry_after"])},
            )
    raise Conflict(
        f"The {HEADER} was used for another request. Use a new one.",
        code="idempotency_mismatch",
        details={"field": HEADER},
    )
