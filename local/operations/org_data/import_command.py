"""Command `import`: an archive of an org's data into this deployment."""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import time
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import psycopg
from psycopg import sql

from local.demo_corpus import org_id_of
from local.errors import CommandError
from local.operations.org_data.archive import (
    ORG,
    Manifest,
    open_archive,
    read_manifest,
    read_table,
    row_id,
    user_id,
)
from local.operations.org_data.database import connected
from local.operations.org_data.export_command import digests
from local.operations.org_data.tables import EXPORTED, Table, tables_of

# Rows of a statement. Triggers index the words of its chunks.
ROWS = 1000
# No document can be added to a deleted collection: it is marked as deleted after its documents are added.
COLLECTIONS = "create temporary table collections (like rag.collections) on commit drop"
ADD_COLLECTIONS = """
insert into rag.collections
select (jsonb_populate_record(collections, case when deleted_at is not null
  then jsonb_build_object('name', id, 'deleted_at', null) else '{}' end)).*
from pg_temp.collections
"""
DELETE_COLLECTIONS = """
update rag.collections
set name = deleted.name, deleted_at = deleted.deleted_at
from pg_temp.collections as deleted
where collections.org_id = deleted.org_id and collections.id = deleted.id and deleted.deleted_at is not null
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="written by export")
    parser.add_argument(
        "--org", metavar="ORG", help="the id of a new org or of an empty one; default: a new id"
    )
    parser.add_argument(
        "--user",
        action="append",
        default=[],
        metavar="EMAIL=EMAIL",
        help="a user's address in the archive and here, where they differ",
    )
    parser.add_argument("--database", metavar="URL", help="its owner's URL; default: the local stack")


def run(database_url: str, options: argparse.Namespace) -> None:
    """Raises CommandError; then nothing is stored."""
    renamed = dict(_pair(value) for value in options.user)
    org = org_id_of(options.org) if options.org else str(uuid4())
    with connected(database_url) as connection, open_archive(options.file) as archive:
        imported = import_org(connection, archive, org, renamed)
    manifest = imported.manifest
    rows = sum(table["rows"] for table in manifest.tables.values())
    print(f"{rows:,} rows, digest {manifest.digest}, org {org}")
    for email in imported.absent_members:
        print(f"not a member, because there is no such user here: {email}")
    for key in manifest.keys:
        print(f"create this API key again: {key['name']} ({', '.join(key['scopes'])})")
    for webhook in manifest.webhooks:
        print(f"create this webhook again: {webhook['url']}")
    for source in manifest.sources:
        print(f"create this source again: {source['address']}")
    if manifest.files_in_storage:
        print(f"{manifest.files_in_storage:,} original files were in Supabase Storage and are not imported")


@dataclass(frozen=True)
class Imported:
    manifest: Manifest
    absent_members: list[str]


def import_org(
    connection: psycopg.Connection[Any], archive: ZipFile, org: str, renamed: dict[str, str]
) -> Imported:
    """Store the archive's rows with new ids as the org's, in this transaction. Raises CommandError where the
    deployment is unsuitable, and where the stored rows do not have the archive's digest."""
    manifest = read_manifest(archive)
    tables = tables_of(connection)
    _require_suitable(connection, manifest, tables, org)
    users = _users(connection, manifest, renamed)
    ids = {ORG: org.encode()}
    ids |= {user_id(place): user.encode() for place, user in enumerate(users)}
    ids |= {row_id(place): new for place, new in enumerate(new_ids(manifest.row_ids))}
    _create_org(connection, manifest, org)
    absent = _add_members(connection, manifest, org, users)
    connection.execute(COLLECTIONS)
    for name in EXPORTED:
        _copy(connection, tables[name], org, read_table(archive, name), ids)
        if name == "collections":
            connection.execute(ADD_COLLECTIONS)
    connection.execute(DELETE_COLLECTIONS)
    stored = digests(connection, tables, org, {new: number for number, new in ids.items()})
    if different := [name for name in EXPORTED if stored[name] != manifest.tables[name]]:
        raise CommandError(
            f"the archive is damaged: other rows than its manifest states in {', '.join(different)}"
        )
    return Imported(manifest, absent)


def new_ids(count: int) -> Iterator[bytes]:
    """Ids in order that begin with the time, as rag.time_ordered_id makes them."""
    milliseconds = int(time() * 1000)
    for place in range(count):
        digits = f"{milliseconds:012x}7{place >> 16:03x}8{place & 0xFFFF:04x}{uuid4().hex[:11]}"
        yield "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])).encode()


def _pair(value: str) -> tuple[str, str]:
    old, _, new = value.partition("=")
    if not new:
        raise CommandError(f"--user {value}: write the address in the archive, =, and the address here")
    return old, new


def _require_suitable(
    connection: psycopg.Connection[Any], manifest: Manifest, tables: dict[str, Table], org: str
) -> None:
    columns = {name: table["columns"] for name, table in manifest.tables.items()}
    if columns != {name: tables[name].columns for name in EXPORTED}:
        raise CommandError("another release wrote this archive; import it with that release, then upgrade")
    row = connection.execute(
        "select array_append(other_embedding_models, embedding_model) from rag.settings"
    ).fetchone()
    if missing := sorted(set(manifest.models) - set(row[0] if row else ())):
        raise CommandError(
            f"the embeddings are of {', '.join(missing)}, which this deployment does not use (rag.settings)"
        )
    for model, dimensions in manifest.models.items():
        row = connection.execute("select rag.dimensions_of(%s)", [model]).fetchone()
        if row != (dimensions,):
            raise CommandError(
                f"the embeddings of {model} have {dimensions} dimensions in the archive, and another number "
                "in this deployment; before it has documents: "
                f"select rag.set_dimensions('{model}', {dimensions})"
            )
    for name in EXPORTED:
        statement = sql.SQL("select exists (select from {} where org_id = %s)").format(
            tables[name].identifier
        )
        if connection.execute(statement, [org]).fetchone() == (True,):
            raise CommandError(f"the org has rows in rag.{name}; import into an empty org, or erase it first")


def _users(connection: psycopg.Connection[Any], manifest: Manifest, renamed: dict[str, str]) -> list[str]:
    """Each user's id here. A user who owns nothing and is absent keeps the id of the source deployment."""
    emails = [renamed.get(user.email, user.email) if user.email else None for user in manifest.users]
    here = dict(
        connection.execute(
            "select email, id::text from auth.users where email = any (%s)", [emails]
        ).fetchall()
    )
    if absent := sorted(
        email or user.id
        for user, email in zip(manifest.users, emails, strict=True)
        if user.owns_rows and email not in here
    ):
        raise CommandError(
            f"these users own documents or sessions and are not users here: {', '.join(absent)}. "
            "Create them, or name others with --user"
        )
    users = [here.get(email or "", user.id) for user, email in zip(manifest.users, emails, strict=True)]
    if len(set(users)) < len(users):
        raise CommandError("two users of the archive would be one user here; see --user")
    return users


def _create_org(connection: psycopg.Connection[Any], manifest: Manifest, org: str) -> None:
    connection.execute(
        "insert into rag.orgs (id, name, record_days, tier) "
        "select %s, %s, %s, coalesce((select name from rag.tiers where name = %s), 'standard') "
        "on conflict (id) do nothing",
        [org, manifest.org["name"], manifest.org["record_days"], manifest.org["tier"]],
    )


def _add_members(
    connection: psycopg.Connection[Any], manifest: Manifest, org: str, users: list[str]
) -> list[str]:
    """The addresses of members that are no users here."""
    absent = []
    for member in manifest.members:
        added = connection.execute(
            "insert into rag.members (org_id, user_id, role, name) "
            "select %s, id, %s, %s from auth.users where id = %s "
            "on conflict (org_id, user_id) do update set role = excluded.role",
            [org, member["role"], member["name"], users[member["user"]]],
        )
        if not added.rowcount:
            user = manifest.users[member["user"]]
            absent.append(user.email or user.id)
    return absent


def _copy(
    connection: psycopg.Connection[Any],
    table: Table,
    org: str,
    rows: Iterable[bytes],
    ids: dict[bytes, bytes],
) -> None:
    columns = sql.SQL(", ").join(map(sql.Identifier, ["org_id", *table.columns]))
    target = sql.Identifier("pg_temp", table.name) if table.name == "collections" else table.identifier
    statement = sql.SQL("copy {} ({}) from stdin").format(target, columns)
    lines = iter(rows)
    while batch := list(islice(lines, ROWS)):
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in batch:
                copy.write(b"\t".join((org.encode(), *table.fields(row, ids))))
