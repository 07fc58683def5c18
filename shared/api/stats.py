"""An org's figures and audit events, for its admins."""

from typing import Any

from shared.services import Services
from shared.types import Principal


def stats(core: Services, caller: Principal) -> dict[str, Any]:
    """How much there is in the orgs that the caller administers. Raises Forbidden where that is none."""
    (row,) = core.database.call(caller, "rag_stats", {}, again=True)
    return dict(row)


def events(
    core: Services, caller: Principal, limit: int, offset: int, namespace: str | None, event: str | None
) -> tuple[list[dict[str, Any]], int]:
    """A page of the audit events of the orgs that the caller administers, the latest first, and how many
    there are. Raises Forbidden where the caller administers none."""
    arguments = {"limit": limit, "offset": offset, "namespace": namespace, "event": event}
    page = core.database.call(caller, "rag_list_events", arguments, again=True)
    return page["events"], page["total"]
