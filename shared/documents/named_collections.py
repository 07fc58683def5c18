"""Collections and documents by the callers' names, for APIs without ids.

The name of a document is its external_id, or its id where another API added it without one.
"""

from collections.abc import Sequence

from shared.clients.postgrest import Database
from shared.errors import NotFound, error_details
from shared.types import PrincipalSource, Row


def find(database: Database, caller: PrincipalSource, name: str) -> Row:
    """The collection. Raises NotFound; Forbidden for another user's private collection, whose name ends in
    `:u:` and the user's id; InvalidRequest for a caller of several orgs with a token for no single one."""
    with error_details(name=name):
        return database.row(caller, "rag_find_collection", {"collection": name}, idempotent=True)


def find_or_none(database: Database, caller: PrincipalSource, name: str) -> Row | None:
    """As `find`, but None for a collection that does not exist."""
    try:
        return find(database, caller, name)
    except NotFound as missing:
        if missing.code != "collection_not_found":
            raise
        return None


def names(database: Database, caller: PrincipalSource) -> list[str]:
    """The names of all collections that the caller can use."""
    return list(database.call(caller, "rag_list_names", {}, idempotent=True))


def documents(
    database: Database,
    caller: PrincipalSource,
    name: str,
    limit: int,
    offset: int,
    characters: int,
    metadata: Row | None = None,
) -> tuple[list[Row], int]:
    """A page of the collection's documents whose metadata have all these values, the oldest first, and their
    total. `characters`: of each text, at most. Raises as find."""
    rows: list[Row] = []
    while True:
        arguments = {
            "collection": name,
            "limit": limit - len(rows),
            "offset": offset + len(rows),
            "characters": characters,
            "metadata": metadata or {},
        }
        page = database.call(caller, "rag_list_named", arguments, idempotent=True)
        rows += page["documents"]
        # The maximum size of a response may leave fewer documents than the limit.
        is_last = offset + len(rows) >= page["total"] or not page["documents"]
        if is_last or len(rows) >= limit:
            return rows, page["total"]


def existing_documents(
    database: Database, caller: PrincipalSource, name: str, documents: Sequence[str]
) -> dict[str, Row]:
    """The existing documents by name: document_id, content, content_hash and metadata. Raises as find."""
    arguments = {"collection": name, "names": list(documents)}
    rows = database.call(caller, "rag_find_documents", arguments, idempotent=True)
    return {row["name"]: row for row in rows}


def delete(database: Database, caller: PrincipalSource, name: str, documents: Sequence[str]) -> set[str]:
    """Delete the existing documents. Returns their names. Raises as find."""
    arguments = {"collection": name, "names": list(documents)}
    return set(database.call(caller, "rag_delete_named", arguments, long_timeout=True))
