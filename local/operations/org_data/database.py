"""Connection of the commands that work on the database as its owner."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from local.errors import CommandError
from local.operations.folder_scan import one_line
from local.operations.org_data.tables import open_session

# Supabase's pooler in transaction mode, without settings, locks and prepared statements of a session.
TRANSACTION_POOLER = "6543"


def is_transaction_pooler(url: str) -> bool:
    """Raises psycopg.ProgrammingError for a text that is no URL of a database."""
    return str(psycopg.conninfo.conninfo_to_dict(url).get("port")) == TRANSACTION_POOLER


@contextmanager
def connected(url: str, *, autocommit: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """One transaction, which is committed at the end; with `autocommit`, each statement is one. Raises
    CommandError for errors of the database."""
    try:
        if is_transaction_pooler(url):
            raise CommandError(
                f"the port {TRANSACTION_POOLER} is that of the pooler in transaction mode; use the direct "
                "connection, or the pooler in session mode (port 5432)"
            )
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
