"""Operations that run once for each Idempotency-Key.

For a day the same request gets the stored response, and a conflict while the first one still runs."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from hashlib import sha256
from typing import Annotated, Any, Self, TypeVar

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from shared.access.idempotency_store import StoredResponse, begin
from shared.api.dependencies import Core, FreshCaller
from shared.clients.postgrest import Database
from shared.observability.tracing import Trace
from shared.types import PrincipalSource, Scope

# Longer than Storage and the database may take to make something.
LEASE_SECONDS = 180
Made = TypeVar("Made", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """An operation: the scope that an API key needs for it, the content (JSON, with dataclasses and bytes) by
    which a repetition is recognised, and its collection or org, if any."""

    scope: Scope
    content: Any = field(repr=False)
    collection: str | None = None
    org_id: str | None = None


@dataclass(frozen=True, slots=True)
class IdempotentExecutor:
    """Runs the operation of one request."""

    _database: Database
    _caller: PrincipalSource
    _key: str | None = field(repr=False)
    _route: str
    _status: int
    _request_id: str

    @classmethod
    async def of(
        cls,
        request: Request,
        core: Core,
        renewed: FreshCaller,
        idempotency_key: Annotated[str | None, Header()] = None,
    ) -> Self:
        """(An empty key is none, as proxies send it. Both prefixes are one route.)"""
        trace: Trace = request.state.trace
        route = request.scope["route"]
        name = f"{request.app.state.function} {route.name}"
        return cls(core.database, renewed, idempotency_key or None, name, route.status_code, trace.request_id)

    def make(self, operation: IdempotentRequest, make: Callable[[], Made]) -> Made | Response:
        """The result of `make`, or the stored response. Failures are not stored. Without a key only `make` is
        called. Raises the errors of `make` and of idempotency_store.begin."""
        if self._key is None:
            return make()
        body = json.dumps(
            [self._route, operation.collection, operation.content], sort_keys=True, default=_written
        )
        claim = begin(
            self._database,
            self._caller,
            operation.org_id,
            self._key,
            body.encode(),
            LEASE_SECONDS,
            collection=operation.collection,
            scope=operation.scope,
        )
        if isinstance(claim, StoredResponse):
            return JSONResponse(claim.body, claim.status, {"Idempotency-Replayed": "true"})
        try:
            result = make()
        except BaseException:
            claim.release()
            raise
        claim.keep(self._status, result.model_dump(mode="json"), self._request_id)
        return result


Once = Annotated[IdempotentExecutor, Depends(IdempotentExecutor.of)]


def _written(value: Any) -> Any:
    """JSON for other values: the digest of a file, since the boundaries of a form vary."""
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return sha256(value).hexdigest()
