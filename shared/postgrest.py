"""The only door to the database: PostgREST, always as the caller.

One pooled transport a process; a fresh, cheap client object for each call carries that caller's token, so
there is no shared state in which one user's token could meet another's request.
"""

from typing import Any

import httpx
from postgrest import SyncPostgrestClient
from postgrest.exceptions import APIError

from shared.errors import DatabaseFailed, DatabaseTimedOut, error_from_sql
from shared.types import Principal

PATIENCE_SECONDS = 70.0


class Database:
    """Calls of the exposed SQL functions. Safe to use from many threads."""

    def __init__(self, supabase_url: str, anon_key: str, timeout_seconds: float) -> None:
        self._address = f"{supabase_url}/rest/v1"
        self._anon_key = anon_key
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=32)
        self._transport = httpx.Client(timeout=timeout_seconds, limits=limits)
        # For writes, which the database itself gives a minute.
        self._patient = httpx.Client(timeout=max(timeout_seconds, PATIENCE_SECONDS), limits=limits)

    def call(
        self,
        caller: Principal,
        function: str,
        arguments: dict[str, Any],
        *,
        again: bool = False,
        patient: bool = False,
    ) -> Any:
        """What the SQL function returns for this caller: a list of rows, or its scalar.

        With `again`, for calls that only read, a connection that broke is tried once more: a pool may hold
        connections that the server closed since. With `patient` it waits over a minute, for writes. Raises
        a RagError, also for everything SQL raised.
        """
        headers = {"apikey": self._anon_key, "Authorization": f"Bearer {caller.token}"}
        transport = self._patient if patient else self._transport
        client = SyncPostgrestClient(self._address, headers=headers, http_client=transport)
        try:
            return client.rpc(function, arguments).execute().data
        except APIError as refused:
            raise error_from_sql(refused.code, refused.message, refused.details) from None
        except httpx.TimeoutException as waited:
            raise DatabaseTimedOut from waited
        except httpx.TransportError as broken:
            if again:
                return self.call(caller, function, arguments)
            raise DatabaseFailed from broken

    def is_reachable(self) -> bool:
        """Whether the project's PostgREST answers, knows the anon key and has our schema.

        Asked as nobody, our function answers that anon may not call it (42501); a gateway that refuses the
        key, or a database without the schema, answers something else.
        """
        headers = {"apikey": self._anon_key, "Authorization": f"Bearer {self._anon_key}"}
        body = {"org_id": "00000000-0000-0000-0000-000000000000"}
        try:
            answer = self._transport.post(f"{self._address}/rpc/is_org_member", json=body, headers=headers)
            return bool(answer.json()["code"] == "42501")
        except (httpx.TransportError, ValueError, TypeError, KeyError):
            return False

    def close(self) -> None:
        self._transport.close()
        self._patient.close()
