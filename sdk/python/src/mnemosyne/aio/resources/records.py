"""Records of requests: feedback on answers, if the caller's org records its requests."""

from typing import Literal

from mnemosyne.aio.transport import AsyncTransport
from mnemosyne.requests import Request, path


class AsyncRecordsResource:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def rate(
        self, request_id: str, rating: Literal["up", "down"] | None, *, reason: str | None = None
    ) -> None:
        """Rate the answer of one's own request; None removes the rating. `request_id`: the answer's
        `metadata.request_id`. Raises NotFoundError if the request was not recorded."""
        fields = {"rating": rating, "reason": reason}
        await self._transport.send(Request("POST", path("records", request_id, "feedback"), json=fields))
