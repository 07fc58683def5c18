"""Attacks on the tables of memberships, as users in SQL.

The rows that the SQL of the memberships writes are templates: users write them without that right, and
rag.memberships() tells whether they gained by it. Every transaction is rolled back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from verify.actors import RAG_MEMBERS, Person, act_as
from verify.target_deployment import Finding, SetupFailed
from verify.target_sweep import Attempt, Sweep
from verify.temporary_rows import Member, Memberships, add_member, remove_member

Connection = psycopg.Connection[Any]

TARGET = "rag.memberships()"
# As PostgREST answers.
SUCCESS, REFUSED = 200, 403
TABLES = """
select relid::regclass::text from pg_stat_xact_user_tables where n_tup_ins + n_tup_upd > 0 order by relid
"""
ROWS = """
select ctid::text, to_jsonb(written)::text from only {table} as written
where xmin::text = pg_current_xact_id()::xid::text
"""
# A generated column takes no value.
COLUMNS = """
select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
where attrelid = %s::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attidentity <> 'a'
"""


@dataclass(frozen=True)
class Row:
    """A row that the SQL of the memberships wrote: the ctid, and all columns as JSON."""

    table: str
    columns: str
    ctid: str
    values: str

    @property
    def source(self) -> str:
        """A query whose parameter is the values."""
        return f"select {self.columns} from jsonb_populate_record(null::{self.table}, %s::jsonb)"  # noqa: S608


def attack_memberships(sweep: Sweep, memberships: Memberships) -> Iterator[Finding]:
    """Findings about users who write memberships. A user without an org becomes a member of the victim org,
    a member of another org moves there, a member becomes an admin, and users remove others. In rag.members
    admins also add users without their consent."""
    for attack, has_succeeded in _attacks(sweep, memberships):
        sweep.attempts.append(Attempt(TARGET, attack, SUCCESS if has_succeeded else REFUSED))
        if has_succeeded:
            detail = (
                "a user may write the table: enable row security and revoke the grants (docs/own-members.md)"
            )
            yield Finding(TARGET, attack, detail)


def _attacks(sweep: Sweep, memberships: Memberships) -> Iterator[tuple[str, bool]]:
    """The attacks by their names, and whether each succeeded."""
    actors, database = sweep.actors, sweep.actors.database
    stranger = actors.stranger

    def added(person: Person, org_id: str, role: str) -> list[Row]:
        # A user of one org at most is added to another one.
        remove_member(database, person.id, memberships)
        add_member(database, Member(org_id, "an org", person.id, role), memberships)
        if not (rows := _rows_written(database)):
            raise SetupFailed(
                "The memberships' SQL after `-- add` wrote no row that verify can copy. Write the "
                "rows without a block with `exception`."
            )
        return rows

    def templates(org_id: str, role: str) -> list[Row]:
        with _rolled_back(database):
            return added(stranger, org_id, role)

    as_victim = templates(actors.org_id, "admin")
    for role in ("authenticated", "anon"):
        with _rolled_back(database):
            act_as(database, stranger.id, role)
            # A second time: a row may refer to a later one.
            for row in as_victim * 2:
                _attempt(database, f"insert into {row.table} ({row.columns}) {row.source}", row.values)
            yield f"a user without an org adds themselves as {role}", _has(database, stranger, actors.org_id)
    own = (stranger, actors.foreign_org_id, "member")
    for attack, wanted, before, gained in (
        ("a member of another org moves to the victim org", as_victim, own, (actors.org_id, None)),
        (
            "a member becomes an admin",
            templates(actors.foreign_org_id, "admin"),
            own,
            (actors.foreign_org_id, "admin"),
        ),
        (
            "a user without an org takes the row of a member",
            as_victim,
            (actors.foreign_member, actors.org_id, "admin"),
            (actors.org_id, None),
        ),
    ):
        with _rolled_back(database):
            rows = added(*before)
            act_as(database, stranger.id)
            for row in rows:
                update = f"update {row.table} set ({row.columns}) = ({row.source}) where ctid = %s::tid"  # noqa: S608
                for template in wanted:
                    if template.table == row.table:
                        _attempt(database, update, template.values, row.ctid)
            yield attack, _has(database, stranger, *gained)
    for attack, caller in (
        ("a member removes an admin", actors.colleague),
        ("an admin of another org removes an admin", actors.foreign_admin),
    ):
        with _rolled_back(database):
            rows = added(stranger, actors.org_id, "admin")
            act_as(database, caller.id)
            for row in rows:
                _attempt(database, f"delete from {row.table} where ctid = %s::tid", row.ctid)  # noqa: S608
            yield attack, not _has(database, stranger, actors.org_id)
    if memberships == RAG_MEMBERS:
        yield from _attacks_on_consent(sweep)


def _attacks_on_consent(sweep: Sweep) -> Iterator[tuple[str, bool]]:
    """An admin adds a user of another org, accepts an invitation for its user, and the user becomes an admin
    by accepting it."""
    actors, database = sweep.actors, sweep.actors.database
    person, org_id = actors.colleague, actors.foreign_org_id
    invitation = "insert into rag.members (org_id, user_id, accepted_at) values (%s, %s, null)"
    acceptance = "update rag.members set accepted_at = now() where org_id = %s and user_id = %s"
    promotion = (
        "update rag.members set role = 'admin', accepted_at = now() where org_id = %s and user_id = %s"
    )
    addition = "insert into rag.members (org_id, user_id) values (%s, %s)"
    for attack, caller, before, statements, role in (
        ("an admin adds a user without consent", actors.foreign_admin, [], [addition], None),
        (
            "an admin accepts an invitation for its user",
            actors.foreign_admin,
            [invitation],
            [acceptance],
            None,
        ),
        (
            "an invited user becomes an admin",
            person,
            [invitation],
            [promotion, acceptance, promotion],
            "admin",
        ),
    ):
        with _rolled_back(database):
            for statement in before:
                database.execute(statement.encode(), [org_id, person.id])
            act_as(database, caller.id)
            # As in rag_put_member, so that an update finds the row.
            database.execute("select set_config('rag.lists_members', 'true', true)")
            for statement in statements:
                _attempt(database, statement, org_id, person.id)
            yield attack, _has(database, person, org_id, role)


def _rows_written(database: Connection) -> list[Row]:
    """The rows that this transaction wrote."""
    rows = []
    for (table,) in database.execute(TABLES).fetchall():
        (columns,) = database.execute(COLUMNS, [table]).fetchone() or ("",)
        written = database.execute(ROWS.format(table=table).encode()).fetchall()
        rows += [Row(table, columns, ctid, values) for ctid, values in written]
    return rows


@contextmanager
def _rolled_back(database: Connection) -> Iterator[None]:
    with database.transaction(force_rollback=True):
        yield


def _attempt(database: Connection, statement: str, *parameters: str) -> None:
    """Run the statement. An error is a refusal: the transaction goes on. Raises SetupFailed if the claims of
    the attack are refused, which shows nothing about the table."""
    try:
        with database.transaction():
            database.execute(statement.encode(), parameters)
    except psycopg.Error as error:
        if error.sqlstate == "PT401":
            raise SetupFailed(f"The database refused the claims of an attack: {error}") from None


def _has(database: Connection, person: Person, org_id: str, role: str | None = None) -> bool:
    """Whether that user belongs to the org, with that role."""
    act_as(database, person.id)
    statement = "select true from rag.memberships() where org_id = %s and role = coalesce(%s, role)"
    return database.execute(statement, [org_id, role]).fetchone() is not None
