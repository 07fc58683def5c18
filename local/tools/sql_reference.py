"""Reference of the schema, generated from a database: docs/sql-reference.md.

The texts are the comments of the database (`comment on` in sql/).
"""

from typing import Any

import psycopg

from local import ROOT
from local.declared_schema import exposed_functions

PATH = ROOT / "docs" / "sql-reference.md"
CALLERS = {
    "direct": "Browsers call these directly, with the user's token.",
    "unguarded": "Policies and health checks call these.",
    "guarded": "These also require the functions' secret.",
    "worker": "Only the worker's role executes these.",
}
INTRODUCTION = """# SQL reference

Generated from the database by `make generated`. `sql/README.md` explains the domains.
"""
RELATIONS = """
select relname, obj_description(pg_class.oid, 'pg_class'), array(
  select array[
    attname::text, format_type(atttypid, atttypmod), coalesce(col_description(attrelid, attnum), '')]
  from pg_attribute where attrelid = pg_class.oid and attnum > 0 and not attisdropped order by attnum)
from pg_class where relnamespace = 'rag'::regnamespace and relkind = 'r' order by relname
"""
TYPES = """
select typname, obj_description(pg_type.oid, 'pg_type'), array(
  select format('%s %s', attname, format_type(atttypid, atttypmod))
  from pg_attribute where attrelid = typrelid and attnum > 0 and not attisdropped order by attnum)
from pg_type join pg_class on pg_class.oid = typrelid and relkind = 'c'
where typnamespace = 'rag'::regnamespace order by typname
"""
FUNCTIONS = """
select pg_proc.oid::regprocedure::text, pronamespace::regnamespace || '.' || proname,
  pg_get_function_arguments(pg_proc.oid), pg_get_function_result(pg_proc.oid),
  obj_description(pg_proc.oid, 'pg_proc')
from pg_proc
where pronamespace in ('rag'::regnamespace, 'public'::regnamespace) and not exists (
  select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e')
order by proname, 1
"""


def reference(connection: psycopg.Connection[Any]) -> str:
    """The reference of that database's schema, in Markdown."""
    connection.execute("set local search_path = ''")
    parts = [INTRODUCTION, "## Tables\n"]
    for name, comment, columns in connection.execute(RELATIONS).fetchall():
        parts.append(f"### rag.{name}\n\n{comment}\n\n| Column | Type | |\n|---|---|---|")
        parts += [f"| {column} | {kind} | {_cell(text)} |" for column, kind, text in columns]
        parts.append("")
    parts.append("## Types\n")
    for name, comment, fields in connection.execute(TYPES).fetchall():
        parts.append(f"### rag.{name}\n\n{comment}\n\n`{', '.join(fields)}`\n")
    functions = connection.execute(FUNCTIONS).fetchall()
    callers = {f"public.{signature}": caller for signature, caller in exposed_functions().items()}
    parts.append("## Exposed functions\n")
    for caller, text in CALLERS.items():
        parts.append(f"{text}\n")
        for signature, name, arguments, result, comment in functions:
            if callers.get(signature) == caller:
                parts.append(
                    f"### {name}\n\n{comment}\n\n```sql\n{name}({arguments})\nreturns {result}\n```\n"
                )
    parts.append("## Internal functions\n\n| Function | Returns | |\n|---|---|---|")
    for signature, name, arguments, result, comment in functions:
        if signature not in callers:
            parts.append(f"| {name}({_cell(arguments)}) | {_cell(result)} | {_cell(comment)} |")
    return "\n".join(parts) + "\n"


def write(connection: psycopg.Connection[Any]) -> None:
    """Write the reference of a database that sql/ made."""
    PATH.write_text(reference(connection))


def _cell(text: str | None) -> str:
    return str(text).replace("|", "\\|")
