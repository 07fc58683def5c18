"""A streamed answer: its parts as they come, and a connection that is closed once nobody reads them."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Generic, Self, TypeVar

import httpx

from mnemosyne.errors import StreamInterruptedError
from mnemosyne.sse import Decoder

Item = TypeVar("Item")


class AsyncStream(Generic[Item]):
    """Iterate over it once. It closes its connection at the end, on leaving its `with`, by its close, and
    where a loop over it is left."""

    def __init__(
        self,
        response: httpx.Response,
        part_of: Callable[[str], Item | None],
        is_last: Callable[[Item], bool],
    ) -> None:
        """`part_of` an event's data is None where it says nothing to the caller; it may raise."""
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
        """Raises what `part_of` raises, and StreamInterruptedError where it ends before its last part. It is
        read to its end, so that the connection can be used again; but nothing after the last part counts."""
        decoder, is_done = Decoder(), False
        try:
            async for received in self._response.aiter_bytes():
                for data in () if is_done else decoder.feed(received):
                    part = self._part_of(data)
                    if part is None:
                        continue
                    yield part
                    if is_done := self._is_last(part):
                        break
        except (httpx.RequestError, httpx.StreamError) as fault:
            if not is_done:
                raise StreamInterruptedError(f"The stream broke off ({type(fault).__name__}).") from None
        finally:
            await self.aclose()
        if not is_done:
            raise StreamInterruptedError("The stream ended before it was done.")
