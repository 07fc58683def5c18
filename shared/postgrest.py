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


class Database:
    """Calls of the exposed SQL functions. Safe to use from many threads."""

    def __init__(self, supabase_url: str, anon_key: str, timeout_seconds: float) -> None:
        self._address = f"{supabase_url}/rest/v1"
        self._anon_key = anon_key
        self._transport = httpx.Client(
            timeout=timeout_seconds,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=32),
        )

    def call(
        self, caller: Principal, function: str, arguments: dict[str, Any], *, again: bool = False
    ) -> Any:
        """What the SQL function returns for this caller: a list of rows, or its scalar.

        With `again`, for calls that only read, a connection that broke is tried once more: a pool may hold
        connections that the server closed since. Raises a RagError, also for everything SQL raised.
        """
        headers = {"apikey": self._anon_key, "Authorization": f"Bearer {caller.token}"}
        client = SyncPostgrestClient(self._address, headers=headers, http_client=self._transport)
        try:
            return client.rpc(function, arguments).execute().data
        except APIError as refused:
            raise error_from_sql(refused.code, refused.message, refused.details) from None
        except httpx.TimeoutException:
            raise DatabaseTimedOut from None
        except httpx.TransportError:
            if again:
                return self.call(caller, function, arguments)
            raise DatabaseFailed from None

    def is_reachable(self) -> bool:
        """Whether PostgREST answers at all; says nothing about anybody's rights."""
        try:
            answer = self._transport.head(f"{self._address}/", headers={"apikey": self._anon_key})
        except httpx.TransportError:
            return False
        return answer.status_code < 500

    def close(self) -> None:
        self._transport.close()
