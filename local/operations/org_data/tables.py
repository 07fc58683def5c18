"""Tables of an org's data, and how their ids become independent of a deployment."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import psycopg
from psycopg import sql

from local.errors import CommandError

# In the order of their foreign keys. Triggers write the tables that are derived from these.
EXPORTED = (
    "collections",
    "groups",
    "group_members",
    "collection_grants",
    "documents",
    "originals",
    "chunks",
    "jobs",
    "mentions",
    "relations",
    "sessions",
    "messages",
    "request_records",
    "audit_events",
    "org_calls",
    "token_usage",
)
NOT_EXPORTED = {
    "facets": "triggers write them for each document",
    "title_entities": "triggers write them for each document",
    "document_terms": "triggers write them for each document",
    "term_segments": "triggers write them for each document",
    "term_blocks": "triggers write them for each document",
    "other_embeddings": "of another model than the chunks'; the command change-model makes them",
    "stored_bytes": "triggers write them for each document and original",
    "members": "in the manifest, by e-mail address",
    "api_keys": "their names are in the manifest; a key's hash is valid in one deployment",
    "webhooks": "their URLs are in the manifest, without secrets",
    "endpoints": "their URLs are in the manifest, without secrets",
    "deliveries": "events of webhooks, which are not imported",
    "sources": "their addresses are in the manifest, without credentials",
    "source_credentials": "credentials",
    "source_items": "a new source lists its documents again",
    "object_removals": "a queue of Storage objects of this deployment",
    "stored_responses": "responses to requests that may be repeated within a day",
}
# A lease, vectors for the next attempt and API keys belong to the source deployment. A file in Storage is not
# in the database.
VALUES = {
    ("jobs", "passages_hash"): "null::text",
    ("jobs", "embeddings"): "null::text",
    ("jobs", "lease"): "null::uuid",
    ("request_records", "key_id"): "null::uuid",
    ("jobs", "state"): "case state when 'running' then 'waiting' else state end",
}
CONDITIONS = {"originals": "path is null", "members": "accepted_at is not null"}
WITH_IDS = (
    "collections",
    "collection_grants",
    "documents",
    "chunks",
    "jobs",
    "sessions",
    "messages",
    "request_records",
    "audit_events",
)
USER_COLUMNS = ("owner_id", "created_by", "user_id", "restricted_by")
ID_TYPES = ("uuid", "uuid[]", "jsonb", "json")
UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SESSION = {
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
COLUMNS = """
select c.relname, array_agg(a.attname::text order by a.attnum),
  array_agg(format_type(a.atttypid, null) order by a.attnum)
from pg_class as c
join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  and a.attgenerated = ''
where c.relnamespace = 'rag'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
group by c.relname
order by c.relname
"""


@dataclass(frozen=True)
class Table:
    """A table of schema rag and the types of its columns, in order."""

    name: str
    types: Mapping[str, str]

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier("rag", self.name)

    @cached_property
    def columns(self) -> list[str]:
        """Those of an exported row: all but org_id."""
        return [column for column in self.types if column != "org_id"]

    @cached_property
    def places_of_ids(self) -> list[int]:
        """The places of an exported row's columns that may contain ids."""
        return [place for place, column in enumerate(self.columns) if self.types[column] in ID_TYPES]

    def fields(self, row: bytes, ids: Mapping[bytes, bytes]) -> list[bytes]:
        """The fields of a row of COPY's text format. In columns of ids and JSON, the ids of `ids` are
        replaced. Raises CommandError for a row with other columns."""
        fields = row.split(b"\t")
        if len(fields) != len(self.columns):
            raise CommandError(f"a row of the table {self.name} is damaged")
        for place in self.places_of_ids:
            fields[place] = UUID.sub(lambda match: ids.get(match[0], match[0]), fields[place])
        return fields


def open_session(connection: psycopg.Connection[Any]) -> None:
    """Raises CommandError for a role to which row security applies: it would miss rows."""
    row = connection.execute(
        "select rolsuper or rolbypassrls from pg_roles where rolname = current_user"
    ).fetchone()
    if row is None or not row[0]:
        raise CommandError("row security applies to this role; use the URL of the database's owner")
    for name, value in SESSION.items():
        connection.execute("select set_config(%s, %s, false)", [name, value])


def tables_of(connection: psycopg.Connection[Any]) -> dict[str, Table]:
    return {
        name: Table(name, dict(zip(columns, types, strict=True)))
        for name, columns, types in connection.execute(COLUMNS)
    }


def rows_of(
    connection: psycopg.Connection[Any], table: Table, org: str, ids: Mapping[bytes, bytes]
) -> Iterator[bytes]:
    """The org's rows as lines of COPY's text format, with the ids of `ids` replaced."""
    values = sql.SQL(", ").join(
        sql.SQL(VALUES[table.name, column]) if (table.name, column) in VALUES else sql.Identifier(column)
        for column in table.columns
    )
    statement = sql.SQL("copy (select {} from {} where org_id = {} and {} order by 1) to stdout").format(
        values, table.identifier, sql.Literal(org), sql.SQL(CONDITIONS.get(table.name, "true"))
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for line in copy:
            yield b"\t".join(table.fields(bytes(line), ids))


def ids_of(connection: psycopg.Connection[Any], org: str) -> list[str]:
    """The ids of the org's rows, in order."""
    ids: list[str] = []
    for name in WITH_IDS:
        statement = sql.SQL("select id::text from {} where org_id = %s").format(sql.Identifier("rag", name))
        ids += [row[0] for row in connection.execute(statement, [org])]
    return sorted(ids)


def users_of(connection: psycopg.Connection[Any], tables: Mapping[str, Table], org: str) -> dict[str, bool]:
    """The ids of users that the org's rows name, and whether each owns rows."""
    users: dict[str, bool] = {}
    for name in (*EXPORTED, "members"):
        for column in USER_COLUMNS:
            if column in tables[name].types:
                statement = sql.SQL(
                    "select distinct {column}::text from {table} "
                    "where org_id = %s and {column} is not null and {condition}"
                ).format(
                    column=sql.Identifier(column),
                    table=tables[name].identifier,
                    condition=sql.SQL(CONDITIONS.get(name, "true")),
                )
                rows = connection.execute(statement, [org])
                for (user,) in rows:
                    users[user] = users.get(user, False) or column == "owner_id"
    return users
