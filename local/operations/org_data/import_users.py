"""Users and members of an archive in this deployment."""

import re
from typing import Any

import psycopg

from local.errors import CommandError
from local.operations.folder_scan import one_line
from local.operations.org_data.archive import Manifest, Member


def users_here(connection: psycopg.Connection[Any], manifest: Manifest, renamed: dict[str, str]) -> list[str]:
    """Each user's id here. A user who owns nothing and is absent keeps the id of the source
    deployment, and so does a third-party user, whose id is computed from issuer and subject. `renamed`: the
    address or the third-party id here by that of the archive."""
    names = [renamed.get(user.email or user.id, user.email or user.id) for user in manifest.users]
    rows = connection.execute(
        "select email, id::text from auth.users where email = any (%s)", [names]
    ).fetchall()
    here = dict(rows)
    if len(rows) > len(here):
        raise CommandError("several users here have the same address; give each its own")
    if absent := sorted(
        name
        for user, name in zip(manifest.users, names, strict=True)
        if user.owns_rows and name not in here and not is_third_party(name)
    ):
        raise CommandError(
            f"these users own documents or sessions and are not users here: {one_line(', '.join(absent))}. "
            "Create them, or name others with --user"
        )
    users = [
        here.get(name, name if is_third_party(name) else user.id)
        for user, name in zip(manifest.users, names, strict=True)
    ]
    if len(set(users)) < len(users):
        raise CommandError("two users of the archive would be one user here; see --user")
    absent_ids = [user for user in users if user not in here.values()]
    if taken := connection.execute(
        "select id::text from auth.users where id = any (%s::uuid[])", [absent_ids]
    ).fetchone():
        raise CommandError(
            f"the archive names the user {taken[0]} by another address than this deployment; see --user"
        )
    return users


def is_third_party(user: str) -> bool:
    """As rag.auth_user_id decides: whether the id is a UUID of version 8."""
    return re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", user) is not None


def add_member(
    connection: psycopg.Connection[Any], org: str, user: str, member: Member, is_wanted: bool
) -> str:
    """The state of an archive's member here, after adding the member if wanted. No role is changed."""
    row = connection.execute(
        "select members.role, members.accepted_at from (values (%s::uuid)) as named (id) "
        "left join rag.members on members.org_id = %s and members.user_id = named.id "
        "where rag.auth_user_id(named.id) is null or named.id in (select id from auth.users)",
        [user, org],
    ).fetchone()
    if row is None:
        return "not added, because there is no such user here"
    if row[0] is not None:
        return f"is {'here' if row[1] else 'invited'} already, as {row[0]}"
    if not is_wanted:
        return "not added; a user here, whom --members adds"
    connection.execute(
        "insert into rag.members (org_id, user_id, role, name) values (%s, %s, %s, %s)",
        [org, user, member.role, member.name and one_line(member.name)],
    )
    return "added"
