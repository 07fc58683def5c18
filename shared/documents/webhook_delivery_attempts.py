"""Attempts to deliver events to webhooks and the pauses between them; signed as in Standard Webhooks.

Headers webhook-id, webhook-timestamp and webhook-signature: an HMAC-SHA256 over id, time and body
(https://www.standardwebhooks.com). An event arrives at least once, always with the same id. Addresses of
webhooks must be public, like those that are fetched.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
from standardwebhooks import Webhook

from shared.access.token_signer import Signer, worker_principal
from shared.clients.http_client import deadline, http_client, http_transport
from shared.clients.postgrest import Database
from shared.clients.ssrf_guard import AddressPolicy
from shared.errors import AddressRefused, logged
from shared.ingestion.job_queue import BatchResult
from shared.types import Row, WebhookMessage

log = logging.getLogger("rag")
# Concurrent deliveries.
CLAIMED = 16
# Time limits of an attempt and of a lease.
SECONDS, LEASE_SECONDS = 10, 60
# Pauses before the next attempts, in seconds: three days in all.
PAUSES = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
GONE = 410


@dataclass(frozen=True, slots=True)
class WebhookSender:
    """Has no state between rounds. Several senders at once send nothing twice, unless one dies. `message_of`
    makes the message of a delivery's row, by the contract of an API."""

    database: Database
    signer: Signer
    networks: AddressPolicy
    message_of: Callable[[Row], WebhookMessage]

    def deliver(self) -> BatchResult:
        """One round of due deliveries. Raises a RagError for a failed claim."""
        arguments = {"max_items": CLAIMED, "lease_seconds": LEASE_SECONDS}
        rows: list[Row] = self._call("rag_claim_deliveries", arguments)
        if not rows:
            return BatchResult()
        with ThreadPoolExecutor(CLAIMED) as pool:
            delivered = sum(pool.map(self._deliver, rows))
        return BatchResult(len(rows), delivered)

    def _deliver(self, row: Row) -> bool:
        try:
            status, failure = self._send(row)
        except Exception as unforeseen:
            # An unforeseen error ends this delivery, and no other.
            log.warning("delivery %s: %s", row["delivery_id"], type(unforeseen).__name__)
            status, failure = None, "failed"
        last = row["attempts"] > len(PAUSES) or status == GONE
        arguments = {
            "org_id": row["org_id"],
            "delivery_id": row["delivery_id"],
            "lease": row["lease"],
            "response_status": status,
            "error": failure,
            "retry_seconds": None if last or not failure else PAUSES[row["attempts"] - 1],
        }
        # After a failure the lease will expire, and the event is sent once more.
        with logged(
            f"delivery {row['delivery_id']}: its end could not be written (%s); the event is sent again"
        ):
            self._call("rag_end_delivery", arguments)
        return failure is None

    def _send(self, row: Row) -> tuple[int | None, str | None]:
        """The status of the response, and the error of an attempt that was not accepted."""
        message = self.message_of(row)
        headers = {
            "Content-Type": "application/json",
            **signature_headers(message, datetime.now(UTC), row["secret"], row["old_secret"]),
        }
        transport = http_transport(admits=self.networks.require, org_id=row["org_id"])
        try:
            address = self.networks.require_url(row["url"])
            with (
                deadline(SECONDS),
                http_client(SECONDS, transport) as client,
                # Only the status of the response is read.
                client.stream("POST", address, content=message.body, headers=headers) as response,
            ):
                status = response.status_code
        except AddressRefused:
            return None, "address_refused"
        except httpx.TimeoutException:
            return None, "timed_out"
        except (httpx.HTTPError, httpx.InvalidURL):
            return None, "unreachable"
        # A redirect is no acceptance: its target was not checked.
        return status, None if 200 <= status < 300 else "refused"

    def _call(self, function: str, arguments: Row) -> Any:
        return self.database.call(worker_principal(self.signer), function, arguments)


def signature_headers(
    message: WebhookMessage, at: datetime, secret: str, old_secret: str | None = None
) -> dict[str, str]:
    """The headers of a signed message, with signatures by both secrets, if there are two."""
    # A secret that Vault lost is None: signing raises, and nothing is sent unsigned.
    secrets = (secret, old_secret) if old_secret else (secret,)
    signatures = [Webhook(text).sign(message.id, at, message.body.decode()) for text in secrets]
    return {
        "webhook-id": message.id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
