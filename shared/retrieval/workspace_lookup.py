"""Lookup of the workspace (a collection) or org that a request names."""

from shared.clients.postgrest import Database
from shared.errors import error_details
from shared.retrieval.types import SearchArea
from shared.text.prefixed_ids import id_of
from shared.types import PrincipalSource


def locate(database: Database, caller: PrincipalSource, workspace: str | None, org: str | None) -> SearchArea:
    """The area of the ids, as clients write them; the whole org without a workspace.

    Raises NotFound for an id that the caller cannot see and for a workspace of another org, InvalidRequest
    without an id.
    """
    arguments = {
        "workspace_id": id_of(workspace, "workspace") if workspace is not None else None,
        "org_id": id_of(org, "org") if org is not None else None,
    }
    with error_details(workspace_id=workspace, org_id=org):
        (row,) = database.call(caller, "rag_resolve_workspace", arguments, idempotent=True)
    return SearchArea(row["org_id"], row["collection_id"])
