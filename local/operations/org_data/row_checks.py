"""Checks of an archive's rows, before any of them is stored."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from zipfile import ZipFile

from local.errors import CommandError
from local.operations.org_data.archive import Manifest, TableDigest, read_table, row_id, user_id
from local.operations.org_data.tables import EXPORTED, USER_COLUMNS, UUID, WITH_IDS, Table

# A field as COPY writes it. COPY would also read a row's end in a carriage return, and a field that goes on
# after a backslash, and so a row that begins with another org's id.
FIELD = re.compile(rb"\\N|(?:[^\\\x00\x08-\x0d]|\\[bfnrtv\\])*+")
NULL = rb"\N"
ESCAPE = re.compile(rb"\\(.)")
ESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b"\\": b"\\"}
NUMBER = rb"-?\d++(?:\.\d++)?+(?:e[+-]\d{1,3})?+"
PATTERNS = {
    "text": rb"(?s:.*)",
    "text[]": rb"(?s:\{.*\})",
    "boolean": rb"[tf]",
    "integer": rb"\d{1,10}",
    "bigint": rb"\d{1,19}",
    "real": NUMBER,
    "double precision": NUMBER,
    "date": rb"\d{4}-\d\d-\d\d",
    "timestamp with time zone": rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00",
    "bytea": rb"\\\\x(?:[0-9a-f]{2})*+",
    "halfvec": rb"\[" + NUMBER + rb"(?:," + NUMBER + rb")*+\]",
}
BITS = {"integer": 31, "bigint": 63}
# They belong to the source deployment, as the path of a file in its Storage.
ABSENT = {
    ("jobs", "lease"),
    ("jobs", "passages_hash"),
    ("jobs", "embeddings"),
    ("originals", "path"),
    ("request_records", "key_id"),
}
# They may name rows that were deleted.
UNBOUND = {
    ("audit_events", "collection_id"),
    ("jobs", "collection_id"),
    ("request_records", "collection_id"),
    ("request_records", "document_ids"),
}
NUMBERED = b"00000000-0000-0000-"
# As rag.is_readable: levels, and digits on each side of the point.
MAX_LEVEL = 35
MAX_DIGITS = 300


def check_rows(archive: ZipFile, manifest: Manifest, tables: Mapping[str, Table]) -> None:
    """Raises CommandError for rows that export does not write: with other values or unknown ids, or with
    another number or digest than the manifest states."""
    if manifest.row_ids != sum(manifest.tables[name]["rows"] for name in WITH_IDS):
        raise CommandError("manifest.json: row_ids: it is not the number of the rows with ids")
    for name in EXPORTED:
        digest = TableDigest(tables[name].columns)
        check = RowCheck(tables[name], manifest)
        for number, row in enumerate(read_table(archive, name), start=1):
            if number > manifest.tables[name]["rows"]:
                raise CommandError(f"{name}.copy, line {number}: the manifest states fewer rows")
            if fault := check.fault(row):
                raise CommandError(f"{name}.copy, line {number}: {fault}")
            digest.add(row)
        if digest.entry != manifest.tables[name]:
            raise CommandError(f"{name}.copy, after line {digest.rows}: the manifest states other rows")


class RowCheck:
    """A check of the rows of one table."""

    def __init__(self, table: Table, manifest: Manifest) -> None:
        self._table, self._manifest = table, manifest
        self._owners = {user_id(place): user.owns_rows for place, user in enumerate(manifest.users)}
        self._columns = [(column, self._check_of(column)) for column in table.columns]

    def fault(self, row: bytes) -> str | None:
        """The fault of the row, or None without one."""
        fields = row.removesuffix(b"\n").split(b"\t")
        if len(fields) != len(self._columns):
            return f"it has {len(fields)} fields, not {len(self._columns)}"
        try:
            row.decode()
        except UnicodeDecodeError:
            return "it is no UTF-8"
        for field, (column, is_valid) in zip(fields, self._columns, strict=True):
            if not FIELD.fullmatch(field):
                return f"{column} is not written as COPY writes it"
            if field != NULL and not is_valid(field):
                return f"{column} has no value that export writes"
        return None

    def _check_of(self, column: str) -> Callable[[bytes], bool]:
        if (self._table.name, column) in ABSENT:
            return lambda field: False
        # The schema of an extension's type precedes it, unless it is in the search path.
        type_name = self._table.types[column].rpartition(".")[2]
        if type_name in ("uuid", "uuid[]"):
            return self._ids_check(column, is_list=type_name == "uuid[]")
        if type_name == "jsonb":
            return is_json
        pattern = re.compile(PATTERNS[type_name])
        if bits := BITS.get(type_name):
            return lambda field: bool(pattern.fullmatch(field)) and int(field) < 1 << bits
        return lambda field: bool(pattern.fullmatch(field))

    def _ids_check(self, column: str, *, is_list: bool) -> Callable[[bytes], bool]:
        if column == "owner_id":
            return lambda field: self._owners.get(field, False)
        if column in USER_COLUMNS:
            return lambda field: field in self._owners
        is_known = self._is_row
        if (self._table.name, column) in UNBOUND:
            is_known = self._is_row_or_unbound
        if is_list:
            return lambda field: (
                field == b"{}"
                or (field[:1] + field[-1:] == b"{}" and all(map(is_known, field[1:-1].split(b","))))
            )
        return is_known

    def _is_row(self, field: bytes) -> bool:
        place = field[-12:]
        return (
            bool(UUID.fullmatch(field))
            and int(place, 16) < self._manifest.row_ids
            and (field == row_id(int(place, 16)))
        )

    def _is_row_or_unbound(self, field: bytes) -> bool:
        if field.startswith(NUMBERED):
            return self._is_row(field)
        return bool(UUID.fullmatch(field))


def is_json(field: bytes) -> bool:
    """Whether Postgres can read the field as JSON, and clients what it then writes."""
    text = ESCAPE.sub(lambda match: ESCAPED[match[1]], field).decode()
    try:
        value = json.loads(
            text, parse_int=_number, parse_float=_number, parse_constant=_number, object_pairs_hook=_pairs
        )
        return _is_readable(value, MAX_LEVEL)
    except (ValueError, RecursionError):
        return False


def _pairs(pairs: Collection[tuple[str, object]]) -> list[object]:
    return [part for pair in pairs for part in pair]


def _number(text: str) -> None:
    whole, _, decimals = text.lstrip("-").partition(".")
    if len(whole) > MAX_DIGITS or len(decimals) > MAX_DIGITS or not f"{whole}{decimals}".isdecimal():
        raise ValueError(text)


def _is_readable(value: object, levels: int) -> bool:
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, list):
        return (not value or levels > 0) and all(_is_readable(part, levels - 1) for part in value)
    return True
