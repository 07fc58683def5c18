"""Catalogue of a database, compared with that of the release.

catalogue.json has the objects that sql/ creates (`make generated`). exposure.sql, settings.sql and
own_functions.sql find faults beyond these objects. All only read.
"""

import json
from pathlib import Path
from typing import Any

import psycopg

from verify.target_deployment import Finding, SetupFailed
from verify.temporary_rows import BUCKET

FOLDER = Path(__file__).parent
RELEASE = FOLDER / "catalogue.json"
# How the names of Storage's objects in the catalogue end.
STORAGE = ("storage.objects", "storage.buckets")
# The functions that an adopter may replace (docs/own-members.md).
MEMBERSHIPS = (
    "function rag.memberships()",
    "function rag.org_members(uuid[])",
    "function rag.group_memberships()",
)

Objects = dict[str, dict[str, Any]]


def read_objects(connection: psycopg.Connection[Any]) -> Objects:
    """The properties of each object of the schema, by the object's name."""
    with connection.transaction():
        connection.execute(
            "set local search_path = ''; set local timezone = 'UTC'; set local datestyle = 'ISO';"
            "set local jit = off"
        )
        return dict(connection.execute((FOLDER / "catalogue.sql").read_bytes()).fetchall())


def catalogue_findings(
    connection: psycopg.Connection[Any], *, own_memberships: bool = False
) -> list[Finding]:
    """Differences from the release, and faults beyond it. `own_memberships`: rag.memberships() and
    rag.org_members() are the adopter's."""
    release: Objects = json.loads(RELEASE.read_text())["objects"]
    actual = read_objects(connection)
    if own_memberships:
        for name in MEMBERSHIPS:
            release.pop(name)
            actual.pop(name, None)
    bucket = _bucket(connection)
    if bucket is None:
        # Without a bucket nothing is stored in Storage, and the migration creates no policies for it.
        release, actual = (
            {name: entry for name, entry in objects.items() if not name.endswith(STORAGE)}
            for objects in (release, actual)
        )
    findings = [
        finding
        for name in sorted(release.keys() | actual.keys())
        for finding in _differences(name, release.get(name), actual.get(name))
    ]
    if bucket:
        findings.append(Finding(f"bucket {BUCKET}", "public", "everyone reads its objects without a token"))
    for name in ("exposure.sql", "settings.sql"):
        findings += [Finding(*row) for row in _rows(connection, name)]
    return findings + [finding for finding, differs in own_functions(connection) if differs]


def functions_to_read(connection: psycopg.Connection[Any]) -> list[Finding]:
    """The adopter's security definer functions that run past row security, and are no difference."""
    return [finding for finding, differs in own_functions(connection) if not differs]


def own_functions(connection: psycopg.Connection[Any]) -> list[tuple[Finding, bool]]:
    """The adopter's functions by which a caller may pass row security, and whether each is a difference."""
    return [(Finding(*row), differs) for *row, differs in _rows(connection, "own_functions.sql")]


def _rows(connection: psycopg.Connection[Any], name: str) -> list[tuple[Any, ...]]:
    with connection.transaction():
        # Compilation of own_functions.sql takes 140 times as long as its execution.
        connection.execute("set local search_path = ''; set local jit = off")
        return connection.execute((FOLDER / name).read_bytes()).fetchall()


def require_release(connection: psycopg.Connection[Any]) -> str:
    """The release of the database's schema. Raises SetupFailed if there is none, or another one than this
    code's."""
    release = release_version()
    row = connection.execute("select to_regproc('rag.version') is not null").fetchone()
    if row is None or not row[0]:
        raise SetupFailed(
            "The database has no schema of Citerow. Apply the migrations first (docs/install.md)."
        )
    (version,) = connection.execute("select rag.version()").fetchone() or ("",)
    if version != release:
        raise SetupFailed(
            f"The database has the release {version} and this copy of verify is of {release}. "
            "Use the copy of the database's release, or migrate the database."
        )
    return release


def release_version() -> str:
    return str(json.loads(RELEASE.read_text())["release"])


def write(connection: psycopg.Connection[Any]) -> None:
    """Store the catalogue of that database, which sql/ made, as the release's: one line for each object."""
    (version,) = connection.execute("select rag.version()").fetchone() or ("",)
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(properties, sort_keys=True)}"
        for name, properties in read_objects(connection).items()
    )
    RELEASE.write_text(f'{{"release": {json.dumps(version)}, "objects": {{\n{lines}\n}}}}\n')


def _differences(name: str, release: dict[str, Any] | None, actual: dict[str, Any] | None) -> list[Finding]:
    if actual is None:
        return [Finding(name, "existence", "it is missing")]
    if release is None:
        return [Finding(name, "existence", f"the release has no such object: {json.dumps(actual)[:300]}")]
    return [
        Finding(
            name, key, f"it is {json.dumps(actual.get(key))}, in the release {json.dumps(release.get(key))}"
        )
        for key in sorted(release.keys() | actual.keys())
        if actual.get(key) != release.get(key)
    ]


def _bucket(connection: psycopg.Connection[Any]) -> bool | None:
    """Whether the bucket of originals is public; None without one."""
    row = connection.execute("select to_regclass('storage.buckets') is not null").fetchone()
    if row is None or not row[0]:
        return None
    row = connection.execute("select public from storage.buckets where id = %s", [BUCKET]).fetchone()
    return bool(row[0]) if row else None
