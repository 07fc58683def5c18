"""The worker's other half: what happened is sent to the webhooks that wait for it.

Signed as Standard Webhooks has it (https://www.standardwebhooks.com): headers webhook-id, webhook-timestamp
and webhook-signature, an HMAC-SHA256 over id, time and body. An event arrives at least once, and the same id
is the same event. Like addresses that are fetched, those of webhooks lead to the public internet alone.
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from typing import Any

import httpx
from standardwebhooks import Webhook

from shared.access.token_signer import Signer, worker_principal
from shared.clients.http import deadline, http_client
from shared.clients.postgrest import Database
from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, RagError
from shared.types import Message

log = logging.getLogger("rag")
# Sent all at once.
CLAIMED = 16
# Of one attempt altogether, and of a lease.
SECONDS, LEASE_SECONDS = 10, 60
# Until the next look, while there is nothing.
PAUSE_SECONDS = 0.5
# Until the next attempt, in seconds: three days in all.
PAUSES = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
GONE = 410
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeliveryStats:
    """What became of the deliveries of one round."""

    claimed: int = 0
    delivered: int = 0

    def __add__(self, other: "DeliveryStats") -> "DeliveryStats":
        return DeliveryStats(self.claimed + other.claimed, self.delivered + other.delivered)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an attempt came to; `error` is None for one that was accepted."""

    status: int | None = None
    error: str | None = None


class WebhookSender:
    """Holds nothing between rounds. Several at once send nothing twice, unless one dies under way."""

    def __init__(
        self,
        database: Database,
        signer: Signer,
        networks: AddressPolicy,
        message_of: Callable[[Row], Message],
    ) -> None:
        """`message_of` writes a delivery's row down in the words of an API."""
        self._database = database
        self._signer = signer
        self._networks = networks
        self._message_of = message_of

    def deliver_until(self, finished: Event, seconds: float) -> DeliveryStats:
        """What is due, and becomes due, until whatever makes it so has finished and nothing is left, or the
        seconds are over. When nothing can be claimed, the log says so."""
        sent, until = DeliveryStats(), time.monotonic() + seconds
        while True:
            last = finished.is_set()
            this = self._deliver_or_say_why()
            sent += this
            if last and (not this.claimed or time.monotonic() > until):
                return sent
            if not this.claimed:
                finished.wait(PAUSE_SECONDS)

    def _deliver_or_say_why(self) -> DeliveryStats:
        try:
            return self.deliver()
        except RagError as error:
            log.warning("nothing was delivered: %s (%s)", error.code, error.because)
            return DeliveryStats()

    def deliver(self) -> DeliveryStats:
        """One round: what is due is sent. Raises a RagError when nothing can be claimed."""
        arguments = {"wanted": CLAIMED, "lease_seconds": LEASE_SECONDS}
        rows: list[Row] = self._call("rag_claim_deliveries", arguments)
        if not rows:
            return DeliveryStats()
        with ThreadPoolExecutor(CLAIMED) as pool:
            delivered = sum(pool.map(self._deliver, rows))
        return DeliveryStats(len(rows), delivered)

    def _deliver(self, row: Row) -> bool:
        try:
            answer = self._send(row)
        except Exception as unforeseen:
            # Whatever one of them is, the others are sent, and it comes to its end.
            log.warning("delivery %s: %s", row["delivery_id"], type(unforeseen).__name__)
            answer = _Answer(error="failed")
        last = row["attempts"] > len(PAUSES) or answer.status == GONE
        arguments = {
            "org_id": row["org_id"],
            "delivery_id": row["delivery_id"],
            "lease": row["lease"],
            "response_status": answer.status,
            "error": answer.error,
            "retry_seconds": None if last or not answer.error else PAUSES[row["attempts"] - 1],
        }
        try:
            self._call("rag_end_delivery", arguments)
        except RagError as error:
            # Then the lease runs out, and it is sent once more.
            log.warning("delivery %s: its end could not be written (%s)", row["delivery_id"], error.because)
        return answer.error is None

    def _send(self, row: Row) -> _Answer:
        message = self._message_of(row)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "rag-webhooks",
            **signed(message, datetime.now(UTC), row["secret"], row["old_secret"]),
        }
        try:
            address = self._networks.require_url(row["url"])
            with (
                deadline(SECONDS),
                http_client(SECONDS, admits=self._networks.require, org_id=row["org_id"]) as client,
                # Of the response only the status is read.
                client.stream("POST", address, content=message.body, headers=headers) as answer,
            ):
                status = answer.status_code
        except AddressRefused:
            return _Answer(error="address_refused")
        except httpx.TimeoutException:
            return _Answer(error="timed_out")
        except (httpx.HTTPError, httpx.InvalidURL):
            return _Answer(error="unreachable")
        # A redirect is no acceptance: nobody has looked at where it leads.
        return _Answer(status, None if 200 <= status < 300 else "refused")

    def _call(self, function: str, arguments: Row) -> Any:
        return self._database.call(worker_principal(self._signer), function, arguments)


def signed(message: Message, at: datetime, secret: str, old_secret: str | None = None) -> dict[str, str]:
    """The headers by which a receiver knows who sends this, and when; with both secrets, if there are two."""
    secrets = filter(None, (secret, old_secret))
    signatures = [Webhook(text).sign(message.id, at, message.body.decode()) for text in secrets]
    return {
        "webhook-id": message.id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
