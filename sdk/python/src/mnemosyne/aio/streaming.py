"""Streamed answers, whose connection is closed when reading ends."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Generic, Self, TypeVar

import httpx

from mnemosyne.aio.clock import drain
from mnemosyne.errors import StreamInterruptedError
from mnemosyne.sse import Decoder

Item = TypeVar("Item")


class AsyncStream(Generic[Item]):
    """A stream, to be iterated over once. It closes its connection at its end, at the end of its `with`, by
    `close`, and when a loop over it ends."""

    def __init__(
        self,
        response: httpx.Response,
        part_of: Callable[[str, str], Item | None],
        is_last: Callable[[Item], bool],
    ) -> None:
        """`part_of` makes a part of an event's name and data; None for an event without a part. It may
        raise."""
        self._response = response
        self._part_of = part_of
        self._is_last = is_last
        self._parts = self._read()

    async def __aiter__(self) -> AsyncIterator[Item]:
        async with aclosing(self):
            async for part in self._parts:
                yield part

    async def __anext__(self) -> Item:
        return await anext(self._parts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._response.aclose()

    async def _read(self) -> AsyncIterator[Item]:
        """Raises the errors of `part_of`, and StreamInterruptedError for a stream that ends before its last
        part."""
        decoder, how = Decoder(), "ended before it was done"
        try:
            rest = self._response.aiter_bytes()
            async for received in rest:
                for name, data in decoder.feed(received):
                    part = self._part_of(name, data)
                    if part is None:
                        continue
                    yield part
                    if self._is_last(part):
                        await drain(self._response, rest)
                        return
        except (httpx.RequestError, httpx.StreamError) as fault:
            how = f"broke off ({type(fault).__name__})"
        finally:
            await self.aclose()
        # (Outside of the except clause: the caught error has the request, and so the key.)
        raise StreamInterruptedError(f"The stream {how}. Send the request again.")
