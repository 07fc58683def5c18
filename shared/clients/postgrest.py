"""Client of PostgREST, which makes every database call as the caller.

Calls share a connection pool. Each call has its own client object with the caller's token, so that no state
could send one user's token with another user's request.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any

import httpx
from postgrest import SyncPostgrestClient
from postgrest.exceptions import APIError

from shared.clients.http_client import HEADERS, deadline, http_transport, retry
from shared.clients.lenient_row_reading import LenientResponse
from shared.clients.proxies import proxy_of_url
from shared.clients.wait_for_slot import LONG_PAUSES, SLOT_PAUSES, with_slot
from shared.errors import (
    DatabaseFailed,
    DatabaseTimedOut,
    RagError,
    TooManyCalls,
    error_details,
    error_from_sql,
)
from shared.tracing import Attribute, call, current, server_attributes
from shared.types import Principal, PrincipalSource, Row

# Time limit of long writes.
LONG_CALL_SECONDS = 70.0
# Pauses between attempts while PostgREST or Postgres restarts, in seconds.
PAUSES = (0.1, 0.3, 0.8)
# Codes of a gateway in front of PostgREST, which may have forwarded the call.
GATEWAY_FAILURES = {None, "502", "503", "504"}
# There was no connection to Postgres.
NOT_EXECUTED = {"PGRST000", "PGRST002", "57P03", "08001"}
# The transaction was rolled back because of another one, for example a deadlock.
ROLLED_BACK = {"40P01", "40001"}
# The error that anon gets for each of the project's functions.
PERMISSION_DENIED = "42501"
# With an unknown preference PostgREST plans a call and then refuses it. (Before version 12 it executes it.)
PLAN_ONLY, PLANNED = {"Prefer": "handling=strict, plan=only"}, "PGRST122"
# The function that probes call as anon, and its arguments.
PROBED_CALL = ("is_org_member", {"org_id": "00000000-0000-0000-0000-000000000000"})
# Prefix of PostgREST's codes for a rejected token.
INVALID_TOKEN = "PGRST30"  # noqa: S105  # a code
# The function does not exist, or its schema is not served.
NOT_EXPOSED = "PGRST106"
UNKNOWN_FUNCTION = {"PGRST202", NOT_EXPOSED, "42883", "3F000"}
# The connection was lost during the call, perhaps after the commit.
POSSIBLY_EXECUTED = {"PGRST001", "57P01", "57P02", "08000", "08003", "08006"}
CODE = re.compile(r"[0-9A-Z]{5,8}", re.ASCII)
# Arguments that name the subject of a call, with their names in the details of its errors.
SUBJECTS = {
    **{
        name: name
        for name in ("collection_id", "document_id", "webhook_id", "source_id", "session_id", "delivery_id")
    },
    "collection": "name",
}
# Header of the functions' secret (sql/10_identity).
SECRET_HEADER = "X-Rag-Functions-Secret"  # noqa: S105  # a name


def subjects_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """The details of a call's errors."""
    return {name: arguments.get(argument) for argument, name in SUBJECTS.items()}


class DatabaseStatus(StrEnum):
    """Result of a probe with the project's anon key. The values are part of the health report."""

    # PostgREST knows the project's functions, and its database answers.
    SERVES = "serves"
    # The same, but the schema cache of PostgREST is older than the newest function.
    OLD_CACHE = "old_schema_cache"
    # PostgREST refuses the anon key: it has expired, or is signed with another secret.
    KEY_REFUSED = "anon_key_refused"
    # A gateway in front of PostgREST refuses the anon key.
    GATEWAY_REFUSED = "turned_away"
    NO_SCHEMA = "schema_missing"
    NOT_EXPOSED = "schema_not_exposed"
    NO_WRITES = "no_writes"
    NO_DATABASE = "no_database"
    # No response, or not one of PostgREST.
    NO_RESPONSE = "silent"

    @property
    def is_serving(self) -> bool:
        return self in (self.SERVES, self.OLD_CACHE)


class Database:
    """Calls of the exposed SQL functions. Safe to use from many threads."""

    has_replica = False
    # Time limit of a connection, besides the deadline of the call.
    connect_seconds = LONG_CALL_SECONDS

    def __init__(
        self, supabase_url: str, anon_key: str, timeout_seconds: float, functions_secret: str | None = None
    ) -> None:
        # The local stack replaces this address by that of PostgREST itself.
        self.address = f"{supabase_url}/rest/v1"
        self._attributes = {"db.system.name": "postgresql", **server_attributes(supabase_url)}
        self._anon_key = anon_key
        # A publishable key (sb_publishable_…) is no JWT, and belongs into the header apikey alone.
        self._anon_token = None if anon_key.startswith("sb_") else anon_key
        self._secret = {SECRET_HEADER: functions_secret} if functions_secret else {}
        self._seconds = timeout_seconds
        proxy_of_url(supabase_url)
        self._client = _Client(self._observe, self.connect_seconds)

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
        """The result of the SQL function for this caller: rows, or a scalar.

        A call that was certainly not executed, because the database restarts, is retried for a second; for
        too many concurrent calls, for five. With
        `idempotent`, for calls that may be executed twice, so is a call whose connection broke. The time
        limit, retries included, is the time-out of the settings, or over a minute with `long_timeout`.
        `check`: a function that only checks, and its arguments: a small call before each attempt.
        Raises a RagError, also for every error of SQL; its details name the subject of the call.
        """

        def attempt(principal: Principal) -> Any:
            return retry(lambda: send(principal), PAUSES, wait)

        def send(principal: Principal) -> Any:
            if check:
                try:
                    self._once(principal, *check)
                except _Unavailable as unavailable:
                    # A check changes nothing.
                    unavailable.executed = False
                    raise
            return self._once(principal, function, arguments)

        def wait(error: Exception) -> float | None:
            return 0.0 if isinstance(error, _Unavailable) and (idempotent or not error.executed) else None

        with (
            error_details(**subjects_of(arguments)),
            deadline(LONG_CALL_SECONDS if long_timeout else self._seconds),
        ):
            try:
                return with_slot(caller, attempt, LONG_PAUSES if long_timeout else SLOT_PAUSES)
            except _Unavailable as unavailable:
                raise unavailable.error from unavailable.__cause__

    def rows(self, caller: PrincipalSource, function: str, arguments: Row, **how: Any) -> list[Row]:
        return list(self.call(caller, function, arguments, **how))

    def page(
        self, caller: PrincipalSource, function: str, name: str, arguments: Row
    ) -> tuple[list[Row], int]:
        """A page of a list, whose rows have that name in the result, and the total."""
        page = self.call(caller, function, arguments, idempotent=True)
        return page[name], page["total"]

    def row(self, caller: PrincipalSource, function: str, arguments: Row, **how: Any) -> Row:
        """The only row."""
        (row,) = self.call(caller, function, arguments, **how)
        return dict(row)

    def _once(self, caller: Principal, function: str, arguments: dict[str, Any]) -> Any:
        with call(function, {**self._attributes, "db.stored_procedure.name": function}) as span:
            client = SyncPostgrestClient(
                self.address,
                headers=self._headers(caller.token) | _traceparent(span.span_id),
                http_client=self._client,
            )
            try:
                return client.rpc(function, arguments).execute().data
            except APIError as refused:
                span.attributes |= _status_code(refused.code)
                raise self._error_of(refused) from None
            except httpx.TransportError as broken:
                raise self._error_of_transport(broken) from broken

    def _error_of(self, refused: APIError) -> RagError:
        error = error_from_sql(refused.code, refused.message, refused.details)
        if error.code == "duplicate_document" and refused.hint:
            # The hint: the id of the document; below an org of the caller, the seconds until the next minute.
            error.details["document_id"] = refused.hint
        elif isinstance(error, TooManyCalls):
            error.org_id = refused.hint or ""
        elif error.code == "upload_limit_reached" and refused.hint:
            error.headers["Retry-After"] = refused.hint
        not_executed = refused.code in NOT_EXECUTED | ROLLED_BACK
        if not_executed or refused.code in POSSIBLY_EXECUTED | GATEWAY_FAILURES:
            return _Unavailable(error, executed=not not_executed)
        return error

    def _error_of_transport(self, broken: httpx.TransportError) -> RagError:
        if isinstance(broken, httpx.TimeoutException):
            return DatabaseTimedOut()
        return _Unavailable(DatabaseFailed(), executed=not isinstance(broken, httpx.ConnectError))

    def status(self, signed: Principal | None = None) -> DatabaseStatus:
        """The result of a probe with the anon key. `signed` is a caller whose token the project trusts, to
        probe Postgres.

        PostgREST alone answers the first request: anon may call no function of the project, and Postgres
        would log each refusal as an error.
        """
        try:
            with deadline(self._seconds):
                response = self._probe(*PROBED_CALL, self._anon_token, PLAN_ONLY)
                if _field_of(response, "code") == PLANNED:
                    return self._postgres_status(signed)
        except httpx.TransportError:
            return DatabaseStatus.NO_RESPONSE
        return _status_of(response)

    def _postgres_status(self, signed: Principal | None) -> DatabaseStatus:
        """For a PostgREST that accepts the anon key and knows the project's schema."""
        if signed is not None:
            response = self._probe("rag_health", {}, signed.token)
            if response.status_code == 200:
                if _field_of(response, "writes") == "standby":
                    return DatabaseStatus.NO_WRITES
                return self._cache_status(_row_of(response).get("newest_function"))
            # A refused token or an older schema gives no information about Postgres.
            code = _field_of(response, "code")
            if not code.startswith(INVALID_TOKEN) and code not in UNKNOWN_FUNCTION:
                return _status_of(response)
        # PostgREST reads the catalogue to list the functions that anon may call.
        headers = self._headers(self._anon_token)
        status = self._client.request("HEAD", f"{self.address}/", headers=headers).status_code
        if status < 300:
            return DatabaseStatus.SERVES
        if status >= 500:
            return DatabaseStatus.NO_DATABASE
        # A project may serve this list to secret keys alone. Then only a refusal by Postgres shows its state.
        return _status_of(self._probe(*PROBED_CALL, self._anon_token))

    def _cache_status(self, newest: dict[str, Any] | None) -> DatabaseStatus:
        """PostgREST reads its cache as a whole: an old one lacks the function that was created last."""
        if newest:
            arguments = dict.fromkeys(newest["arguments"])
            response = self._probe(newest["name"], arguments, self._anon_token, PLAN_ONLY)
            if _field_of(response, "code") in UNKNOWN_FUNCTION:
                return DatabaseStatus.OLD_CACHE
        return DatabaseStatus.SERVES

    def _probe(
        self,
        function: str,
        arguments: dict[str, Any],
        token: str | None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """Raises httpx.TransportError."""
        # The schema that calls name: without it, PostgREST takes the first that it serves.
        headers = self._headers(token) | {"Content-Profile": "public"} | (headers or {})
        return self._client.request("POST", f"{self.address}/rpc/{function}", json=arguments, headers=headers)

    def _observe(self, response: httpx.Response) -> None:
        """For subclasses."""

    def _headers(self, token: str | None) -> dict[str, str]:
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        return {"apikey": self._anon_key, **bearer, **self._secret}

    def close(self) -> None:
        self._client.close()


class _Client(httpx.Client):
    """A client whose `request` omits redirects, cookies and merged URLs, which take a quarter of a call's
    processor time. Its responses read JSON leniently."""

    def __init__(self, observe: Callable[[httpx.Response], None], connect_seconds: float) -> None:
        transport = http_transport(httpx.Limits(max_connections=64, max_keepalive_connections=32))
        timeout = httpx.Timeout(LONG_CALL_SECONDS, connect=connect_seconds)
        super().__init__(transport=transport, timeout=timeout, headers=HEADERS)
        self._observe = observe
        self._handle = transport.handle_request
        self._extensions = {"timeout": self.timeout.as_dict()}

    def request(  # type: ignore[override]  # as much as PostgREST's client and the probes use
        self, method: str, url: str, *, headers: Any, params: Any = None, auth: None = None, **body: Any
    ) -> httpx.Response:
        if self.is_closed:
            raise RuntimeError("the client of PostgREST is closed")
        by_name = {
            name.lower(): (name, value) for name, value in self.headers.raw + httpx.Headers(headers).raw
        }
        request = httpx.Request(
            method,
            _parsed(url),
            params=params or None,
            headers=list(by_name.values()),
            extensions=self._extensions,
            **body,
        )
        sent = self._handle(request)
        response = LenientResponse(
            sent.status_code,
            headers=sent.headers,
            stream=sent.stream,
            extensions=sent.extensions,
            request=request,
        )
        try:
            response.read()
        finally:
            response.close()
        self._observe(response)
        return response


@lru_cache(512)
def _parsed(url: str) -> httpx.URL:
    """The URLs are those of the exposed functions."""
    return httpx.URL(url)


def _traceparent(span_id: str) -> dict[str, str]:
    """The header from which rag.check_request sets application_name to the trace id."""
    trace = current.get()
    return {"traceparent": f"00-{trace.trace_id}-{span_id}-01"} if trace else {}


def _status_code(code: str | None) -> dict[str, Attribute]:
    """The code of Postgres or PostgREST. Another server may send any text."""
    return {"db.response.status_code": code} if code and CODE.fullmatch(code) else {}


def _row_of(response: httpx.Response) -> dict[str, Any]:
    """An error, or the first row; empty for other content."""
    try:
        body = response.json()
        row = body[0] if isinstance(body, list) else body
    except (ValueError, LookupError):
        return {}
    return row if isinstance(row, dict) else {}


def _field_of(response: httpx.Response, name: str) -> str:
    return str(_row_of(response).get(name, ""))


def _status_of(response: httpx.Response) -> DatabaseStatus:
    code, status = _field_of(response, "code"), response.status_code
    if code == PERMISSION_DENIED:
        return DatabaseStatus.SERVES
    if code == NOT_EXPOSED:
        return DatabaseStatus.NOT_EXPOSED
    if code in UNKNOWN_FUNCTION:
        return DatabaseStatus.NO_SCHEMA
    if code.startswith(INVALID_TOKEN):
        return DatabaseStatus.KEY_REFUSED
    if status in (401, 403):
        return DatabaseStatus.GATEWAY_REFUSED
    # An SQLSTATE has five characters.
    return (
        DatabaseStatus.NO_DATABASE
        if code.startswith("PGRST") or len(code) == 5
        else DatabaseStatus.NO_RESPONSE
    )


class _Unavailable(RagError):
    """A call without a response of the database. `executed`: the database may have executed it."""

    def __init__(self, error: RagError, *, executed: bool) -> None:
        super().__init__(code=error.code)
        self.error = error
        self.executed = executed
