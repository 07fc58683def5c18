"""What a request makes is made once for each Idempotency-Key: for a day the same request again gets the first
one's answer, and whoever asks while that is still under way is told to wait."""

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
    """What a request is for: the scope that an API key needs, what makes it the same when it comes again
    (JSON, with dataclasses and bytes), and the collection that it is about, or the org, as far as it says."""

    scope: Scope
    said: Any = field(repr=False)
    collection: str | None = None
    org_id: str | None = None


@dataclass(frozen=True, slots=True)
class IdempotentExecutor:
    """Makes what one request asks for."""

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

    def make(self, asked: IdempotentRequest, make: Callable[[], Made]) -> Made | Response:
        """The result of `make`, or the stored response. Failures are not stored. Without a key only `make` is
        called. Raises the errors of `make` and of idempotency_store.begin."""
        if self._key is None:
            return make()
        said = json.dumps([self._route, asked.collection, asked.said], sort_keys=True, default=_written)
        claim = begin(
            self._database,
            self._caller,
            asked.org_id,
            self._key,
            said.encode(),
            LEASE_SECONDS,
            collection=asked.collection,
            scope=asked.scope,
        )
        if isinstance(claim, StoredResponse):
            return JSONResponse(claim.body, claim.status, {"Idempotency-Replayed": "true"})
        try:
            made = make()
        except BaseException:
            claim.release()
            raise
        claim.keep(self._status, made.model_dump(mode="json"), self._request_id)
        return made


# What a handler that makes something asks for.
Once = Annotated[IdempotentExecutor, Depends(IdempotentExecutor.of)]


def _written(value: Any) -> Any:
    """What JSON has no words for. Of a file its digest: how a form was cut says nothing."""
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return sha256(value).hexdigest()
