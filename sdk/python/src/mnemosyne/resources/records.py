# Generated from aio/ by `make generated`. Do not edit.
"""Records of requests: feedback on answers, if the caller's org records its requests."""

from typing import Literal

from mnemosyne.requests import Request, path
from mnemosyne.transport import Transport


class RecordsResource:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def rate(
        self, request_id: str, rating: Literal["up", "down"] | None, *, reason: str | None = None
    ) -> None:
        """Rate the answer of one's own request; None removes the rating. `request_id`: the answer's
        `metadata.request_id`. Raises NotFoundError if the request was not recorded."""
        fields = {"rating": rating, "reason": reason}
        self._transport.send(Request("POST", path("records", request_id, "feedback"), json=fields))
