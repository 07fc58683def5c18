"""Searches on a read replica of the database.

A reply to a write names its transaction. A client that sends it back reads its own writes: a replica that has
not replayed the transaction refuses (rag.check_replication), and the primary serves the search.

A replica without a connection is paused: the primary serves all searches until a probe succeeds. An error of
the database, such as a time-out, concerns one search alone: it does not pause the replica, and the primary
does not repeat an expensive search.
"""

import logging
import re
import time
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import Any

import httpx
from postgrest.exceptions import APIError

from shared.clients.http_client import deadline
from shared.clients.postgrest import (
    CODE,
    LONG_CALL_SECONDS,
    NOT_EXECUTED,
    PLAN_ONLY,
    POSSIBLY_EXECUTED,
    PROBED_CALL,
    ROLLED_BACK,
    Database,
    subjects_of,
)
from shared.clients.wait_for_slot import with_slot
from shared.config import Settings
from shared.errors import DatabaseTimedOut, NoOrg, RagError, error_details
from shared.types import Principal, PrincipalSource, Row

log = logging.getLogger("rag")
READ_AFTER = "X-Rag-Read-After"
# Time-out of a call, retries included.
DATABASE_SECONDS = 10.0
# Functions that only read, and whose results may be older than the last write.
READS = {
    "rag_match", "rag_search", "rag_judged_search", "rag_similar", "rag_graph_search", "rag_widen",
    "rag_graph_of",
}  # fmt: skip
# Functions that change what a search finds. A reply to another write, such as a count, names no transaction.
WRITES = {
    "rag_add_document", "rag_create_collection", "rag_delete_collection", "rag_delete_document",
    "rag_delete_documents", "rag_delete_named", "rag_finish_load", "rag_put_documents",
    "rag_update_collection", "rag_update_document",
}  # fmt: skip
# Time limits of a connection to the replica and of a probe; the pause after a failed connection.
CONNECT_SECONDS, PROBE_SECONDS, PAUSE_SECONDS = 3.0, 1.0, 5.0
# Codes of a replica that has no connection to its database, is not reached by its gateway, or does not know
# the functions, because the schema cache of its PostgREST is older.
NO_CONNECTION = NOT_EXECUTED | POSSIBLY_EXECUTED | {"502", "503", "PGRST106", "PGRST202"}
# The gateway in front of PostgREST waited too long.
GATEWAY_TIMEOUT = "504"
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


class _NotSearched(RagError):
    """A search that the primary serves instead. `is_outage`: so does it all other searches."""

    def __init__(self, reason: str, *, is_outage: bool) -> None:
        super().__init__(log_reason=reason)
        self.is_outage = is_outage


class _Unanswered(DatabaseTimedOut):
    __doc__ = DatabaseTimedOut.__doc__


class _Replica(Database):
    connect_seconds = CONNECT_SECONDS

    def read(self, caller: PrincipalSource, function: str, arguments: dict[str, Any]) -> Any:
        """The result, by one attempt; by several if the user or org has too many reads. Raises a RagError."""
        return with_slot(caller, lambda principal: self._once(principal, function, arguments))

    def responds(self) -> bool:
        """The result of a probe that PostgREST answers alone, outside the deadline of the request."""
        return Context().run(self._responds)

    def _responds(self) -> bool:
        try:
            with deadline(PROBE_SECONDS):
                return self._probe(*PROBED_CALL, self._anon_token, PLAN_ONLY).status_code < 500
        except httpx.TransportError:
            return False

    def _error_of(self, refused: APIError) -> RagError:
        code, error = refused.code or "", super()._error_of(refused)
        if code in NO_CONNECTION:
            return _NotSearched(f"SQL {code}", is_outage=True)
        if code == GATEWAY_TIMEOUT:
            return _Unanswered()
        # Postgres cancels a search that conflicts with the replay, and a new member may not be there yet. A
        # response without a code of PostgREST or Postgres is a gateway's, perhaps to this request alone.
        is_behind = error.code in ("replica_behind", NoOrg.code)
        if code in ROLLED_BACK or is_behind or not CODE.fullmatch(code):
            return _NotSearched(f"SQL {code}", is_outage=False)
        return error

    def _error_of_transport(self, broken: httpx.TransportError) -> RagError:
        # All connections of this process may be in use by slow searches.
        if isinstance(broken, httpx.PoolTimeout):
            return DatabaseTimedOut()
        if isinstance(broken, httpx.TimeoutException) and not isinstance(broken, httpx.ConnectTimeout):
            return _Unanswered()
        return _NotSearched(type(broken).__name__, is_outage=True)

    def _headers(self, token: str | None) -> dict[str, str]:
        of_request = transactions.get()
        after = of_request and max(of_request.read_after, of_request.written)
        return super()._headers(token) | ({READ_AFTER: str(after)} if after else {})


class DatabaseWithReplica(Database):
    """Searches on the replica, and on the primary while the replica has no connection; all other calls on the
    primary."""

    has_replica = True

    def __init__(
        self, supabase_url: str, read_url: str, anon_key: str, timeout_seconds: float, secret: str | None
    ) -> None:
        super().__init__(supabase_url, anon_key, timeout_seconds, secret)
        self._replica = _Replica(read_url, anon_key, timeout_seconds, secret)
        # 0 while the replica serves.
        self._paused_until = 0.0

    def call(
        self,
        caller: PrincipalSource,
        function: str,
        arguments: dict[str, Any],
        *,
        idempotent: bool = False,
        long_timeout: bool = False,
        check: tuple[str, Row] | None = None,
    ) -> Any:
        """As of a database without a replica: the time limit is that of both calls together."""
        with deadline(LONG_CALL_SECONDS if long_timeout else self._seconds):
            if function in READS and self._is_in_use():
                try:
                    with error_details(**subjects_of(arguments)):
                        return self._replica.read(caller, function, arguments)
                except _NotSearched as failure:
                    if failure.is_outage:
                        self._pause(failure.log_reason)
                except _Unanswered:
                    if not self._replica.responds():
                        self._pause("no response")
                    raise
            return super().call(
                caller, function, arguments, idempotent=idempotent, long_timeout=long_timeout, check=check
            )

    def _is_in_use(self) -> bool:
        """After a pause, one search probes the replica while the primary serves the others."""
        if self._paused_until and time.monotonic() > self._paused_until:
            self._paused_until = time.monotonic() + PAUSE_SECONDS
            if self._replica.responds():
                self._paused_until = 0.0
        return not self._paused_until

    def _pause(self, reason: str) -> None:
        self._paused_until = time.monotonic() + PAUSE_SECONDS
        log.warning("the read replica has no connection (%s): the primary searches", reason)

    def _once(self, caller: Principal, function: str, arguments: dict[str, Any]) -> Any:
        token = _is_write.set(function in WRITES)
        try:
            return super()._once(caller, function, arguments)
        finally:
            _is_write.reset(token)

    def _headers(self, token: str | None) -> dict[str, str]:
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
