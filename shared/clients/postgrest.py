"""The only door to the database: PostgREST, always as the caller.

One pooled transport a process; a fresh, cheap client object for each call carries that caller's token, so
there is no shared state in which one user's token could meet another's request.
"""

from enum import StrEnum
from typing import Any

import httpx
from postgrest import SyncPostgrestClient
from postgrest.exceptions import APIError

from shared.clients.http import deadline, http_client, retry
from shared.clients.row_validation import Answer
from shared.errors import DatabaseFailed, DatabaseTimedOut, RagError, error_from_sql
from shared.types import Principal, PrincipalSource

PATIENCE_SECONDS = 70.0
# Pauses between attempts while PostgREST or Postgres restarts, in seconds.
PAUSES = (0.1, 0.3, 0.8)
# Codes of a gateway in front of PostgREST, to which the call may have been passed on.
NO_ANSWER = {None, "502", "503", "504"}
# There was no connection to Postgres: nothing was done.
NOT_DONE = {"PGRST000", "PGRST002", "57P03", "08001"}
# The transaction was rolled back because of another one, for example a deadlock.
UNDONE = {"40P01", "40001"}
# The user had too many writes running at the same time: nothing was done (rag.begin_write).
TOO_MANY_WRITES = "too_many_writes"
# The error that anon gets for each of our functions.
REFUSED = "42501"
# With an unknown preference, PostgREST plans a call and then refuses it. (Before version 12: makes it.)
PLANNED_ONLY, PLANNED = {"Prefer": "handling=strict, plan=only"}, "PGRST122"
# The function that probes call as anon, and its arguments.
MEMBER = ("is_org_member", {"org_id": "00000000-0000-0000-0000-000000000000"})
# How PostgREST's codes begin for a token that it does not take.
BAD_KEY = "PGRST30"
# There is no such function, or its schema is not served.
NOT_OURS = {"PGRST202", "PGRST106", "42883", "3F000"}
# The connection was lost, or ended, under way, perhaps just after the commit.
PERHAPS_DONE = {"PGRST001", "57P01", "57P02", "08000", "08003", "08006"}


# Header of the functions' secret (sql/10_identity).
SECRET_HEADER = "X-Rag-Functions-Secret"  # noqa: S105  # a name


class DatabaseStatus(StrEnum):
    """How far towards the database the project's own key leads, as it may be told to admins."""

    # PostgREST knows our functions, and its database answers.
    SERVES = "serves"
    # PostgREST refuses the anon key: it has expired, or is signed with another secret.
    KEY_REFUSED = "anon_key_refused"
    # A gateway in front of PostgREST refuses the anon key.
    TURNED_AWAY = "turned_away"
    NO_SCHEMA = "schema_missing"
    NO_DATABASE = "no_database"
    # No response, or not one of PostgREST.
    SILENT = "silent"


class Database:
    """Calls of the exposed SQL functions. Safe to use from many threads."""

    def __init__(
        self, supabase_url: str, anon_key: str, timeout_seconds: float, functions_secret: str | None = None
    ) -> None:
        self._address = f"{supabase_url}/rest/v1"
        self._anon_key = anon_key
        self._secret = {SECRET_HEADER: functions_secret} if functions_secret else {}
        self._seconds = timeout_seconds
        self._transport = http_client(
            PATIENCE_SECONDS, httpx.Limits(max_connections=64, max_keepalive_connections=32)
        )
        self._transport.event_hooks = {"response": [_as_answer]}

    def call(
        self,
        caller: PrincipalSource,
        function: str,
        arguments: dict[str, Any],
        *,
        again: bool = False,
        patient: bool = False,
    ) -> Any:
        """What the SQL function returns for this caller, whoever that is by now: rows, or its scalar.

        A call that surely was not carried out, because the database is just restarting or the user has too
        many changes running, is tried again for a second; with `again`, for calls that may be carried out
        twice, so is one whose connection broke. It all takes at most the time-out of the settings, or with
        `patient`, for writes, over a minute. Raises a RagError, also for everything SQL raised.
        """

        def attempt() -> Any:
            return self._once(caller if isinstance(caller, Principal) else caller(), function, arguments)

        def wait(error: Exception) -> float | None:
            return 0.0 if isinstance(error, _Unavailable) and (again or not error.begun) else None

        with deadline(PATIENCE_SECONDS if patient else self._seconds):
            try:
                return retry(attempt, PAUSES, wait)
            except _Unavailable as unavailable:
                raise unavailable.error from unavailable.__cause__

    def _once(self, caller: Principal, function: str, arguments: dict[str, Any]) -> Any:
        client = SyncPostgrestClient(
            self._address, headers=self._headers(caller.token), http_client=self._transport
        )
        try:
            return client.rpc(function, arguments).execute().data
        except APIError as refused:
            error = error_from_sql(refused.code, refused.message, refused.details)
            if error.code == "duplicate_document" and refused.hint:
                # The one error of ours whose hint is for callers: which document it is.
                error.details["document_id"] = refused.hint
            undone = refused.code in NOT_DONE | UNDONE or error.code == TOO_MANY_WRITES
            if undone or refused.code in PERHAPS_DONE | NO_ANSWER:
                raise _Unavailable(error, begun=not undone) from None
            raise error from None
        except httpx.ConnectError as broken:
            raise _Unavailable(DatabaseFailed(), begun=False) from broken
        except httpx.TimeoutException as timeout:
            raise DatabaseTimedOut from timeout
        except httpx.TransportError as broken:
            raise _Unavailable(DatabaseFailed(), begun=True) from broken

    def reach(self, signed: Principal | None = None) -> DatabaseStatus:
        """How far the anon key leads. `signed`: a caller whose token the project trusts, to reach Postgres.

        The first probe is answered by PostgREST alone: anon may call no function of ours, and Postgres logs
        each refusal as an error.
        """
        try:
            with deadline(self._seconds):
                code, status = self._probe(*MEMBER, self._anon_key, PLANNED_ONLY)
                if code == PLANNED:
                    return self._reach_of_postgres(signed)
        except httpx.TransportError:
            return DatabaseStatus.SILENT
        return _reach_by(code, status)

    def _reach_of_postgres(self, signed: Principal | None) -> DatabaseStatus:
        """Behind a PostgREST that knows the anon key and our schema."""
        if signed is not None:
            code, status = self._probe("rag_health", {}, signed.token)
            if status == 200:
                return DatabaseStatus.SERVES
            # A token that is refused, or an older schema, says nothing about Postgres.
            if not code.startswith(BAD_KEY) and code not in NOT_OURS:
                return _reach_by(code, status)
        # PostgREST reads the catalogue to list the functions that anon may call.
        headers = self._headers(self._anon_key)
        status = self._transport.head(f"{self._address}/", headers=headers).status_code
        if status < 300:
            return DatabaseStatus.SERVES
        if status >= 500:
            return DatabaseStatus.NO_DATABASE
        # A project may describe itself to secret keys alone. Then only a refusal by Postgres tells.
        return _reach_by(*self._probe(*MEMBER, self._anon_key))

    def _probe(
        self, function: str, arguments: dict[str, Any], token: str, headers: dict[str, str] | None = None
    ) -> tuple[str, int]:
        """The code of the error with which the call ends, and its status. Raises httpx.TransportError."""
        answer = self._transport.post(
            f"{self._address}/rpc/{function}", json=arguments, headers=self._headers(token) | (headers or {})
        )
        try:
            code = answer.json()["code"]
        except (ValueError, TypeError, KeyError):
            code = None
        return str(code), answer.status_code

    def _headers(self, token: str) -> dict[str, str]:
        return {"apikey": self._anon_key, "Authorization": f"Bearer {token}", **self._secret}

    def close(self) -> None:
        self._transport.close()


def _as_answer(response: httpx.Response) -> None:
    """Replaces the response's json method, which the client of PostgREST calls."""
    response.__class__ = Answer


def _reach_by(code: str, status: int) -> DatabaseStatus:
    if code == REFUSED:
        return DatabaseStatus.SERVES
    if code in NOT_OURS:
        return DatabaseStatus.NO_SCHEMA
    if code.startswith(BAD_KEY):
        return DatabaseStatus.KEY_REFUSED
    if status in (401, 403):
        return DatabaseStatus.TURNED_AWAY
    # An SQLSTATE has five characters.
    return DatabaseStatus.NO_DATABASE if code.startswith("PGRST") or len(code) == 5 else DatabaseStatus.SILENT


class _Unavailable(Exception):
    """A call without a response of the database. `begun`: it may have been carried out."""

    def __init__(self, error: RagError, *, begun: bool) -> None:
        super().__init__()
        self.error = error
        self.begun = begun
