"""Import of archives that export did not write: each is refused in a sentence, and nothing is stored."""

import json
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import psycopg
import pytest

from local.errors import CommandError
from local.operations.org_data import archive as archive_module
from local.operations.org_data.archive import TableDigest, open_archive, row_id, user_id
from local.operations.org_data.import_command import Imported, import_org
from local.operations.org_data.row_checks import ABSENT, PATTERNS
from local.operations.org_data.tables import EXPORTED, WITH_IDS, open_session, tables_of
from local.stack import Stack
from tests.local.command_line import run_local
from tests.local.operations.org_data.test_archive import exported, victim_org
from verify.actors import Actors

Rows = list[list[bytes]]


@dataclass
class Archive:
    """Contents of an archive, which a test changes. `write` states digests that fit them."""

    manifest: dict[str, Any]
    tables: dict[str, Rows]
    others: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Archive":
        with ZipFile(path) as file:
            tables = {
                name: [line.split(b"\t") for line in file.read(f"{name}.copy").splitlines()]
                for name in EXPORTED
            }
            return cls(json.loads(file.read("manifest.json")), tables)

    def place(self, table: str, column: str) -> int:
        place: int = self.manifest["tables"][table]["columns"].index(column)
        return place

    def set(self, table: str, column: str, value: bytes, row: int = 0) -> None:
        self.tables[table][row][self.place(table, column)] = value

    def write(self, path: Path, compression: int = ZIP_DEFLATED) -> Path:
        with ZipFile(path, "w", compression) as file:
            for name, rows in self.tables.items():
                digest = TableDigest(self.manifest["tables"][name]["columns"])
                lines = [b"\t".join(row) + b"\n" for row in rows]
                for line in lines:
                    digest.add(line)
                self.manifest["tables"][name] = digest.entry
                file.writestr(f"{name}.copy", b"".join(lines))
            entries = {name: self.manifest["tables"][name] for name in self.manifest["tables"]}
            digest_of_all = sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
            file.writestr("manifest.json", json.dumps({**self.manifest, "digest": digest_of_all}))
            for name, content in self.others.items():
                with warnings.catch_warnings():
                    # zipfile warns of a second file of the same name.
                    warnings.simplefilter("ignore")
                    file.writestr(name, content)
        return path


@pytest.fixture(scope="module")
def org(stack: Stack) -> Iterator[Actors]:
    with victim_org(stack) as actors:
        yield actors


@pytest.fixture(scope="module")
def written(stack: Stack, org: Actors, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "org.zip"
    exported(stack.database_url(), org.org_id, path)
    return path


@pytest.fixture
def hostile(written: Path) -> Archive:
    return Archive.read(written)


@pytest.fixture
def database(stack: Stack) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that is rolled back."""
    with psycopg.connect(stack.database_url()) as connection:
        open_session(connection)
        yield connection
        connection.rollback()


@pytest.fixture
def imported(database: psycopg.Connection[Any], tmp_path: Path) -> Callable[..., Imported]:
    def run(hostile: Archive, org: str | None = None, **options: Any) -> Imported:
        with open_archive(hostile.write(tmp_path / f"{uuid4()}.zip")) as archive:
            return import_org(database, archive, org or str(uuid4()), {}, **options)

    return run


@pytest.fixture
def refusal(database: psycopg.Connection[Any], imported: Callable[..., Imported]) -> Callable[..., str]:
    def run(hostile: Archive, **options: Any) -> str:
        with pytest.raises(CommandError) as refused:
            imported(hostile, **options)
        database.rollback()
        return str(refused.value)

    return run


USER = user_id(0)
STRANGER = b"5e0f7a52-1f6b-4b1e-9d3c-0c8d3f1a2b3c"
LONG = b"9" * 40
VALUES = [
    # What ends a row in COPY, a field that goes on, and an id that the replacement of ids does not see.
    ("documents", "title", b"a\r" + STRANGER), ("documents", "title", b"a\\"),
    ("documents", "created_by", b"\\060" + USER[1:]), ("documents", "title", b"a\\x1b"),
    ("documents", "title", b"a\0b"), ("documents", "title", b"\xff\xfe"),
    # Rows of another org, and of users that the archive does not list.
    ("documents", "id", STRANGER), ("documents", "collection_id", STRANGER.upper()),
    ("documents", "created_by", STRANGER), ("documents", "created_by", row_id(0)),
    ("documents", "id", row_id(1 << 40)), ("request_records", "document_ids", b"{" + row_id(1 << 40) + b"}"),
    ("jobs", "lease", STRANGER), ("originals", "path", b"org/collection/user/part/name"),
    # Numbers and times.
    ("jobs", "attempts", LONG), ("documents", "size_bytes", b"9223372036854775808"),
    ("audit_events", "top_score", b"NaN"), ("documents", "created_at", b"infinity"),
    ("chunks", "embedding", b"[NaN,Infinity]"),
    # JSON that is no JSON, or that readers cannot parse.
    ("documents", "metadata", b"{"), ("documents", "metadata", b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}"),
    ("documents", "metadata", b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("documents", "metadata", b'{"a": 1e131071}'), ("documents", "metadata", b'{"a": "\\\\u0000"}'),
    ("documents", "metadata", b'{"a": "\\\\ud800"}'),
]  # fmt: skip


@pytest.mark.parametrize(("table", "column", "value"), VALUES, ids=[f"{v[1]}={v[2][:30]!r}" for v in VALUES])
def test_a_value_that_export_does_not_write_is_named_with_its_line(
    hostile: Archive, refusal: Callable[..., str], table: str, column: str, value: bytes
):
    row = len(hostile.tables[table]) - 1
    hostile.set(table, column, value, row)
    message = refusal(hostile)
    assert message.startswith(f"{table}.copy, line {row + 1}: "), message
    assert column in message or "UTF-8" in message
    assert STRANGER.decode() not in message


def test_what_a_table_refuses_is_named_with_its_line(hostile: Archive, refusal: Callable[..., str]):
    hostile.set("documents", "title", b"a \x1b[31m title")
    assert re.match(r"documents\.copy, line 1: .*documents_title_check", refusal(hostile))
    hostile.set("documents", "title", b"A title")
    hostile.tables["documents"].append(hostile.tables["documents"][0])
    hostile.manifest["row_ids"] += 1
    assert re.match(r"documents\.copy, line \d+: duplicate key", refusal(hostile))


def test_rows_that_no_function_writes_are_refused(hostile: Archive, refusal: Callable[..., str]):
    private = next(
        number
        for number, row in enumerate(hostile.tables["chunks"])
        if row[hostile.place("chunks", "owner_id")] != b"\\N"
    )
    owner = hostile.tables["chunks"][private][hostile.place("chunks", "owner_id")]
    hostile.set("chunks", "owner_id", b"\\N", private)
    assert "a row of chunks has another collection or owner than its document" in refusal(hostile)
    hostile.set("chunks", "owner_id", owner, private)

    model = hostile.tables["chunks"][0][hostile.place("chunks", "embedding_model")]
    hostile.set("chunks", "embedding_model", b"another")
    assert "another model" in refusal(hostile)
    hostile.set("chunks", "embedding_model", model)

    hostile.set("chunks", "embedding", b"[1" + b",0" * 299 + b"]")
    assert "other dimensions" in refusal(hostile)


def test_a_session_with_uncounted_messages_is_refused(hostile: Archive, refusal: Callable[..., str]):
    for row in range(len(hostile.tables["sessions"])):
        hostile.set("sessions", "message_count", b"0", row)
    assert "more messages than it counts" in refusal(hostile)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["org", "name"], "a" * 201), (["org", "record_days"], 10**30), (["org", "record_days"], "30"),
        (["org", "is_admin"], True), (["users", 0, "id"], "\x1b[31m"), (["members", 0, "role"], "owner"),
        (["members", 0, "user"], 1000), (["models"], {"m": "1); drop table rag.orgs; --"}),
        (["keys", 0, "scopes"], "admin"), (["sources", 0, "max_items"], 1e308), (["row_ids"], 10**12),
        (["row_ids"], 0),
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_of_the_manifest_is_named(
    hostile: Archive, refusal: Callable[..., str], path: list[str | int], value: object
):
    part: Any = hostile.manifest
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    message = refusal(hostile)
    assert message.startswith("manifest.json: "), message
    assert str(path[0]) in message
    assert "\x1b" not in message


def test_a_deep_or_endless_manifest_is_refused(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refused(content: bytes) -> str:
        path = tmp_path / f"{uuid4()}.zip"
        with ZipFile(path, "w") as file:
            file.writestr("manifest.json", content)
            for name in EXPORTED:
                file.writestr(f"{name}.copy", b"")
        with open_archive(path) as archive, pytest.raises(CommandError) as error:
            archive_module.read_manifest(archive)
        return str(error.value)

    assert refused(b"[" * 1_000_000) == "the archive has no valid manifest"
    assert refused(b"\xff\xfe") == "the archive has no valid manifest"
    assert refused(b'{"format": ' + b"9" * 10_000 + b"}") == "the archive has no valid manifest"
    assert "Invalid JSON" in refused(b'{"format": 1, "digest": "", "org": "\\ud800"}')
    monkeypatch.setattr(archive_module, "MAX_MANIFEST", 1 << 20)
    assert "more than 1 MB" in refused(b" " * (2 << 20))


def test_a_line_without_end_is_refused(
    hostile: Archive, refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(archive_module, "MAX_LINES", {"documents": 1 << 20})
    hostile.set("documents", "content", b"a" * (2 << 20))
    assert refusal(hostile) == "documents.copy, line 1: it has more than 1 MB"


@pytest.mark.parametrize("name", ["../../etc/cron.d/job", "postings.copy", "manifest.json", "documents.copy"])
def test_another_file_in_the_archive_is_refused(hostile: Archive, refusal: Callable[..., str], name: str):
    hostile.others[name] = b"{}"
    assert "does not have the files that export writes" in refusal(hostile)


def test_bombs_are_refused_before_they_are_unpacked(
    hostile: Archive, refusal: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(CommandError, match="another method"):
        open_archive(hostile.write(tmp_path / "bzip2.zip", ZIP_BZIP2))
    monkeypatch.setattr(archive_module, "MAX_UNPACKED", 1 << 20)
    hostile.set("documents", "content", b"a" * (200 << 20))
    assert "more than 100 times as large" in refusal(hostile)


def test_damaged_bytes_are_named_with_their_place(written: Path, tmp_path: Path, stack: Stack):
    content = bytearray(written.read_bytes())
    with ZipFile(written) as archive:
        entry = archive.getinfo("chunks.copy")
    start = entry.header_offset + 200
    content[start : start + 50] = b"\xff" * 50
    (tmp_path / "damaged.zip").write_bytes(content)
    result = run_local(stack.folder, "import", tmp_path / "damaged.zip")
    assert re.fullmatch(r"error: chunks\.copy, .*\n", result.stderr)


def test_the_tier_is_the_operators(
    hostile: Archive,
    imported: Callable[..., Imported],
    refusal: Callable[..., str],
    database: psycopg.Connection[Any],
):
    hostile.manifest["org"]["tier"] = "professional"
    target = str(uuid4())
    for tier, stored in ((None, "standard"), ("free", "free")):
        assert imported(hostile, target, tier=tier).tier == stored
        tiers = database.execute("select tier from rag.orgs where id = %s", [target]).fetchall()
        assert tiers == [(stored,)]
        database.rollback()
    assert refusal(hostile, tier="none") == "there is no tier none; name another with --tier"


def test_members_are_added_on_demand_and_keep_their_roles(
    hostile: Archive, imported: Callable[..., Imported], database: psycopg.Connection[Any], org: Actors
):
    def roles(target: str) -> dict[str, str]:
        return dict(
            database.execute(
                "select user_id::text, role from rag.members where org_id = %s", [target]
            ).fetchall()
        )

    for member in hostile.manifest["members"]:
        member["role"] = "admin"
    hostile.manifest["users"].append(
        {"id": str(uuid4()), "email": "\x1b]0;nobody\x07@example.com", "owns_rows": False}
    )
    hostile.manifest["members"].append(
        {"user": len(hostile.manifest["users"]) - 1, "role": "admin", "name": "Nobody"}
    )
    target = str(uuid4())
    database.execute("insert into rag.orgs (id, name) values (%s, 'Present')", [target])
    database.execute("insert into rag.members values (%s, %s, 'member')", [target, org.member.id])
    assert roles(target) == {org.member.id: "member"}
    with database.transaction(force_rollback=True):
        states = [state for _, state in imported(hostile, target).members]
        assert roles(target) == {org.member.id: "member"}
        assert "is here already, as member" in states
        assert "not added; a user here, whom --members adds" in states
    result = imported(hostile, target, with_members=True)
    assert roles(target)[org.member.id] == "member"
    assert roles(target)[org.admin.id] == "admin"
    assert result.members[-1][1] == "not added, because there is no such user here"


def test_a_user_of_another_address_here_is_not_taken(
    hostile: Archive, refusal: Callable[..., str], org: Actors
):
    hostile.manifest["users"].append({"id": org.admin.id, "email": None, "owns_rows": False})
    assert "two users of the archive would be one" in refusal(hostile)
    stranger = hostile.manifest["users"][-1] = {
        "id": org.database.execute(
            "select id::text from auth.users where email <> all (%s) limit 1",
            [[user["email"] or "" for user in hostile.manifest["users"]]],
        ).fetchone()[0],  # type: ignore[index]
        "email": None,
        "owns_rows": False,
    }
    assert f"names the user {stranger['id']} by another address" in refusal(hostile)


def test_records_expire_with_the_orgs_retention(
    hostile: Archive, imported: Callable[..., Imported], database: psycopg.Connection[Any]
):
    query = (
        "select count(*), max(expires_at) <= now() + interval '30 days' from rag.request_records "
        "where org_id = %s"
    )
    for row in range(len(hostile.tables["request_records"])):
        hostile.set("request_records", "expires_at", b"9998-01-01 00:00:00+00", row)
    hostile.manifest["org"]["record_days"] = 30
    target = str(uuid4())
    imported(hostile, target)
    count = len(hostile.tables["request_records"])
    assert database.execute(query.encode(), [target]).fetchone() == (count, True)
    database.rollback()
    # An org that records nothing.
    database.execute("insert into rag.orgs (id, name) values (%s, 'Present')", [target])
    imported(hostile, target)
    assert database.execute(query.encode(), [target]).fetchone() == (0, None)


def test_the_report_has_no_control_characters(stack: Stack, org: Actors, hostile: Archive, tmp_path: Path):
    escape = "\x1b]0;title\x07\nline\u202e"
    hostile.manifest["org"] |= {"name": f"Org{escape}", "tier": f"tier{escape}"}
    hostile.manifest["members"][0]["name"] = f"Name{escape}"
    hostile.manifest["keys"][0] |= {"name": f"Key{escape}", "scopes": [escape]}
    hostile.manifest["webhooks"][0]["url"] = f"https://127.0.0.1/{escape}"
    hostile.manifest["sources"][0]["address"] = f"http://169.254.169.254/{escape}"
    target = str(uuid4())
    try:
        result = run_local(
            stack.folder, "import", hostile.write(tmp_path / "org.zip"), "--org", target, "--members"
        )
        assert result.returncode == 0, result.stderr
        assert "create this webhook again: https://127.0.0.1/" in result.stdout
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", result.stdout)
        assert all(line.partition(" ")[0] != "line" for line in result.stdout.splitlines())
        # Keys, webhooks and sources are listed and not made.
        for table in ("api_keys", "webhooks", "sources"):
            assert org.sql(f"select 1 from rag.{table} where org_id = %s", target) == []
    finally:
        org.sql("delete from rag.orgs where id = %s", target)


def test_an_error_has_no_control_characters(hostile: Archive, refusal: Callable[..., str]):
    hostile.manifest["models"] = {"\x1b[31m'); drop table rag.orgs; --": 256}
    assert "\x1b" not in refusal(hostile)
    hostile.manifest["models"] = {}
    owners = [user for user in hostile.manifest["users"] if user["owns_rows"]]
    owners[0]["email"] = "\x1b[31m"
    assert "\x1b" not in refusal(hostile)


def test_each_type_of_an_exported_column_has_a_check(database: psycopg.Connection[Any]):
    tables = tables_of(database)
    types = {
        type_name.rpartition(".")[2]
        for name in EXPORTED
        for column, type_name in tables[name].types.items()
        if (name, column) not in ABSENT
    }
    assert types == {*PATTERNS, "uuid", "uuid[]", "jsonb"}
    assert {*WITH_IDS} <= {*EXPORTED}
