"""Digest of each table's row versions, which shows any write."""

from typing import Any

import psycopg

# Schemas of Postgres and Supabase, in which the platform itself writes at any time. Of `auth` and `storage`
# those tables are read that a run writes to.
PLATFORM = (
    "information_schema", "cron", "extensions", "graphql", "graphql_public", "net", "pgbouncer", "pgsodium",
    "realtime", "supabase_functions", "supabase_migrations", "vault", "_analytics", "_realtime", "_supavisor",
)  # fmt: skip
TABLES = """
select format('%%I.%%I', nspname, relname)
from pg_class join pg_namespace on pg_namespace.oid = relnamespace
where relkind = 'r' and nspname !~ '^pg_' and nspname <> all (%s) and relpersistence <> 't'
  and (nspname <> 'auth' or relname = 'users') and (nspname <> 'storage' or relname in ('buckets', 'objects'))
  and has_table_privilege(pg_class.oid, 'select')
order by 1
"""

States = dict[str, tuple[int, int]]


def row_states(connection: psycopg.Connection[Any]) -> States:
    """For each table the number of rows and a digest of their versions (xmin, ctid): any write changes it.
    Reads no column."""
    tables = [table for (table,) in connection.execute(TABLES, [list(PLATFORM)])]
    digest = "coalesce(bit_xor(hashtextextended(ctid::text || ' ' || xmin::text, 0)), 0)"
    states: States = {}
    for table in tables:
        row = connection.execute(f"select count(*), {digest} from only {table}".encode()).fetchone()  # noqa: S608
        assert row is not None  # noqa: S101  # an aggregate has one row
        states[table] = row
    return states


def changed_tables(before: States, after: States) -> list[str]:
    """The tables with other rows than before, each with its numbers of rows."""
    return [
        f"{table}: {before.get(table, (0, 0))[0]} rows before, {after.get(table, (0, 0))[0]} after"
        for table in sorted(before.keys() | after.keys())
        if before.get(table) != after.get(table)
    ]
