"""Command `export`: an org's data in one file."""

import argparse
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from local.demo_corpus import org_id_of
from local.errors import CommandError
from local.operations.org_data.archive import (
    ORG,
    Manifest,
    TableDigest,
    TableEntry,
    User,
    create_archive,
    row_id,
    user_id,
    write_manifest,
    write_table,
)
from local.operations.org_data.database import connected
from local.operations.org_data.tables import EXPORTED, Table, ids_of, rows_of, tables_of, users_of

KEYS = """
select keys.name, keys.prefix, keys.scopes, keys.expires_at, collections.name as collection,
  users.email as owner
from rag.api_keys as keys
left join rag.collections on collections.org_id = keys.org_id and collections.id = keys.collection_id
left join auth.users on users.id = keys.owner_id
where keys.org_id = %s and keys.revoked_at is null
order by keys.created_at
"""
WEBHOOKS = """
select endpoints.url, endpoints.description, webhooks.events, webhooks.enabled, collections.name as collection
from rag.webhooks
join rag.endpoints on endpoints.org_id = webhooks.org_id and endpoints.webhook_id = webhooks.id
left join rag.collections on collections.org_id = webhooks.org_id and collections.id = webhooks.collection_id
where webhooks.org_id = %s
order by webhooks.created_at
"""
SOURCES = """
select sources.kind, sources.address, sources.endpoint, sources.region, sources.interval_seconds,
  sources.max_items, collections.name as collection
from rag.sources
join rag.collections on collections.org_id = sources.org_id and collections.id = sources.collection_id
where sources.org_id = %s
order by sources.created_at
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("org", metavar="ORG", help="the org's id")
    parser.add_argument("file", type=Path, metavar="FILE", help="a new file; it contains the org's texts")
    parser.add_argument("--database", metavar="URL", help="its owner's URL; default: the local stack")


def run(database_url: str, options: argparse.Namespace) -> None:
    """Raises CommandError; then there is no file."""
    with connected(database_url) as connection:
        manifest = export(connection, org_id_of(options.org), options.file)
    rows = sum(table["rows"] for table in manifest.tables.values())
    print(f"{rows:,} rows, digest {manifest.digest}")
    if manifest.files_in_storage:
        print(f"{manifest.files_in_storage:,} original files are in Supabase Storage, not in this file")


def export(connection: psycopg.Connection[Any], org: str, path: Path) -> Manifest:
    """Write the archive and return its manifest. One snapshot of the database, without locks."""
    connection.execute("set transaction isolation level repeatable read, read only")
    tables = tables_of(connection)
    manifest, ids = describe(connection, tables, org)
    archive = create_archive(path)
    try:
        with archive:
            for name in EXPORTED:
                rows = rows_of(connection, tables[name], org, ids)
                manifest.tables[name] = write_table(archive, name, tables[name].columns, rows)
            write_manifest(archive, manifest)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return manifest


def describe(
    connection: psycopg.Connection[Any], tables: dict[str, Table], org: str
) -> tuple[Manifest, dict[bytes, bytes]]:
    """The manifest without its tables, and the number of each id. Raises CommandError for an unknown org."""
    described = _rows(connection, "select name, tier, record_days from rag.orgs where id = %s", org)
    if not described:
        raise CommandError("no org has this id")
    named = users_of(connection, tables, org)
    emails = dict(
        connection.execute(
            "select id::text, email from auth.users where id = any (%s::uuid[])", [list(named)]
        ).fetchall()
    )
    users = sorted(
        (User(id=user, email=emails.get(user), owns_rows=owns) for user, owns in named.items()),
        key=lambda user: (user.email or "", user.id),
    )
    row_ids = ids_of(connection, org)
    ids = {org.encode(): ORG}
    ids |= {user.id.encode(): user_id(place) for place, user in enumerate(users)}
    ids |= {row.encode(): row_id(place) for place, row in enumerate(row_ids)}
    places = {user.id: place for place, user in enumerate(users)}
    members = [
        {"user": places[row["user_id"]], "role": row["role"], "name": row["name"]}
        for row in _rows(
            connection,
            "select user_id::text, role, name from rag.members "
            "where org_id = %s and accepted_at is not null order by user_id",
            org,
        )
    ]
    models = (
        "select embedding_model, rag.dimensions_of(embedding_model) as dimensions "
        "from rag.chunks where org_id = %s group by 1 order by 1"
    )
    files = _rows(
        connection, "select count(*) from rag.originals where org_id = %s and path is not null", org
    )
    values = {
        "org": described[0],
        "users": users,
        "members": members,
        "models": {row["embedding_model"]: row["dimensions"] for row in _rows(connection, models, org)},
        "keys": _rows(connection, KEYS, org),
        "webhooks": _rows(connection, WEBHOOKS, org),
        "sources": _rows(connection, SOURCES, org),
        "files_in_storage": files[0]["count"],
        "row_ids": len(row_ids),
    }
    return Manifest.model_validate(values), ids


def digests(
    connection: psycopg.Connection[Any], tables: dict[str, Table], org: str, ids: dict[bytes, bytes]
) -> dict[str, TableEntry]:
    """The tables of the manifest that an export would have."""
    entries = {}
    for name in EXPORTED:
        digest = TableDigest(tables[name].columns)
        for row in rows_of(connection, tables[name], org, ids):
            digest.add(row)
        entries[name] = digest.entry
    return entries


def _rows(connection: psycopg.Connection[Any], statement: str, org: str) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement, [org]).fetchall()
    return [
        {
            name: value if value is None or isinstance(value, (str, int, list)) else str(value)
            for name, value in row.items()
        }
        for row in rows
    ]
