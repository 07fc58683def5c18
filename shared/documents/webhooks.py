"""Webhooks of an org and their deliveries, for the org's admins. Row security hides them from others."""

import base64
import secrets

from shared.clients.postgrest import Database
from shared.types import Principal, Row


def create(database: Database, caller: Principal, fields: Row) -> Row:
    """`fields`: url and events; optionally collection_id, description, org_id. The result has the new
    `secret`, which later only the worker reads. Raises Forbidden for a member who is no admin, NotFound for
    another org or its collection, InvalidRequest."""
    return _with_secret(database, caller, "rag_create_webhook", fields)


def list_webhooks(database: Database, caller: Principal) -> list[Row]:
    """All webhooks of the caller, at most twenty of an org."""
    return database.rows(caller, "rag_list_webhooks", {}, idempotent=True)


def get(database: Database, caller: Principal, webhook: str) -> Row:
    """Raises NotFound."""
    return database.row(caller, "rag_list_webhooks", {"webhook_id": webhook}, idempotent=True)


def update(database: Database, caller: Principal, webhook: str, changes: Row) -> Row:
    """`changes`: url, events, description, enabled; None leaves a field as it is. Raises NotFound."""
    return database.row(caller, "rag_update_webhook", {"webhook_id": webhook, **changes})


def rotate(database: Database, caller: Principal, webhook: str, overlap_seconds: int) -> Row:
    """Replace the secret; the old one signs too for `overlap_seconds`. The result has the new `secret`.
    Raises NotFound."""
    arguments = {"webhook_id": webhook, "overlap_seconds": overlap_seconds}
    return _with_secret(database, caller, "rag_rotate_webhook", arguments)


def delete(database: Database, caller: Principal, webhook: str) -> None:
    """Delete a webhook with its pending deliveries. Raises NotFound."""
    database.call(caller, "rag_delete_webhook", {"webhook_id": webhook})


def deliveries(
    database: Database, caller: Principal, webhook: str, limit: int, offset: int
) -> tuple[list[Row], int]:
    """A page of the webhook's deliveries, newest first, and their total. Raises NotFound."""
    arguments = {"webhook_id": webhook, "limit": limit, "offset": offset}
    return database.page(caller, "rag_list_deliveries", "deliveries", arguments)


def repeat(database: Database, caller: Principal, webhook: str, delivery: str) -> None:
    """Repeat an ended delivery. Raises NotFound; Conflict for a pending delivery or a disabled webhook."""
    database.call(caller, "rag_repeat_delivery", {"webhook_id": webhook, "delivery_id": delivery})


def _with_secret(database: Database, caller: Principal, function: str, arguments: Row) -> Row:
    # 32 random bytes, in the format of Standard Webhooks.
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    (row,) = database.call(caller, function, {**arguments, "secret": secret})
    return {**row, "secret": secret}
