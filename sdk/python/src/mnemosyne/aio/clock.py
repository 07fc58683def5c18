"""How long an attempt may take altogether. Written by hand, as its synchronous twin (../clock.py): only here
can a wait be ended from outside."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import httpx

from mnemosyne.retries import DRAIN_SECONDS, Late


class AsyncDeadline:
    """The deadline of all work inside, `seconds` from now; None for none. Raises Late."""

    def __init__(self, seconds: float | None) -> None:
        self._limit = asyncio.timeout(seconds)

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            raise Late from None

    async def read(self, response: httpx.Response) -> None:
        """The whole body of the response, which is closed then."""
        try:
            await response.aread()
        finally:
            await response.aclose()


async def drain(response: httpx.Response, rest: AsyncIterator[Any]) -> None:
    """Read the rest of the response, so that the connection can be used again; but not
    for long."""
    with suppress(TimeoutError, httpx.RequestError, httpx.StreamError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in rest:
                pass
