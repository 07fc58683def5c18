"""Collections: create, list, change, delete. Row security decides about access."""

from shared.clients.postgrest import Database
from shared.errors import error_details
from shared.types import Principal, Row


def create(database: Database, caller: Principal, fields: Row) -> Row:
    """`fields`: name; optionally description, metadata, config, org_id, private. Raises Conflict for a name
    that exists, RateLimited above the limit of the org's tier, NotFound for another org, InvalidRequest."""
    with error_details(name=fields["name"]):
        return database.row(caller, "rag_create_collection", fields)


def list_collections(
    database: Database, caller: Principal, limit: int, offset: int, sort_by: str, order: str
) -> tuple[list[Row], int]:
    """A page of the caller's collections, and their total."""
    arguments = {"limit": limit, "offset": offset, "sort_by": sort_by, "order": order}
    return database.page(caller, "rag_list_collections", "collections", arguments)


def get(database: Database, caller: Principal, collection: str) -> Row:
    """Raises NotFound."""
    return database.row(caller, "rag_get_collection", {"collection_id": collection}, idempotent=True)


def update(database: Database, caller: Principal, collection: str, changes: Row) -> Row:
    """`changes`: name, description, metadata, config. None leaves a field as it is, and config's keys change
    one by one. Raises NotFound, Conflict, InvalidRequest."""
    # This key writes a row for each document.
    switches = "enable_knowledge_graph" in (changes.get("config") or {})
    arguments = {"collection_id": collection, **changes}
    return database.row(caller, "rag_update_collection", arguments, long_timeout=switches)


def delete(database: Database, caller: Principal, collection: str, *, cascade: bool) -> None:
    """Raises NotFound, and without `cascade` Conflict for a collection with documents. Private documents of
    others do not count; they remain, and then only their owners see the collection."""
    arguments = {"collection_id": collection, "cascade": cascade}
    database.call(caller, "rag_delete_collection", arguments, long_timeout=True)


def build_graph(database: Database, caller: Principal, collection: str, *, again: bool) -> int:
    """Queue the collection's documents for graph extraction: those without a successful one, or with `again`
    all. Returns their number, without documents that the caller does not see. Raises NotFound; Conflict for a
    collection that is not in the graph."""
    arguments = {"collection_id": collection, "again": again}
    return int(database.call(caller, "rag_build_graph", arguments, long_timeout=True))


def access_of(database: Database, caller: Principal, collection: str) -> Row:
    """Who may use a collection, and the caller's own right. Raises NotFound."""
    return dict(database.call(caller, "rag_get_access", {"collection_id": collection}, idempotent=True))


def put_access(
    database: Database, caller: Principal, collection: str, *, restricted: bool, grants: list[Row]
) -> Row:
    """Restrict a collection to grants, or open it to all members of the org. Raises Forbidden,
    InvalidRequest, NotFound and Conflict."""
    arguments = {"collection_id": collection, "restricted": restricted, "grants": grants}
    return dict(database.call(caller, "rag_put_access", arguments, idempotent=True))
