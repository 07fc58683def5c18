"""Migrations for the supabase CLI, generated from the schema in sql/.

Until the first release there is one migration, which `make generated` writes from sql/. After it,
`make migration name=NAME` drafts the next one: the CLI's diff between a database created by the
migrations and one created by sql/. The draft needs editing, because the diff omits column storage, statistics
and data; a test compares the catalogues of the two databases.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from local import ROOT
from local.declared_schema import MIGRATION, MIGRATIONS, declared_schema
from local.errors import CommandError
from local.npm_tools import supabase
from local.postgres import Postgres
from local.stack import Stack


def write_schema() -> None:
    """Write the migration of the declared schema."""
    MIGRATION.write_text(declared_schema())


def make_database(postgres: Postgres, name: str) -> None:
    """Create a database like an empty hosted project, replacing one of that name."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    postgres.script(ROOT / "local" / "bootstrap.sql", name)


def drop_database(postgres: Postgres, name: str) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def apply_declared(postgres: Postgres, name: str) -> None:
    """Apply sql/ to that database, with the role of a hosted project's migrations."""
    with psycopg.connect(postgres.url(name, "postgres")) as connection:
        connection.execute(declared_schema().encode())


@contextmanager
def declared_database(postgres: Postgres, name: str = "declared") -> Iterator[psycopg.Connection[Any]]:
    """A connection to a temporary database of that name, which sql/ made."""
    try:
        make_database(postgres, name)
        apply_declared(postgres, name)
        with psycopg.connect(postgres.url(name, "postgres")) as connection:
            yield connection
    finally:
        drop_database(postgres, name)


def apply_migrations(stack: Stack, name: str) -> None:
    """Apply supabase/migrations to that database with the supabase CLI."""
    target = stack.database_url(database=name)
    supabase(stack.folder, "migration", "up", "--yes", f"--remote={target}")


def difference(stack: Stack, before: str, after: str) -> str:
    """The CLI's SQL from one database's schema to the other's; empty when they are equal."""
    output = stack.folder / "diff.sql"
    output.write_text("")
    supabase(
        stack.folder, "db", "diff", "--strict-coverage", "-o", str(output),
        "--from", stack.database_url(database=before), "--to", stack.database_url(database=after),
    )  # fmt: skip
    return output.read_text().strip()


# Functions that adopters replace (docs/own-members.md): a release that changed them would undo that.
REPLACED = re.compile(
    r"\bfunction\s+\"?rag\"?\.\"?(memberships|org_members|group_memberships)\"?\s*\(", re.IGNORECASE
)


def require_replaced_functions_unchanged(changes: str) -> None:
    """Raises CommandError for SQL that creates, changes or drops a function that adopters replace."""
    if found := REPLACED.search(changes):
        raise CommandError(
            f"the migration would undo an adopter's rag.{found[1]}(); leave the function in sql/ as it is, "
            "and put the change in a function that calls it"
        )


def draft(stack: Stack, name: str) -> Path:
    """Write the draft of a migration; its path. Raises CommandError when there is nothing to migrate, and
    when the migration would undo what adopters replaced."""
    path = MIGRATIONS / f"{datetime.now(UTC):%Y%m%d%H%M%S}_{name}.sql"
    postgres = stack.postgres
    try:
        make_database(postgres, "migrated")
        apply_migrations(stack, "migrated")
        make_database(postgres, "declared")
        apply_declared(postgres, "declared")
        changes = difference(stack, "migrated", "declared")
    finally:
        drop_database(postgres, "migrated")
        drop_database(postgres, "declared")
    if not changes:
        raise CommandError(
            "the migrations already have everything that sql/ declares, so there is nothing to draft"
        )
    require_replaced_functions_unchanged(changes)
    path.write_text(changes + "\n")
    return path
