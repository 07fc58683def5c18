# Made from aio/ by `python -m local.sdk_python`: change that, and make this anew.
"""A streamed answer: its parts as they come, and a connection that is closed once nobody reads them."""

from collections.abc import Callable, Iterator
from contextlib import closing
from types import TracebackType
from typing import Generic, Self, TypeVar

import httpx

from mnemosyne.errors import StreamInterruptedError
from mnemosyne.sse import Decoder

Item = TypeVar("Item")


class Stream(Generic[Item]):
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

    def __iter__(self) -> Iterator[Item]:
        with closing(self):
            yield from self._parts

    def __next__(self) -> Item:
        return next(self._parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._response.close()

    def _read(self) -> Iterator[Item]:
        """Raises what `part_of` raises, and StreamInterruptedError where it ends before its last part. It is
        read to its end, so that the connection can be used again; but nothing after the last part counts."""
        decoder, is_done = Decoder(), False
        try:
            for received in self._response.iter_bytes():
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
            self.close()
        if not is_done:
            raise StreamInterruptedError("The stream ended before it was done.")
