"""python -m local.tools: files that are generated from the sources.

`generate` writes all of them, `migration NAME` drafts a migration.
"""

import argparse
import subprocess
import sys

from local.errors import CommandError
from local.stack import Stack
from local.tools import (
    configuration_page,
    formats_page,
    generate_sync_sdk,
    messages_page,
    migrations,
    openapi,
    sql_reference,
)
from verify import catalogue


def write_generated() -> None:
    """Write every generated file."""
    migrations.write_schema()
    configuration_page.write()
    formats_page.write()
    messages_page.write()
    openapi.write()
    generate_sync_sdk.write()
    with Stack.temporary() as stack:
        stack.postgres_only()
        with migrations.declared_database(stack.postgres) as connection:
            sql_reference.write(connection)
            catalogue.write(connection)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local.tools", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("generate", help="write all generated files")
    draft = commands.add_parser("migration", help="draft the migration from supabase/migrations to sql/")
    draft.add_argument("name")
    options = parser.parse_args()
    try:
        if options.command == "generate":
            write_generated()
        else:
            with Stack.temporary() as stack:
                stack.postgres_only()
                print(migrations.draft(stack, options.name))
    except (CommandError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
