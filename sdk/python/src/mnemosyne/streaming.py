# Generated from aio/ by `make generated`. Do not edit.
"""Streamed answers, whose connection is closed when reading ends."""

from collections.abc import Callable, Iterator
from contextlib import closing
from types import TracebackType
from typing import Generic, Self, TypeVar

import httpx

from mnemosyne.clock import drain
from mnemosyne.errors import StreamInterruptedError
from mnemosyne.sse import Decoder

Item = TypeVar("Item")


class Stream(Generic[Item]):
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
        """Raises the errors of `part_of`, and StreamInterruptedError for a stream that ends before its last
        part."""
        decoder, how = Decoder(), "ended before it was done"
        try:
            rest = self._response.iter_bytes()
            for received in rest:
                for name, data in decoder.feed(received):
                    part = self._part_of(name, data)
                    if part is None:
                        continue
                    yield part
                    if self._is_last(part):
                        drain(self._response, rest)
                        return
        except (httpx.RequestError, httpx.StreamError) as fault:
            how = f"broke off ({type(fault).__name__})"
        finally:
            self.close()
        # (Outside of the except clause: the caught error has the request, and so the key.)
        raise StreamInterruptedError(f"The stream {how}. Send the request again.")
