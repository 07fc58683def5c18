"""Archive of an org's data: a ZIP file with a manifest and, for each table, rows in COPY's text format.

Ids are numbers in the form of a UUID: 0 is the org, those of rows have their place in the order of all ids,
those of users their place in the manifest. So two archives of equal data are equal, whatever the ids of their
deployments.
"""

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import Annotated, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from typing_extensions import TypedDict

from local.errors import CommandError
from local.operations.folder_scan import one_line
from local.operations.org_data.tables import EXPORTED, UUID

FORMAT = 1
MANIFEST = "manifest.json"
ORG = b"00000000-0000-0000-0000-000000000000"
# Bytes of a manifest and of a line. The longest lines have a document's text or an original file.
MAX_MANIFEST = 1 << 24
MAX_LINE = 1 << 24
MAX_LINES = {"documents": 1 << 28, "originals": 1 << 28}
# Bytes of all unpacked files: this many, or this many times those of the archive.
MAX_UNPACKED = 1 << 30
MAX_RATIO = 100
ENCRYPTED = 0x1
# zipfile's errors for damaged, encrypted and unknown contents.
DAMAGES = (BadZipFile, EOFError, KeyError, NotImplementedError, OSError, RuntimeError, ValueError, zlib.error)

Text = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")]
Id = Annotated[str, StringConstraints(pattern=f"^{UUID.pattern.decode()}$")]
Count = Annotated[int, Field(ge=0, lt=1 << 40)]


def row_id(place: int) -> bytes:
    return b"00000000-0000-0000-0001-%012x" % place


def user_id(place: int) -> bytes:
    return b"00000000-0000-0000-0002-%012x" % place


class TableEntry(TypedDict):
    """The number of a table's rows, and the digest of them."""

    columns: list[Text]
    rows: Count
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


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
    def entry(self) -> TableEntry:
        """The table's entry of the manifest."""
        return {"columns": self.columns, "rows": self.rows, "sha256": f"{self.total:064x}"}


class Entry(BaseModel):
    """A part of the manifest."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Org(Entry):
    """`tier`: that of the source deployment."""

    name: Annotated[Text, StringConstraints(min_length=1, max_length=200)]
    tier: Text
    record_days: Annotated[int, Field(ge=1, le=3650)] | None


class User(Entry):
    """A user that rows name. `email` is null for a deleted user. `id` is that of the source deployment."""

    id: Id
    email: Text | None
    owns_rows: bool


class Member(Entry):
    """`user`: the place in the manifest's users."""

    user: Count
    role: Annotated[str, StringConstraints(pattern="^(admin|member)$")]
    name: Annotated[Text, StringConstraints(min_length=1, max_length=200)] | None


class Key(Entry):
    """An API key without its hash."""

    name: Text
    prefix: Text
    scopes: list[Text]
    expires_at: Text | None
    collection: Text | None
    owner: Text | None


class Webhook(Entry):
    """A webhook without its secret."""

    url: Text
    description: Text | None
    events: list[Text]
    enabled: bool
    collection: Text | None


class Source(Entry):
    """A source without its credentials."""

    kind: Text
    address: Text
    endpoint: Text | None
    region: Text | None
    interval_seconds: Count
    max_items: Count
    collection: Text


class Manifest(Entry):
    """Contents of an archive. It lists keys, webhooks and sources without their secrets: they are set up
    again. `models`: the dimensions of the embeddings, by model."""

    org: Org
    users: list[User]
    members: list[Member]
    models: dict[Text, Annotated[int, Field(ge=256, le=3072)]]
    keys: list[Key]
    webhooks: list[Webhook]
    sources: list[Source]
    files_in_storage: Count
    row_ids: Count
    tables: dict[str, TableEntry] = {}
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """SHA-256 of the tables' digests: equal for equal data, whatever the ids."""
        return sha256(json.dumps(self.tables, sort_keys=True).encode()).hexdigest()


def write_table(archive: ZipFile, name: str, columns: list[str], rows: Iterable[bytes]) -> TableEntry:
    """Returns the table's entry of the manifest."""
    digest = TableDigest(columns)
    with archive.open(f"{name}.copy", "w", force_zip64=True) as file:
        for row in rows:
            digest.add(row)
            file.write(row)
    return digest.entry


def write_manifest(archive: ZipFile, manifest: Manifest) -> None:
    archive.writestr(MANIFEST, json.dumps({**manifest.model_dump(), "digest": manifest.digest}, indent=1))


def open_archive(path: Path) -> ZipFile:
    """Raises CommandError, also for a file with other contents than export writes."""
    try:
        archive = ZipFile(path)
        _require_contents(archive.infolist(), path.stat().st_size)
    except DAMAGES as error:
        raise CommandError(f"{path} cannot be read as an archive: {one_line(str(error))}") from None
    return archive


def create_archive(path: Path) -> ZipFile:
    """Raises CommandError, also for a file that exists."""
    try:
        return ZipFile(path, "x", ZIP_DEFLATED, compresslevel=1)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


def read_manifest(archive: ZipFile) -> Manifest:
    """Raises CommandError for a damaged manifest, and for one of another format."""
    try:
        with archive.open(MANIFEST) as file:
            content = file.read(MAX_MANIFEST + 1)
        if len(content) > MAX_MANIFEST:
            raise CommandError(f"{MANIFEST} has more than {MAX_MANIFEST >> 20} MB")
        values = json.loads(content)
        if values.get("format") != FORMAT:
            raise CommandError("another release wrote this archive; import it with that release")
        digest = values.pop("digest")
        manifest = Manifest.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = one_line(".".join(map(str, fault["loc"])))[:200]
        raise CommandError(": ".join(filter(None, (MANIFEST, place, fault["msg"])))) from None
    except CommandError:
        raise
    except (*DAMAGES, AttributeError, TypeError):
        raise CommandError("the archive has no valid manifest") from None
    if digest != manifest.digest:
        raise CommandError("the manifest does not have the digest that it states")
    if any(member.user >= len(manifest.users) for member in manifest.members):
        raise CommandError(f"{MANIFEST}: members: a member is none of the users")
    return manifest


def read_table(archive: ZipFile, name: str) -> Iterator[bytes]:
    """Rows of COPY's text format, in which a line is a row. Raises CommandError."""
    maximum = MAX_LINES.get(name, MAX_LINE)
    number = 0
    try:
        with archive.open(f"{name}.copy") as file:
            lines = BufferedReader(cast("BufferedReader", file), 1 << 20)
            while line := lines.readline(maximum + 1):
                number += 1
                if len(line) > maximum:
                    raise CommandError(f"{name}.copy, line {number}: it has more than {maximum >> 20} MB")
                if not line.endswith(b"\n"):
                    raise CommandError(f"{name}.copy, line {number}: it does not end")
                yield line
    except CommandError:
        raise
    except DAMAGES:
        raise CommandError(f"{name}.copy, after line {number}: the archive is damaged") from None


def _require_contents(entries: list[ZipInfo], size: int) -> None:
    """Raises BadZipFile. Sizes of ZIP files are stated before their contents; zipfile reads no more."""
    if sorted(entry.filename for entry in entries) != sorted(
        [MANIFEST, *(f"{name}.copy" for name in EXPORTED)]
    ):
        raise BadZipFile("it does not have the files that export writes in this release")
    if any(
        entry.flag_bits & ENCRYPTED or entry.compress_type not in (ZIP_DEFLATED, ZIP_STORED)
        for entry in entries
    ):
        raise BadZipFile("a file in it is encrypted, or packed by another method than export's")
    if sum(entry.compress_size for entry in entries) > size:
        raise BadZipFile("files in it overlap")
    if sum(entry.file_size for entry in entries) > max(MAX_UNPACKED, MAX_RATIO * size):
        raise BadZipFile(f"unpacked, it would be more than {MAX_RATIO} times as large")
