"""FastAPI dependency of handlers that store texts before they answer: limits and the client's presence."""

import math
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Annotated, Any

from anyio import from_thread
from fastapi import Depends, Request

from shared.access.concurrent_ingestion_limit import Guard
from shared.access.rate_limit import check_text_limit
from shared.api.authentication import refreshing_caller
from shared.api.dependencies import Container
from shared.errors import ClientLeft
from shared.types import Principal

# The shortest time between two polls of an ingestion's client, and the longest wait for other ingestions of
# the user.
POLL_CLIENT_SECONDS = 0.25
INGESTION_WAIT_SECONDS = 30.0


def guard_from(credential: Any, writer: Any) -> Any:
    """For a synchronous handler that stores texts before it answers: `Annotated[Guard, guard_from(...)]`.
    `writer` is a dependency of `with_scope`. Raises IngestionBusy."""

    async def guard(
        request: Request,
        services: Container,
        source: Annotated[Callable[[], Principal], refreshing_caller(credential)],
        principal: Annotated[Principal, writer],
    ) -> AsyncIterator[Guard]:
        def admit(text_bytes: int) -> None:
            function, limit = request.app.state.function, services.settings.rag_ingest_bytes_per_minute
            check_text_limit(services.database, source, function, text_bytes, limit)

        async def require_client() -> None:
            # Lambda never reports a disconnection.
            if await request.is_disconnected():
                raise ClientLeft

        polled_at = -math.inf

        def poll_client() -> None:
            nonlocal polled_at
            if monotonic() >= polled_at + POLL_CLIENT_SECONDS:
                from_thread.run(require_client)
                polled_at = monotonic()

        async with services.ingestions.slot(principal.user_id, INGESTION_WAIT_SECONDS, require_client):
            yield Guard(admit, lambda: from_thread.run(require_client), poll_client)

    # The slot ends with the handler: a client may read the response slowly.
    return Depends(guard, scope="function")
