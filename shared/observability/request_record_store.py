"""Records of answered requests in the database: writing, reading, erasure.

The database decides whether an org records requests (rag.orgs.record_days)."""

import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypedDict

from cachetools import TTLCache

from shared.clients.http_client import deadline
from shared.clients.postgrest import Database
from shared.errors import RagError
from shared.types import Principal, PrincipalSource, Row

log = logging.getLogger("rag")
# The time limit of a record, and how long an org that records nothing is not asked again.
CALL_SECONDS, OFF_SECONDS = 2.0, 60.0
MAX_ORGS = 10_000


class RequestRecorder:
    """Writes records. Safe to use from many threads."""

    def __init__(self) -> None:
        # Orgs that record nothing, or the user where the orgs are unknown.
        self._off: TTLCache[tuple[str, ...], bool] = TTLCache(MAX_ORGS, OFF_SECONDS)
        self._lock = Lock()

    def record(
        self,
        database: Database,
        caller: PrincipalSource,
        org_ids: Sequence[str],
        row: Callable[[], Row],
    ) -> bool:
        """Store the record, unless it concerns several orgs or the org records none; whether it was stored. A
        failure is logged and does not fail the request."""
        try:
            if len(org_ids) > 1:
                return False
            principal = caller if isinstance(caller, Principal) else caller()
            key = tuple(org_ids) or (principal.user_id,)
            with self._lock:
                if key in self._off:
                    return False
            with deadline(CALL_SECONDS):
                is_stored = database.call(
                    principal, "rag_record_request", {"record": {**row(), "org_ids": list(org_ids)}}
                )
            if is_stored is False:
                with self._lock:
                    self._off[key] = True
            return is_stored is True
        except Exception as error:
            reason = error.log_reason if isinstance(error, RagError) else type(error).__name__
            log.warning("the answered request was not recorded (%s)", reason)
            return False

    def reset(self) -> None:
        """Ask the database about each org again, after a change of a setting."""
        with self._lock:
            self._off.clear()


class RecordedPassage(TypedDict):
    """`title`: None for a passage that the caller does not see."""

    rank: int
    chunk_id: str
    document_id: str
    title: str | None


class RecordRow(TypedDict):
    """The fields of a record that a replay reads; it has more. `queries`: each with its text and the options
    of its search."""

    id: str
    org_id: str
    function: str
    question: str
    queries: list[Row]
    passages: list[RecordedPassage]
    is_answered: bool
    answer: str | None


def get(database: Database, caller: Principal, record_id: str) -> RecordRow:
    """The record of that id or request id. Raises NotFound."""
    record: RecordRow = database.call(caller, "rag_get_record", {"record_id": record_id}, idempotent=True)
    return record


def rate(
    database: Database, caller: Principal, record_id: str, rating: str | None, reason: str | None
) -> None:
    """Raises NotFound; Forbidden for the record of another user."""
    arguments = {"record_id": record_id, "rating": rating, "reason": reason}
    database.call(caller, "rag_rate_record", arguments, idempotent=True)


def label(
    database: Database, caller: Principal, record_id: str, verdict: str | None, document_ids: Sequence[str]
) -> None:
    """Raises NotFound, also for a document; Forbidden for a caller who is no admin of the record's org."""
    arguments = {"record_id": record_id, "verdict": verdict, "document_ids": document_ids}
    database.call(caller, "rag_label_record", arguments, idempotent=True)


def list_records(database: Database, caller: Principal, **arguments: Any) -> tuple[list[Row], int]:
    """A page of the records of the orgs that the caller administers, and their total. `arguments`: those of
    rag_list_records. Raises Forbidden without such an org."""
    page = database.call(caller, "rag_list_records", arguments, idempotent=True)
    return page["records"], page["total"]


def summary(database: Database, caller: Principal, days: int) -> Row:
    """Counts of the last days. Raises Forbidden as list_records does."""
    return dict(database.call(caller, "rag_summarize_records", {"days": days}, idempotent=True))


def delete(database: Database, caller: Principal, user_id: str | None) -> int:
    """Delete the records of that user, by default the caller; their number."""
    return int(database.call(caller, "rag_delete_records", {"user_id": user_id}))


def settings(database: Database, caller: Principal, org_id: str | None) -> Row:
    """The retention of the org's records. Raises NotFound; InvalidRequest for a caller of several orgs."""
    return dict(database.call(caller, "rag_get_record_settings", {"org_id": org_id}, idempotent=True))


def update_settings(database: Database, caller: Principal, org_id: str | None, days: int | None) -> Row:
    """Raises Forbidden for a caller who is no admin of the org, and the errors of `settings`."""
    arguments = {"org_id": org_id, "retention_days": days}
    return dict(database.call(caller, "rag_update_record_settings", arguments, idempotent=True))
