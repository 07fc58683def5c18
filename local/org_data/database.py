"""Connection of the commands that work on the database as its owner."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from local.child_processes import StackError
from local.folder_scan import one_line
from local.org_data.tables import open_session
from local.stack import Stack


@contextmanager
def connected(
    stack: Stack, url: str | None, *, autocommit: bool = False
) -> Iterator[psycopg.Connection[Any]]:
    """One transaction, which is committed at the end; with `autocommit`, each statement is one. Raises
    StackError for errors of the database."""
    if url is None:
        stack.require_up()
        url = stack.database_url()
    try:
        with psycopg.connect(url) as connection:
            open_session(connection)
            connection.commit()
            connection.autocommit = autocommit
            yield connection
    except psycopg.Error as error:
        raise StackError(error.diag.message_primary or one_line(str(error))) from None
