"""Orgs and invitations of a caller; members, groups, statistics, usage and audit events for admins."""

from typing import TypedDict

from shared.clients.postgrest import Database
from shared.types import Principal, PrincipalSource, Row


class OrgRow(TypedDict):
    """`name`: None for an org of an adopter's own table."""

    id: str
    name: str | None
    role: str
    embedding_model: str


def list_orgs(database: Database, caller: PrincipalSource) -> list[OrgRow]:
    """The caller's orgs. For an API key it is the key's one org."""
    return list(database.call(caller, "rag_list_orgs", {}, idempotent=True))


def org_statistics(database: Database, caller: Principal) -> Row:
    """Counts over all orgs that the caller administers. Raises Forbidden without one."""
    return database.row(caller, "rag_stats", {}, idempotent=True)


def list_usage(database: Database, caller: Principal, days: int) -> list[Row]:
    """Calls and users of each of the last days, over all orgs that the caller administers. Raises
    Forbidden."""
    return database.rows(caller, "rag_list_usage", {"days": days}, idempotent=True)


def list_invitations(database: Database, caller: Principal) -> list[Row]:
    """The caller's open invitations, the oldest first. The caller may belong to no org."""
    return database.rows(caller, "rag_list_invitations", {}, idempotent=True)


def answer_invitation(database: Database, caller: Principal, org_id: str, *, accept: bool) -> None:
    """Accept or decline the caller's own invitation. The caller may belong to no org. Raises NotFound."""
    database.call(caller, "rag_answer_invitation", {"org_id": org_id, "accept": accept})


def list_members(
    database: Database, caller: Principal, limit: int, offset: int, *, invited: bool
) -> tuple[list[Row], int]:
    """A page of the members of the orgs that the caller administers, by name, and their total; with
    `invited` of the open invitations instead. Raises Forbidden."""
    arguments = {"limit": limit, "offset": offset, "invited": invited}
    return database.page(caller, "rag_list_members", "members", arguments)


def put_member(database: Database, caller: Principal, member: Row) -> None:
    """Invite a user to an org, or replace a member's role and name. `member` has user_id, org_id (null: the
    caller's only org), role and name. Raises Forbidden, NotFound and Conflict."""
    database.call(caller, "rag_put_member", member, idempotent=True)


def remove_member(database: Database, caller: Principal, user_id: str, org_id: str | None) -> None:
    """Remove a member or an invitation, or leave an org. Raises Forbidden, NotFound and Conflict."""
    database.call(caller, "rag_remove_member", {"user_id": user_id, "org_id": org_id})


def list_groups(database: Database, caller: Principal, org_id: str | None) -> Row:
    """The groups of an org (None: the caller's only one) with their members, and whether its new collections
    are restricted. Raises Forbidden."""
    return dict(database.call(caller, "rag_list_groups", {"org_id": org_id}, idempotent=True))


def put_group(database: Database, caller: Principal, group: Row) -> None:
    """Create a group, or replace its members and description. `group` has name, user_ids, description and
    org_id. Raises Forbidden, InvalidRequest and NotFound."""
    database.call(caller, "rag_put_group", group, idempotent=True)


def delete_group(database: Database, caller: Principal, name: str, org_id: str | None) -> None:
    """Delete a group with its grants. Its collections stay restricted. Raises Forbidden and NotFound."""
    database.call(caller, "rag_delete_group", {"name": name, "org_id": org_id})


def restrict_new_collections(database: Database, caller: Principal, org_id: str, *, restricts: bool) -> None:
    """Whether new collections of the org are restricted to their creators. Raises Forbidden."""
    arguments = {"restricts": restricts, "org_id": org_id}
    database.call(caller, "rag_restrict_new_collections", arguments, idempotent=True)


def list_events(
    database: Database, caller: Principal, limit: int, offset: int, namespace: str | None, event: str | None
) -> tuple[list[Row], int]:
    """A page of the audit events of the orgs that the caller administers, the latest first, and their total.
    Raises Forbidden without such an org."""
    arguments = {"limit": limit, "offset": offset, "namespace": namespace, "event": event}
    return database.page(caller, "rag_list_events", "events", arguments)
