"""Connection of the commands that work on the database as its owner."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from local.errors import CommandError
from local.operations.folder_scan import one_line
from local.operations.org_data.tables import open_session


@contextmanager
def connected(url: str, *, autocommit: bool = False) -> Iterator[psycopg.Connection[Any]]:
    """One transaction, which is committed at the end; with `autocommit`, each statement is one. Raises
    CommandError for errors of the database."""
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
