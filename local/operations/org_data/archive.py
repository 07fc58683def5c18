"""Archive of an org's data: a ZIP file with a manifest and, for each table, rows in COPY's text format.

Ids are numbers in the form of a UUID: 0 is the org, those of rows have their place in the order of all ids,
those of users their place in the manifest. So two archives of equal data are equal, whatever the ids of their
deployments.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from local.errors import CommandError

FORMAT = 1
MANIFEST = "manifest.json"
ORG = b"00000000-0000-0000-0000-000000000000"


def row_id(place: int) -> bytes:
    return b"00000000-0000-0000-0001-%012x" % place


def user_id(place: int) -> bytes:
    return b"00000000-0000-0000-0002-%012x" % place


@dataclass(frozen=True)
class User:
    """A user that rows name. `email` is null for a deleted user. `id` is that of the source deployment."""

    id: str
    email: str | None
    owns_rows: bool


@dataclass
class TableDigest:
    """The sum of the SHA-256 of each row, modulo 2^256: rows may come in any order."""

    columns: list[str]
    rows: int = 0
    total: int = 0

    def add(self, row: bytes) -> None:
        self.rows += 1
        self.total = (self.total + int.from_bytes(sha256(row).digest())) % (1 << 256)

    @property
    def entry(self) -> dict[str, Any]:
        """The table's entry of the manifest."""
        return {"columns": self.columns, "rows": self.rows, "sha256": f"{self.total:064x}"}


@dataclass
class Manifest:
    """Contents of an archive. It lists keys, webhooks and sources without their secrets: they are set up
    again. `models`: the dimensions of the embeddings, by model."""

    org: dict[str, Any]
    users: list[User]
    members: list[dict[str, Any]]
    models: dict[str, int]
    keys: list[dict[str, Any]]
    webhooks: list[dict[str, Any]]
    sources: list[dict[str, Any]]
    files_in_storage: int
    row_ids: int
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """SHA-256 of the tables' digests: equal for equal data, whatever the ids."""
        return sha256(json.dumps(self.tables, sort_keys=True).encode()).hexdigest()


def write_table(archive: ZipFile, name: str, columns: list[str], rows: Iterable[bytes]) -> dict[str, Any]:
    """Returns the table's entry of the manifest."""
    digest = TableDigest(columns)
    with archive.open(f"{name}.copy", "w", force_zip64=True) as file:
        for row in rows:
            digest.add(row)
            file.write(row)
    return digest.entry


def write_manifest(archive: ZipFile, manifest: Manifest) -> None:
    archive.writestr(MANIFEST, json.dumps({**asdict(manifest), "digest": manifest.digest}, indent=1))


def open_archive(path: Path) -> ZipFile:
    """Raises CommandError."""
    try:
        return ZipFile(path)
    except (OSError, BadZipFile) as error:
        raise CommandError(f"{path} cannot be read as an archive: {error}") from None


def create_archive(path: Path) -> ZipFile:
    """Raises CommandError, also for a file that exists."""
    try:
        return ZipFile(path, "x", ZIP_DEFLATED, compresslevel=1)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


def read_manifest(archive: ZipFile) -> Manifest:
    """Raises CommandError for a damaged manifest, and for one of another format."""
    try:
        values = json.loads(archive.read(MANIFEST))
        if values.get("format") != FORMAT:
            raise CommandError("another release wrote this archive; import it with that release")
        digest = values.pop("digest")
        manifest = Manifest(**{**values, "users": [User(**user) for user in values["users"]]})
    except (KeyError, TypeError, ValueError, AttributeError, BadZipFile):
        raise CommandError("the archive has no valid manifest") from None
    if digest != manifest.digest:
        raise CommandError("the manifest does not have the digest that it states")
    return manifest


def read_table(archive: ZipFile, name: str) -> Iterator[bytes]:
    """Rows of COPY's text format, in which a line is a row."""
    try:
        with archive.open(f"{name}.copy") as file:
            yield from file
    except (KeyError, BadZipFile, EOFError):
        raise CommandError(f"the archive's table {name} is damaged") from None
