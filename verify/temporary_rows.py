"""Temporary orgs, users and memberships of a run.

A run creates them in one transaction, so that a killed run leaves all of them or none. A later run finds
and removes them by their marks. A temporary org has a tier of its own, and a temporary user an address of
the domain sweep.invalid, which cannot exist.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import psycopg

from shared.clients.supabase_storage import Storage
from shared.types import Principal
from verify.target_deployment import Deployment, SetupFailed

Connection = psycopg.Connection[Any]

TIER_PREFIX = "sweep-"
DOMAIN = "sweep.invalid"
BUCKET = "rag-originals"
STORAGE_SECONDS = 60
# Tables of a person's own, which hold no org to delete them with.
TABLES_OF_A_USER = {
    "rate_limits": "caller_id",
    "request_counts": "user_id",
    "api_metrics": "user_id",
}
TOKENS = (
    "confirmation_token", "recovery_token", "email_change", "email_change_token_new",
    "email_change_token_current", "phone_change", "phone_change_token", "reauthentication_token",
)  # fmt: skip
# Bits of pg_trigger.tgtype.
INSERT, DELETE = 4, 8


@dataclass(frozen=True)
class Memberships:
    """SQL that makes a user a member of an org, and SQL that undoes it (docs/verify.md).

    `add` has the parameters %(org_id)s, %(name)s (the org's), %(user_id)s and %(role)s, which is admin or
    member. It runs for each membership, after the orgs and users exist. `remove` has %(org_ids)s and
    %(user_ids)s, arrays of uuid, and runs before these are deleted."""

    add: str = "insert into rag.members (org_id, user_id, role) values (%(org_id)s, %(user_id)s, %(role)s)"
    remove: str = "delete from rag.members where org_id = any (%(org_ids)s)"

    @classmethod
    def from_text(cls, text: str) -> "Memberships":
        """The two parts of a file, each after a line `-- add` and `-- remove`. Raises SetupFailed without
        them."""
        add, _, remove = text.partition("-- add\n")[2].partition("-- remove\n")
        if not (add.strip() and remove.strip()):
            raise SetupFailed(
                "The file of memberships needs SQL after a line `-- add` and after a line `-- remove` "
                "(docs/verify.md)."
            )
        return cls(add, remove)


@dataclass(frozen=True)
class Member:
    org_id: str
    org_name: str
    user_id: str
    role: str


@dataclass(frozen=True)
class TemporaryRows:
    """Ids of temporary orgs and users, and the ids by which their API keys are counted."""

    org_ids: list[str]
    user_ids: list[str]
    key_ids: list[str]

    def __bool__(self) -> bool:
        return bool(self.org_ids or self.user_ids)


def tier_of(org_id: str) -> str:
    return f"{TIER_PREFIX}{org_id[:8]}"


def email_of(user_id: str) -> str:
    return f"{user_id}@{DOMAIN}"


def key_id_of(org_id: str) -> str:
    """The id of the API key in tokens that a run signs itself."""
    return str(uuid5(UUID(org_id), "key"))


def create(
    database: Connection,
    orgs: dict[str, str],
    user_ids: Sequence[str],
    members: Sequence[Member],
    memberships: Memberships,
) -> None:
    """Create the orgs (names by id), the users and the memberships."""
    tier = tier_of(next(iter(orgs)))
    with database.transaction():
        database.execute(
            # Paused, so that no worker changes the rows of the orgs.
            "insert into rag.tiers (name, rag_requests_per_minute, api_requests_per_minute, is_paused) "
            "values (%s, 1000000, 1000000, true)",
            [tier],
        )
        for org_id, name in orgs.items():
            database.execute(
                "insert into rag.orgs (id, name, tier) values (%s, %s, %s)", [org_id, name, tier]
            )
        with _without_triggers(database, INSERT):
            _create_users(database, user_ids)
        for member in members:
            add_member(database, member, memberships)


def add_member(database: Connection, member: Member, memberships: Memberships) -> None:
    parameters = {
        "org_id": member.org_id, "name": member.org_name, "user_id": member.user_id, "role": member.role,
    }  # fmt: skip
    _run(database, memberships.add, parameters)


def remove_member(database: Connection, user_id: str, memberships: Memberships) -> None:
    _run(database, memberships.remove, {"org_ids": [], "user_ids": [UUID(user_id)]})


def _create_users(database: Connection, user_ids: Sequence[str]) -> None:
    """Supabase Auth can list no users while one of them has null in a column of TOKENS."""
    statement = (
        "select attname from pg_attribute where attrelid = 'auth.users'::regclass and attname = any (%s) "
        "and not attisdropped"
    )
    tokens = [name for (name,) in database.execute(statement, [list(TOKENS)])]
    columns, values = ", ".join(["id", "email", *tokens]), ", ".join(["%s", "%s", *("''" for _ in tokens)])
    for user_id in user_ids:
        statement = f"insert into auth.users ({columns}) values ({values})"  # noqa: S608
        database.execute(statement.encode(), [user_id, email_of(user_id)])


def find(database: Connection) -> TemporaryRows:
    """All temporary rows of the database: those of this run and of killed ones."""

    def ids(statement: str, *parameters: Any) -> list[str]:
        return [str(row[0]) for row in database.execute(statement.encode(), parameters)]

    org_ids = ids("select id from rag.orgs where tier ~ %s", f"^{TIER_PREFIX}[0-9a-f]{{8}}$")
    user_ids = ids("select id from auth.users where email = id::text || '@' || %s", DOMAIN)
    key_ids = ids("select id from rag.api_keys where org_id = any (%s::uuid[])", org_ids)
    return TemporaryRows(org_ids, user_ids, key_ids + [key_id_of(org_id) for org_id in org_ids])


def remove(
    database: Connection, rows: TemporaryRows, memberships: Memberships, deployment: Deployment | None
) -> None:
    """Delete the rows with all that belongs to them. Objects of Storage are deleted through its API, which
    needs the deployment."""
    _remove_objects(database, rows.org_ids, deployment)
    with database.transaction():
        parameters = {
            "org_ids": [UUID(org_id) for org_id in rows.org_ids],
            "user_ids": [UUID(user_id) for user_id in rows.user_ids],
        }
        _run(database, memberships.remove, parameters)
        database.execute("delete from rag.orgs where id = any (%s::uuid[])", [rows.org_ids])
        database.execute("delete from rag.object_removals where org_id = any (%s::uuid[])", [rows.org_ids])
        tiers = [tier_of(org_id) for org_id in rows.org_ids]
        database.execute("delete from rag.tiers where name = any (%s)", [tiers])
        for table, column in TABLES_OF_A_USER.items():
            statement = f"delete from rag.{table} where {column} = any (%s::uuid[])"  # noqa: S608
            database.execute(statement.encode(), [rows.user_ids + rows.key_ids])
        with _without_triggers(database, DELETE):
            database.execute("delete from auth.users where id = any (%s::uuid[])", [rows.user_ids])


def triggers_of_users(database: Connection, events: int = INSERT | DELETE) -> list[tuple[str, bool]]:
    """The triggers of auth.users for these events, and whether each one cannot be switched off for a
    session."""
    statement = (
        "select tgname, tgenabled in ('A', 'R') from pg_trigger where tgrelid = 'auth.users'::regclass "
        "and not tgisinternal and tgenabled <> 'D' and tgtype & %s <> 0 order by tgname"
    )
    return database.execute(statement, [events]).fetchall()


@contextmanager
def _without_triggers(database: Connection, event: int) -> Iterator[None]:
    """Within the block no trigger of auth.users runs: a trigger of the adopter's may send mail or call a
    webhook.

    Raises SetupFailed if the role may not switch the triggers off."""
    triggers = triggers_of_users(database, event)
    if not triggers:
        yield
        return
    names = ", ".join(name for name, _ in triggers)
    try:
        with database.transaction():
            database.execute("set local session_replication_role = replica")
    except psycopg.errors.InsufficientPrivilege:
        raise SetupFailed(
            f"The role may not switch off the triggers of auth.users ({names}), which would run for "
            "temporary users. Use a role that may set session_replication_role."
        ) from None
    if any(is_always for _, is_always in triggers):
        raise SetupFailed(f"Triggers of auth.users ({names}) run always. Disable them for this run.")
    yield
    database.execute("set local session_replication_role = origin")


def _run(database: Connection, statements: str, parameters: dict[str, Any]) -> None:
    """Run one or more statements with the parameters bound on the client."""
    psycopg.ClientCursor(database).execute(statements.encode(), parameters)


def _remove_objects(database: Connection, org_ids: Sequence[str], deployment: Deployment | None) -> None:
    (exists,) = database.execute("select to_regclass('storage.objects') is not null").fetchone() or (False,)
    if not exists:
        return
    statement = (
        "select name from storage.objects where bucket_id = %s and split_part(name, '/', 1) = any (%s)"
    )
    names = [name for (name,) in database.execute(statement, [BUCKET, list(org_ids)])]
    if not names:
        return
    if deployment is None:
        raise SetupFailed(f"Storage has {len(names)} temporary objects, whose removal needs the signing key.")
    storage = Storage(deployment.project_url, deployment.anon_key, BUCKET)
    try:
        for name in names:
            # A token for one object alone deletes it (sql/40_storage).
            storage.remove(
                Principal("", deployment.signer.token(STORAGE_SECONDS, rag={"object": name})), name
            )
    finally:
        storage.close()
