"""Collections and documents by the names that callers give them, for APIs that know no ids. A document goes
by its external_id, or by its id where it came through another API and has none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.clients.postgrest import Database
from shared.errors import NotFound, error_details
from shared.types import PrincipalSource

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentPageRequest:
    """Which page of a collection's documents: those whose metadata have all the values, with so many
    characters of their texts."""

    limit: int
    offset: int = 0
    characters: int = 100_000
    metadata: Row | None = None


def find(database: Database, caller: PrincipalSource, name: str) -> Row:
    """The collection. Raises NotFound; Forbidden for another user's own, whose name ends in `:u:` and their
    id; InvalidRequest for a caller of several orgs whose token does not say which."""
    with error_details(name=name):
        (row,) = database.call(caller, "rag_find_collection", {"name": name}, again=True)
    return dict(row)


def find_or_none(database: Database, caller: PrincipalSource, name: str) -> Row | None:
    """The same, None where there is none."""
    try:
        return find(database, caller, name)
    except NotFound as missing:
        if missing.code != "collection_not_found":
            raise
        return None


def names(database: Database, caller: PrincipalSource) -> list[str]:
    """Of all collections that the caller can name."""
    collections: list[str] = database.call(caller, "rag_list_names", {}, again=True)
    return collections


def documents(
    database: Database, caller: PrincipalSource, name: str, page_request: DocumentPageRequest
) -> tuple[list[Row], int]:
    """A page of the collection's documents, the oldest first, and how many there are. Raises as find."""
    rows: list[Row] = []
    while True:
        arguments = {
            "collection": name,
            "limit": page_request.limit - len(rows),
            "offset": page_request.offset + len(rows),
            "characters": page_request.characters,
            "metadata": page_request.metadata or {},
        }
        with error_details(name=name):
            page = database.call(caller, "rag_list_named", arguments, again=True)
        rows += page["documents"]
        # A response has a maximum of bytes, and then fewer documents than the limit.
        is_last = page_request.offset + len(rows) >= page["total"] or not page["documents"]
        if is_last or len(rows) >= page_request.limit:
            return rows, page["total"]


def existing_documents(
    database: Database, caller: PrincipalSource, name: str, documents: Sequence[str]
) -> dict[str, Row]:
    """Those of the documents that are there, by name: their document_id, content, content_hash and metadata.
    Raises as find."""
    with error_details(name=name):
        arguments = {"collection": name, "names": list(documents)}
        rows = database.call(caller, "rag_find_documents", arguments, again=True)
    return {row["name"]: row for row in rows}


def delete(database: Database, caller: PrincipalSource, name: str, documents: Sequence[str]) -> set[str]:
    """Delete those of the documents that are there; their names. Raises as find."""
    with error_details(name=name):
        arguments = {"collection": name, "names": list(documents)}
        deleted_names: list[str] = database.call(caller, "rag_delete_named", arguments, patient=True)
    return set(deleted_names)
