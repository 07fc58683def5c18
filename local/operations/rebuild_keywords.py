"""Command `rebuild-keywords`: the keyword index of an org, or of all orgs, written anew while in use.

A killed run leaves a complete index of former and new terms: run the command again.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import psycopg
from rich.console import Console
from rich.progress import Progress

from local.demo_corpus import org_id_of
from local.errors import CommandError
from local.operations.org_data.database import connected
from local.progress_columns import columns

FIRST = "00000000-0000-0000-0000-000000000000"
ORGS = """
select orgs.id::text, (select count(*) from rag.documents where documents.org_id = orgs.id)
from rag.orgs where %(org)s::uuid is null or orgs.id = %(org)s order by orgs.id
"""
OF_STEP = "select count(*) from rag.documents where org_id = %s and id > %s and id <= %s"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--org", metavar="ORG", help="an org's id; default: all orgs")
    parser.add_argument("--database", metavar="URL", help="its owner's URL; default: the local stack")


def run(database_url: str, options: argparse.Namespace) -> None:
    """Raises CommandError."""
    org = org_id_of(options.org) if options.org else None
    with connected(database_url, autocommit=True) as connection:
        orgs = connection.execute(ORGS, {"org": org}).fetchall()
        if org and not orgs:
            raise CommandError(f"the database has no org {org}")
        console = Console(soft_wrap=True)
        with Progress(*columns(), console=console) as bar:
            for org_id, documents in orgs:
                task = bar.add_task(f"documents of {org_id}", total=documents)
                for after, last in rebuild(connection, org_id):
                    (count,) = connection.execute(OF_STEP, [org_id, after, last]).fetchone() or (0,)
                    bar.advance(task, count)
        console.print(f"orgs with a new keyword index: {len(orgs):,}", highlight=False)


def rebuild(connection: psycopg.Connection[Any], org_id: str) -> Iterator[tuple[str, str]]:
    """Rebuild an org's index. Yields the ids of the last documents before and of each step. The connection
    commits each statement. Raises psycopg.Error."""
    after = FIRST
    while row := connection.execute("select rag.rebuild_keywords(%s, %s)", [org_id, after]).fetchone():
        if row[0] is None:
            return
        yield after, row[0]
        after = row[0]
