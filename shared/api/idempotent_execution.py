"""Idempotency keys: a request is executed once, and its response replayed for a day.

The same request is refused while the first one is executed.
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field, fields, is_dataclass
from hashlib import sha256
from typing import Annotated, Any, Self, TypeVar

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from shared.access.idempotency_keys import Reservation, StoredResponse, begin
from shared.api.authentication import FreshCaller
from shared.api.dependencies import Container
from shared.clients.postgrest import Database
from shared.tracing import Trace
from shared.types import PrincipalSource, Scope

# Longer than Storage, the database, a search or an answer without a model may take.
LEASE_SECONDS = 180
Made = TypeVar("Made", bound=BaseModel)
Event = TypeVar("Event")


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """`scope` is the scope that an API key needs. `content` (JSON, with dataclasses and bytes) tells the same
    request from another one. `collection` or `org_id` is its subject, if it names one."""

    scope: Scope
    content: Any = field(repr=False)
    collection: str | None = None
    org_id: str | None = None
    lease_seconds: int = LEASE_SECONDS


@dataclass(frozen=True, slots=True)
class IdempotentExecutor:
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
        services: Container,
        caller: FreshCaller,
        idempotency_key: Annotated[str | None, Header()] = None,
    ) -> Self:
        """An empty key counts as none, since proxies send it. Both prefixes of a route have the same name."""
        trace: Trace = request.state.trace
        route = request.scope["route"]
        name = f"{request.app.state.function} {route.name}"
        status = route.status_code or 200
        return cls(services.database, caller, idempotency_key or None, name, status, trace.request_id)

    def make(self, operation: IdempotentRequest, make: Callable[[], Made]) -> Made | Response:
        """The result of `make`, or the stored response. Failures are not stored. Without a key only `make` is
        called. Raises the errors of `make` and of idempotency_keys.begin."""
        if self._key is None:
            return make()
        claim = self._reserve(self._key, operation)
        if isinstance(claim, StoredResponse):
            return JSONResponse(claim.body, claim.status, {"Idempotency-Replayed": "true"})
        try:
            result = make()
        except BaseException:
            claim.release()
            raise
        claim.keep(self._status, result.model_dump(mode="json"), self._request_id)
        return result

    async def stream(
        self,
        operation: Callable[[], IdempotentRequest],
        events: AsyncGenerator[Event],
        response: Callable[[Event], tuple[Any, Iterable[str]] | None],
    ) -> StoredResponse | AsyncGenerator[Event]:
        """The events, or the stored response. `response` returns the body of the last event, and the ids of
        the chunks in it: it is stored before that event is passed on. `operation` is called in a thread, and
        only with a key. Raises the errors of `operation` and of idempotency_keys.begin."""
        if self._key is None:
            return events
        key = self._key
        claim = await run_in_threadpool(lambda: self._reserve(key, operation()))
        return claim if isinstance(claim, StoredResponse) else self._stored(claim, events, response)

    async def _stored(
        self,
        claim: Reservation,
        events: AsyncGenerator[Event],
        response: Callable[[Event], tuple[Any, Iterable[str]] | None],
    ) -> AsyncGenerator[Event]:
        ended = False
        try:
            async with aclosing(events):
                async for event in events:
                    if stored := response(event):
                        # From here on a disconnection of the client does not matter.
                        ended = True
                        body, chunks = stored
                        await run_in_threadpool(
                            claim.keep, self._status, body, self._request_id, sorted(chunks)
                        )
                    yield event
        finally:
            if not ended:
                await run_in_threadpool(claim.release)

    def _reserve(self, key: str, operation: IdempotentRequest) -> Reservation | StoredResponse:
        content = [self._route, operation.collection, operation.content]
        return begin(
            self._database,
            self._caller,
            operation.org_id,
            key,
            json.dumps(content, sort_keys=True, default=_json_of).encode(),
            operation.lease_seconds,
            collection=operation.collection,
            scope=operation.scope,
        )


# A parameter of each handler that takes an Idempotency-Key.
Once = Annotated[IdempotentExecutor, Depends(IdempotentExecutor.of)]


def _json_of(value: Any) -> Any:
    """A dataclass as an object, bytes as their digest."""
    if is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    return sha256(value).hexdigest()
