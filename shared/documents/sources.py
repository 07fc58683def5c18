"""Sources of an org, for the org's admins. Row security hides them from others."""

from shared.clients.postgrest import Database
from shared.types import Principal, Row


def create(database: Database, caller: Principal, fields: Row) -> Row:
    """`fields`: collection_id, kind, address; optionally endpoint, region, credentials, interval_seconds,
    max_items, include_noindex. Raises Forbidden for a member who is no admin, NotFound for another org's
    collection, InvalidRequest."""
    return database.row(caller, "rag_create_source", fields)


def list_sources(database: Database, caller: Principal) -> list[Row]:
    """All sources of the caller, at most fifty of an org."""
    return database.rows(caller, "rag_list_sources", {}, idempotent=True)


def get(database: Database, caller: Principal, source: str) -> Row:
    """Raises NotFound."""
    return database.row(caller, "rag_list_sources", {"source_id": source}, idempotent=True)


def update(database: Database, caller: Principal, source: str, changes: Row) -> Row:
    """`changes`: interval_seconds, max_items, include_noindex, enabled, credentials. Raises NotFound."""
    return database.row(caller, "rag_update_source", {"source_id": source, **changes})


def run(database: Database, caller: Principal, source: str) -> Row:
    """Make the source due now. Raises NotFound; Conflict for a disabled source."""
    return database.row(caller, "rag_run_source", {"source_id": source})


def delete(database: Database, caller: Principal, source: str, *, documents: bool) -> None:
    """Delete a source, with or without its documents. Raises NotFound."""
    arguments = {"source_id": source, "documents": documents}
    database.call(caller, "rag_delete_source", arguments, long_timeout=True)
