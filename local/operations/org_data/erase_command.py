"""Command `erase`: all rows of an org or of a user removed, and a report of the removed rows."""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import sql

from local.demo_corpus import org_id_of
from local.errors import CommandError
from local.operations.org_data.database import connected
from local.operations.org_data.tables import ID_TYPES, Table, tables_of
from shared.clients.snapshot_store import Store

# The user in whose place shared documents and audit events name an erased one.
NO_USER = "00000000-0000-0000-0000-000000000000"
# Columns by which a row is the user's own. Others only name the user.
OWN_COLUMNS = ("owner_id", "caller_id")
# In these tables also user_id: rights, counts and limits of one user.
OF_ONE_USER = ("members", "collection_grants", "rate_limits", "request_counts", "api_metrics")
# Deleted first: their triggers and foreign keys delete the rows that depend on them.
FIRST = ("documents", "collections", "sessions")
# They outlive the org: the worker removes their objects from Storage and then the rows.
QUEUE = "object_removals"


@dataclass(frozen=True)
class Report:
    """Numbers of rows by table. The transaction has checked that no row names the org or the user any more.
    `objects_in_storage`: files that the worker has yet to remove; a repeated command reports 0 in the end.
    `files_of_snapshots`: files in the org's folder of the snapshot store, which stay there; null where no
    store was named, and for a user."""

    kind: Literal["org", "user"]
    id: str
    erased_at: str
    removed: dict[str, int]
    anonymized: dict[str, int]
    objects_in_storage: int
    files_of_snapshots: int | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("--org", metavar="ORG", help="an org's id")
    subject.add_argument("--user", metavar="USER", help="a user's id, also of a deleted user")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="a new file for the report; default: standard output"
    )
    parser.add_argument(
        "--snapshots",
        metavar="URL",
        help="the deployment's RAG_SNAPSHOT_URL: the report then counts the org's files there",
    )
    parser.add_argument("--database", metavar="URL", help="its owner's URL; default: the local stack")


def run(database_url: str, options: argparse.Namespace) -> None:
    """Raises CommandError, SnapshotFailed and ConfigurationError; then nothing is removed."""
    kind: Literal["org", "user"] = "org" if options.org else "user"
    subject = org_id_of(options.org or options.user)
    files = None
    if options.snapshots and kind == "org":
        files = Store(options.snapshots).folder(subject, ()).count_files()
    with connected(database_url) as connection:
        report = replace(erase(connection, kind, subject), files_of_snapshots=files)
        text = json.dumps(asdict(report), indent=1)
        if options.report is None:
            print(text)
        else:
            _write(options.report, text)
    if kind == "org" and files is None:
        print(
            "snapshots are not counted; --snapshots with the URL of RAG_SNAPSHOT_URL counts them",
            file=sys.stderr,
        )


def erase(connection: psycopg.Connection[Any], kind: Literal["org", "user"], subject: str) -> Report:
    """Remove the rows in this transaction. Raises CommandError if a row names the subject at the end."""
    tables = tables_of(connection)
    removed = _counts(
        connection, tables, {name: _own(table, kind) for name, table in tables.items()}, subject
    )
    anonymized: dict[str, int] = {}
    if kind == "org":
        connection.execute("delete from rag.orgs where id = %s", [subject])
    else:
        anonymized = _erase_user(connection, tables, subject)
    connection.execute("set constraints all immediate")
    naming = {name: _naming(table) for name, table in tables.items() if name != QUEUE}
    remaining = _counts(connection, tables, naming, subject)
    if remaining:
        raise CommandError(f"rows still name the {kind}, so nothing was erased: {', '.join(remaining)}")
    objects = connection.execute(
        "select count(*) from rag.object_removals where org_id = %(id)s or owner_id = %(id)s", {"id": subject}
    ).fetchone()
    now = datetime.now(UTC)
    return Report(
        kind, subject, f"{now:%Y-%m-%dT%H:%M:%SZ}", removed, anonymized, objects[0] if objects else 0
    )


def _erase_user(
    connection: psycopg.Connection[Any], tables: Mapping[str, Table], user: str
) -> dict[str, int]:
    """Delete the user's own rows, and replace the user in others. Returns the number of these by table."""
    # So that deferred triggers write their events before this deletes events: they name the user.
    connection.execute("set constraints all immediate")
    own = {name: condition for name, table in tables.items() if (condition := _own(table, "user"))}
    for name in (*FIRST, *(name for name in own if name not in (*FIRST, QUEUE))):
        statement = sql.SQL("delete from {} where {}").format(tables[name].identifier, own[name])
        connection.execute(statement, {"id": user})
    anonymized = {}
    for name, table in tables.items():
        columns = [column for column, type_name in table.types.items() if type_name in ID_TYPES]
        if name == QUEUE or not columns:
            continue
        values = sql.SQL(", ").join(
            sql.SQL("{0} = replace({0}::text, %(id)s::text, %(no_user)s)::{1}").format(
                sql.Identifier(column), sql.SQL(table.types[column])
            )
            for column in columns
        )
        statement = sql.SQL("update {} set {} where {}").format(table.identifier, values, _naming(table))
        changed = connection.execute(statement, {"id": user, "no_user": NO_USER}).rowcount
        if changed:
            anonymized[name] = changed
    return anonymized


def _own(table: Table, kind: str) -> sql.Composable | None:
    """The condition of the org's or the user's own rows; null if the table has none."""
    if kind == "org":
        columns = ["id"] if table.name == "orgs" else ["org_id"]
    else:
        columns = [*OWN_COLUMNS, *(["user_id"] if table.name in OF_ONE_USER else [])]
    conditions = [
        sql.SQL("{} = %(id)s").format(sql.Identifier(column)) for column in columns if column in table.types
    ]
    return sql.SQL(" or ").join(conditions) if conditions else None


def _naming(table: Table) -> sql.Composable | None:
    """The condition of the rows in which an id or a JSON value names the subject."""
    conditions = [
        sql.SQL("{} = %(id)s" if type_name == "uuid" else "{}::text like '%%' || %(id)s || '%%'").format(
            sql.Identifier(column)
        )
        for column, type_name in table.types.items()
        if type_name in ID_TYPES
    ]
    return sql.SQL(" or ").join(conditions) if conditions else None


def _counts(
    connection: psycopg.Connection[Any],
    tables: Mapping[str, Table],
    conditions: Mapping[str, sql.Composable | None],
    subject: str,
) -> dict[str, int]:
    """The number of rows by table, where there are any."""
    counts = {}
    for name, condition in conditions.items():
        if condition is not None:
            statement = sql.SQL("select count(*) from {} where {}").format(tables[name].identifier, condition)
            row = connection.execute(statement, {"id": subject}).fetchone()
            counts[name] = row[0] if row else 0
    return {name: count for name, count in counts.items() if count}


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
