"""Searches on a read replica of the database.

A reply to a write names its transaction. A client that sends it back reads its own writes: a replica that has
not replayed the transaction refuses (rag.check_replication), and the primary serves the search.
"""

import logging
import re
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx

from shared.clients.http_client import deadline, retry
from shared.clients.postgrest import PAUSES, Database, subjects_of, wait_for_slot
from shared.config import Settings
from shared.errors import RagError, error_details
from shared.types import Principal, PrincipalSource

log = logging.getLogger("rag")
READ_AFTER = "X-Rag-Read-After"
# Time-out of a call, retries included.
DATABASE_SECONDS = 10.0
# Functions that only read, and whose results may be older than the last write.
READS = {"rag_match", "rag_search", "rag_similar", "rag_graph_search", "rag_widen", "rag_graph_of"}
# Functions that change what a search finds. A reply to another write, such as a count, names no transaction.
WRITES = {
    "rag_add_document", "rag_create_collection", "rag_delete_collection", "rag_delete_document",
    "rag_delete_documents", "rag_delete_named", "rag_finish_load", "rag_put_document", "rag_put_documents",
    "rag_update_collection", "rag_update_document",
}  # fmt: skip
# Time limit of a replica's search, after which the primary searches; the pause after a failure.
SECONDS, PAUSE_SECONDS = 3.0, 5.0
_TRANSACTION = re.compile(r"[0-9]{1,19}", re.ASCII)


@dataclass(slots=True)
class Transactions:
    """Of a request: the transaction that its searches must see, and that of its last write, 0 for none."""

    read_after: int = 0
    written: int = 0

    @classmethod
    def of(cls, header: str | None) -> "Transactions":
        """Another text than a number is ignored."""
        return cls(int(header) if header and _TRANSACTION.fullmatch(header) else 0)


transactions: ContextVar[Transactions | None] = ContextVar("transactions", default=None)
_is_write: ContextVar[bool] = ContextVar("is_write", default=False)


class _Replica(Database):
    def read(self, caller: PrincipalSource, function: str, arguments: dict[str, Any]) -> Any:
        """The result, by one attempt; by several if the user has too many reads. Raises a RagError."""

        def attempt() -> Any:
            return self._once(caller if isinstance(caller, Principal) else caller(), function, arguments)

        with error_details(**subjects_of(arguments)), deadline(SECONDS):
            return retry(attempt, PAUSES, wait_for_slot)

    def _headers(self, token: str) -> dict[str, str]:
        of_request = transactions.get()
        after = of_request and max(of_request.read_after, of_request.written)
        return super()._headers(token) | ({READ_AFTER: str(after)} if after else {})


class DatabaseWithReplica(Database):
    """Searches on the replica, and on the primary while the replica fails; all other calls on the primary."""

    has_replica = True

    def __init__(
        self, supabase_url: str, read_url: str, anon_key: str, timeout_seconds: float, secret: str | None
    ) -> None:
        super().__init__(supabase_url, anon_key, timeout_seconds, secret)
        self._replica = _Replica(read_url, anon_key, timeout_seconds, secret)
        self._paused_until = 0.0

    def call(
        self,
        caller: PrincipalSource,
        function: str,
        arguments: dict[str, Any],
        *,
        idempotent: bool = False,
        long_timeout: bool = False,
    ) -> Any:
        if function in READS and time.monotonic() > self._paused_until:
            try:
                return self._replica.read(caller, function, arguments)
            except RagError as error:
                if error.status < 500:
                    raise
                if error.code != "replica_behind":
                    self._paused_until = time.monotonic() + PAUSE_SECONDS
                    log.warning("the read replica failed (%s): the primary searches", error.log_reason)
        return super().call(caller, function, arguments, idempotent=idempotent, long_timeout=long_timeout)

    def _once(self, caller: Principal, function: str, arguments: dict[str, Any]) -> Any:
        token = _is_write.set(function in WRITES)
        try:
            return super()._once(caller, function, arguments)
        finally:
            _is_write.reset(token)

    def _headers(self, token: str) -> dict[str, str]:
        return super()._headers(token) | ({"X-Rag-Return-Transaction": "true"} if _is_write.get() else {})

    def _observe(self, response: httpx.Response) -> None:
        of_request, written = transactions.get(), response.headers.get("X-Rag-Transaction")
        if of_request and written:
            of_request.written = max(of_request.written, int(written))

    def close(self) -> None:
        super().close()
        self._replica.close()


def database_for(settings: Settings) -> Database:
    """The database of the settings, with its replica, if any."""
    url, key = settings.supabase_url, settings.supabase_anon_key.get_secret_value()
    secret = value.get_secret_value() if (value := settings.rag_functions_secret) else None
    if settings.supabase_read_url:
        return DatabaseWithReplica(url, settings.supabase_read_url, key, DATABASE_SECONDS, secret)
    return Database(url, key, DATABASE_SECONDS, secret)
