"""Collections and documents by the callers' names, for APIs without ids.

The name of a document is its external_id, or its id where another API added it without one.
"""

from collections.abc import Sequence
from typing import Any, TypedDict

from shared.clients.postgrest import Database
from shared.errors import NotFound, error_details
from shared.types import PrincipalSource, Row


class CollectionRow(TypedDict):
    id: str
    org_id: str
    owner_id: str | None
    name: str
    config: dict[str, Any]


class DocumentState(TypedDict):
    """The fields of a document that show whether it has changed."""

    name: str
    content_hash: str
    metadata: dict[str, Any]


def find(database: Database, caller: PrincipalSource, name: str) -> CollectionRow:
    """The collection. Raises NotFound; Forbidden for another user's private collection, whose name ends in
    `:u:` and the user's id; InvalidRequest for a caller of several orgs with a token for no single one."""
    with error_details(name=name):
        row: CollectionRow
        (row,) = database.call(caller, "rag_find_collection", {"collection": name}, idempotent=True)
        return row


def find_or_none(database: Database, caller: PrincipalSource, name: str) -> CollectionRow | None:
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
        documents, total = database.page(caller, "rag_list_named", "documents", arguments)
        rows += documents
        # The maximum size of a response may leave fewer documents than the limit.
        is_last = offset + len(rows) >= total or not documents
        if is_last or len(rows) >= limit:
            return rows, total


def existing_documents(
    database: Database, caller: PrincipalSource, name: str, documents: Sequence[str]
) -> dict[str, DocumentState]:
    """The existing documents by name. Raises as find."""
    arguments = {"collection": name, "names": list(documents)}
    rows = database.call(caller, "rag_find_documents", arguments, idempotent=True)
    return {row["name"]: row for row in rows}


def delete(database: Database, caller: PrincipalSource, name: str, documents: Sequence[str]) -> set[str]:
    """Delete the existing documents. Returns their names. Raises as find."""
    arguments = {"collection": name, "names": list(documents)}
    return set(database.call(caller, "rag_delete_named", arguments, long_timeout=True))
