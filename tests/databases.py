"""One Postgres for a test run, and a cloned database for each process.

The first process that needs a database starts Postgres and migrates the template with the supabase CLI. Every
process then clones the template, and starts its own PostgREST and gateway for the clone.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import psycopg
from psycopg import sql

from local import ROOT
from local.errors import CommandError
from local.postgres import VERSIONS, Postgres
from local.stack import DEFAULT_FOLDER, Stack
from local.tools import migrations

RUNNING_SERVER = os.environ.get("RAG_TEST_SERVER")
TEMPLATE = "template"
RUNS = DEFAULT_FOLDER / "tests"
SEED = ROOT / "supabase" / "seed.sql"
PGTAP = ROOT / "node_modules" / "@electric-sql" / "pglite" / "dist" / "pgtap.tar.gz"
# The models that tests store chunks of.
MODELS = ("all-MiniLM-L6-v2", "text-embedding-3-small", "another", "another model", "another-model", "m")
# Settings of a minute, which a busy machine does not reach.
LONG_TIME_OUTS = {
    # A third of it is an embedding's, a sixth a follow-up question's.
    "RAG_LLM_TIMEOUT_SECONDS": "360",
}
# Schemas whose tables tests write to.
TEST_SCHEMAS = ("rag", "auth", "storage")


class Run:
    """The folder of one test run. An exclusive lock on it marks the run as alive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def begin(cls) -> tuple["Run", TextIO]:
        """A new run and its lock. Removes the folders and processes of runs that were killed."""
        RUNS.mkdir(parents=True, exist_ok=True)
        # Between the making of a folder and its lock, another run would take it for one that was killed.
        with _locked(RUNS.with_suffix(".lock")):
            for folder in RUNS.iterdir():
                # A run that ends deletes its folder without the lock.
                with suppress(FileNotFoundError, NotADirectoryError), (folder / "run.lock").open("a") as lock:
                    if _try_to_lock(lock):
                        cls(folder).remove()
            folder = Path(tempfile.mkdtemp(dir=RUNS))
            lock = (folder / "run.lock").open("a")
            fcntl.flock(lock, fcntl.LOCK_EX)
        return cls(folder), lock

    def remove(self) -> None:
        """Stop every process of the run and delete its folder."""
        for state in sorted(self.folder.glob("*/stack.json"), key=lambda file: "postgres" in str(file)):
            # A killed run may be of another --installation. Its Postgres stops by itself without its folder.
            with suppress(CommandError):
                Stack(state.parent).remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def build_once(self, name: str, build: Callable[[Path], object]) -> Path:
        """The folder of that name, which `build` fills once in a run for all of its processes."""
        folder = self.folder / name
        with _locked(self.folder / f"{name}.lock"):
            if not folder.exists():
                draft = folder.with_suffix(".draft")
                shutil.rmtree(draft, ignore_errors=True)
                draft.mkdir()
                build(draft)
                draft.rename(folder)
        return folder

    def postgres(self, version: int) -> Postgres:
        """The run's Postgres of that major version, with the migrated template. The first call starts it.

        RAG_TEST_SERVER names the folder of one that runs already, for many short runs."""
        if RUNNING_SERVER:
            return Stack(Path(RUNNING_SERVER)).postgres
        return self.start_server(version).postgres

    def start_server(self, version: int) -> Stack:
        """Postgres with the migrated template, unless it runs, as a stack without PostgREST and gateway."""
        folder = self.folder / f"postgres{version}"
        ready = folder / "ready"
        with _locked(self.folder / "postgres.lock"):
            if not ready.exists():
                # What a process left whose migration failed.
                Stack(folder).remove()
                server = Stack(folder, postgres_version=version)
                server.postgres_only()
                migrations.make_database(server.postgres, TEMPLATE)
                migrations.apply_migrations(server, TEMPLATE)
                with psycopg.connect(server.postgres.url(TEMPLATE)) as connection:
                    # A busy machine exceeds the 200 milliseconds of graph expansion, and the three and eight
                    # seconds of statements in hosted projects. Tests call PostgREST at the same time without
                    # the wait for a slot, which our functions have.
                    connection.execute(
                        "update rag.settings set other_embedding_models = %s, graph_milliseconds = 10000, "
                        "reads_per_user = 100, reads_per_org = 100, "
                        "writes_per_user = 100, writes_per_org = 100",
                        [list(MODELS)],
                    )
                    for role in ("anon", "authenticated", "authenticator"):
                        connection.execute(f"alter role {role} set statement_timeout = '60s'".encode())
                ready.touch()
        return Stack(folder)


class ProcessStack(Stack):
    """The stack of one test process: a database on the run's Postgres, a PostgREST and a gateway."""

    def __init__(self, folder: Path, server: Postgres, database: str) -> None:
        self._server = server
        self._static_tables: list[str] = []
        super().__init__(folder)
        # Without a key pair a stack starts sooner, and signs and checks its thousands of tokens faster.
        self.state.keys = "hs256"
        self.state.password = server.password
        self.state.postgres_version = server.version
        self.state.database = database

    @property
    def postgres(self) -> Postgres:
        return self._server

    def _start_database(self, *, durable: bool, seed: bool) -> None:
        self.state.postgres_port = self._server.port
        if (postmaster := self._server.postmaster()) is not None:
            self._record_child("postgres", postmaster)
        clone(self, self.state.database)
        with self._as_superuser() as connection:
            self._static_tables = _tables_with_rows(connection)
            connection.execute(SEED.read_bytes())

    def _stop_database(self) -> None:
        migrations.drop_database(self._server, self.state.database)

    def _gateway_environment(self) -> dict[str, str]:
        return {**super()._gateway_environment(), **LONG_TIME_OUTS}

    def remove(self) -> None:
        """Stop its processes, drop its database and delete its folder; Postgres goes on."""
        self.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def empty(self) -> None:
        """Delete the rows that tests wrote: the last module then meets as small a database as the first."""
        with self._as_superuser() as connection:
            tables = _tables_with_rows(connection)
            if written := [table for table in tables if table not in self._static_tables]:
                # A transaction that a test left open would otherwise make this wait for ever.
                connection.execute("set lock_timeout = '10s'")
                # Without triggers and foreign keys. A truncation takes four times as long: it makes new
                # files for every table that refers to one of these.
                connection.execute("set session_replication_role = replica")
                connection.execute("; ".join(f"delete from {table}" for table in written).encode())
                connection.execute(f"vacuum {', '.join(written)}".encode())
                connection.execute("reset session_replication_role")
                connection.execute(SEED.read_bytes())

    def _as_superuser(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self._server.url(self.state.database), autocommit=True)


def own_database(stack: Stack, purpose: str) -> str:
    """A clone for some tests of this process alone. Returns its name, which no other process has."""
    name = f"{purpose}_{stack.state.database}"
    clone(stack, name)
    return name


def clone(stack: Stack, name: str) -> None:
    """A database like the migrated template, owned as hosted projects have it."""
    with psycopg.connect(stack.postgres.url(), autocommit=True) as connection:
        statement = sql.SQL("create database {} template {} owner postgres")
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(TEMPLATE)))
    if RUNNING_SERVER:
        # Its template was made by another checkout, which may lack migrations of this one.
        migrations.apply_migrations(stack, name)


def _tables_with_rows(connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    """In two statements: one for each table would take longer than the deletions of most modules."""
    tables = connection.execute(
        "select format('%%I.%%I', nspname, relname) from pg_class join pg_namespace as schema"
        " on relnamespace = schema.oid where nspname = any (%s) and relkind = 'r'",
        [list(TEST_SCHEMAS)],
    )
    selects = (f"select '{table}' where exists (select from {table})" for (table,) in tables)
    return [str(table) for (table,) in connection.execute(" union all ".join(selects).encode())]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _try_to_lock(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def add_installation(folder: Path) -> int:
    """Postgres of another folder with bin/, lib/ and share/. Its major version.

    Raises OSError when the folder has no Postgres.
    """
    output = subprocess.run(
        [folder / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    version = int(re.findall(r"[0-9]+", output)[0])
    VERSIONS[version] = str(folder.absolute())
    return version


def install_pgtap(url: str) -> None:
    """The extension's functions in schema extensions, from the npm package PGlite. `url`: as a superuser."""
    with tarfile.open(PGTAP) as archive, psycopg.connect(url) as connection:
        (member,) = (member for member in archive if re.search(r"/pgtap--[0-9.]+\.sql$", member.name))
        file = archive.extractfile(member)
        assert file
        connection.execute("set search_path = extensions")
        connection.execute(file.read())
