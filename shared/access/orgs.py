"""The orgs of a caller."""

from typing import Any

from shared.clients.postgrest import Database
from shared.types import Principal

Row = dict[str, Any]


def list_orgs(database: Database, caller: Principal) -> list[Row]:
    """Id, name and role of each; of an API key its one org."""
    rows: list[Row] = database.call(caller, "rag_list_orgs", {}, again=True)
    return rows
