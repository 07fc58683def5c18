"""Command `import`: an archive of an org's data into this deployment."""

import argparse
import re
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
from local.operations.folder_scan import one_line
from local.operations.org_data.archive import (
    ORG,
    Manifest,
    Member,
    open_archive,
    read_manifest,
    read_table,
    row_id,
    user_id,
)
from local.operations.org_data.database import connected, reason_of
from local.operations.org_data.export_command import digests
from local.operations.org_data.import_users import add_member, users_here
from local.operations.org_data.row_checks import check_rows
from local.operations.org_data.stored_rows import expire_records, require_rules
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
LINE = re.compile(r"^COPY .*?, line (\d+)", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="written by export")
    parser.add_argument(
        "--org", metavar="ORG", help="the id of a new org or of an empty one; default: a new id"
    )
    parser.add_argument(
        "--user",
        action="append",
        default=[],
        metavar="USER=USER",
        help="a user's address (of a third-party user the id) in the archive and here, where they differ",
    )
    parser.add_argument("--tier", metavar="TIER", help="the tier of a new org; default: standard")
    parser.add_argument(
        "--members", action="store_true", help="also add the archive's members who are users here"
    )
    parser.add_argument("--database", metavar="URL", help="its owner's URL; default: the local stack")


def run(database_url: str, options: argparse.Namespace) -> None:
    """Raises CommandError; then nothing is stored."""
    renamed = dict(_pair(value) for value in options.user)
    org = org_id_of(options.org) if options.org else str(uuid4())
    with connected(database_url) as connection, open_archive(options.file) as archive:
        imported = import_org(
            connection, archive, org, renamed, tier=options.tier, with_members=options.members
        )
    for line in imported.lines(org):
        print(one_line(line))


@dataclass(frozen=True)
class Imported:
    """`members`: each with its state in this deployment."""

    manifest: Manifest
    tier: str
    members: list[tuple[Member, str]]

    def lines(self, org: str) -> Iterator[str]:
        """A report. It has texts of the archive."""
        manifest = self.manifest
        rows = sum(table["rows"] for table in manifest.tables.values())
        yield f"{rows:,} rows, digest {manifest.digest}, org {org}"
        if self.tier != manifest.org.tier:
            yield f"the org has the tier {self.tier}; it had {manifest.org.tier}, see --tier"
        for member, state in self.members:
            user = manifest.users[member.user]
            yield f"member {member.name or ''} ({user.email or user.id}), {member.role}: {state}"
        for key in manifest.keys:
            yield f"create this API key again: {key.name} ({', '.join(key.scopes)})"
        for webhook in manifest.webhooks:
            yield f"create this webhook again: {webhook.url}"
        for source in manifest.sources:
            yield f"create this source again: {source.address}"
        if manifest.files_in_storage:
            yield (
                f"{manifest.files_in_storage:,} original files were in Supabase Storage and are not imported"
            )


def import_org(
    connection: psycopg.Connection[Any],
    archive: ZipFile,
    org: str,
    renamed: dict[str, str],
    *,
    tier: str | None = None,
    with_members: bool = False,
) -> Imported:
    """Store the archive's rows with new ids as the org's, in this transaction. Raises CommandError where the
    deployment or the archive is unsuitable, and where the stored rows do not have the archive's digest."""
    manifest = read_manifest(archive)
    tables = tables_of(connection)
    _require_suitable(connection, manifest, tables, org)
    users = users_here(connection, manifest, renamed)
    check_rows(archive, manifest, tables)
    ids = {ORG: org.encode()}
    ids |= {user_id(place): user.encode() for place, user in enumerate(users)}
    ids |= {row_id(place): new for place, new in enumerate(new_ids(manifest.row_ids))}
    stored_tier = _create_org(connection, manifest, org, tier)
    members = [
        (member, add_member(connection, org, users[member.user], member, with_members))
        for member in manifest.members
    ]
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
    require_rules(connection, list(manifest.models), org)
    expire_records(connection, org)
    return Imported(manifest, stored_tier, members)


def new_ids(count: int) -> Iterator[bytes]:
    """Ids in order that begin with the time, as rag.time_ordered_id makes them."""
    milliseconds = int(time() * 1000)
    for place in range(count):
        digits = f"{milliseconds:012x}7{place >> 16:03x}8{place & 0xFFFF:04x}{uuid4().hex[:11]}"
        yield "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])).encode()


def _pair(value: str) -> tuple[str, str]:
    old, _, new = value.partition("=")
    if not new:
        raise CommandError(f"--user {value}: write the address or id in the archive, =, and the one here")
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
            f"the embeddings are of {one_line(', '.join(missing))}, which this deployment does not use "
            "(rag.settings)"
        )
    for model, dimensions in manifest.models.items():
        row = connection.execute("select rag.dimensions_of(%s)", [model]).fetchone()
        if row != (dimensions,):
            raise CommandError(
                f"the embeddings of {model} have {dimensions} dimensions in the archive, and another number "
                "in this deployment; before it has documents: "
                f"select rag.set_dimensions({sql.Literal(model).as_string(connection)}, {dimensions})"
            )
    for name in EXPORTED:
        statement = sql.SQL("select exists (select from {} where org_id = %s)").format(
            tables[name].identifier
        )
        if connection.execute(statement, [org]).fetchone() == (True,):
            raise CommandError(f"the org has rows in rag.{name}; import into an empty org, or erase it first")


def _create_org(connection: psycopg.Connection[Any], manifest: Manifest, org: str, tier: str | None) -> str:
    """The org's tier. An org that exists keeps its own."""
    added = connection.execute(
        "insert into rag.orgs (id, name, record_days, tier) "
        "select %s, %s, %s, name from rag.tiers where name = %s "
        "on conflict (id) do nothing",
        [org, one_line(manifest.org.name), manifest.org.record_days, tier or "standard"],
    )
    row = connection.execute("select tier from rag.orgs where id = %s", [org]).fetchone()
    if row is None:
        raise CommandError(f"there is no tier {tier or 'standard'}; name another with --tier")
    if tier and not added.rowcount:
        raise CommandError(f"the org exists, with the tier {row[0]}; import without --tier")
    return str(row[0])


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
    number = 0
    while batch := list(islice(lines, ROWS)):
        try:
            with connection.cursor() as cursor, cursor.copy(statement) as copy:
                for row in batch:
                    copy.write(b"\t".join((org.encode(), *table.fields(row, ids))))
        except psycopg.Error as error:
            line = LINE.search(error.diag.context or "")
            place = (
                f"line {number + int(line[1])}" if line else f"lines {number + 1} to {number + len(batch)}"
            )
            raise CommandError(f"{table.name}.copy, {place}: {reason_of(error)[:500]}") from None
        number += len(batch)
