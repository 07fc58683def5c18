"""Connection of the commands that work on the database as its owner."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from local.errors import CommandError
from local.operations.folder_scan import one_line
from local.operations.org_data.tables import open_session

# Supabase's pooler in transaction mode, without settings, locks and prepared statements of a session.
TRANSACTION_POOLER = "6543"


def require_session(url: str, name: str = "--database") -> None:
    """Raises CommandError for a text that is no URL of a database, without the password that it may have, and
    for one of the pooler in transaction mode. `name`: of the option or variable."""
    try:
        parameters = psycopg.conninfo.conninfo_to_dict(url)
        ports = str(parameters.get("port") or os.environ.get("PGPORT") or "5432").split(",")
    except psycopg.ProgrammingError:
        parameters, ports = {}, []
    # A password that is not percent-encoded makes a part of itself the host or the port.
    if not parameters or "@" in str(parameters.get("host")) or not "".join(ports).isdigit():
        raise CommandError(
            f"{name} is not the URL of a database: postgresql://user:password@host/name, with the password "
            "percent-encoded."
        )
    if TRANSACTION_POOLER in ports:
        raise CommandError(
            f"{name} has the port {TRANSACTION_POOLER} of the pooler in transaction mode: use the direct "
            "connection, or the pooler in session mode (port 5432)."
        )


@contextmanager
def connected(url: str, *, autocommit: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """One transaction, which is committed at the end; with `autocommit`, each statement is one. Raises
    CommandError for errors of the database."""
    require_session(url)
    try:
        with psycopg.connect(url) as connection:
            open_session(connection)
            connection.commit()
            connection.autocommit = autocommit
            yield connection
    except psycopg.Error as error:
        raise CommandError(reason_of(error)) from None


def reason_of(error: psycopg.Error) -> str:
    """The database's message, on one line."""
    return one_line(error.diag.message_primary or str(error))
