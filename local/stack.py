"""The local stack: Postgres, PostgREST, and a gateway that runs the functions.

A stack has one folder with its data, secrets and logs, and `stack.json` with its ports and processes. Two
folders are two independent stacks.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from local import ROOT, access_tokens, declared_schema, playground_server, service_environments, stack_state
from local.child_processes import (
    Child,
    free_port,
    free_port_from,
    hold_lock,
    is_responding,
    lock_holder,
    port_is_free,
    start,
    wait_until_ready,
)
from local.errors import CommandError
from local.npm_tools import npm_program, postgrest_binary, supabase, version_of
from local.postgres import Postgres
from local.stack_state import State
from shared.clients.http_client import http_client

DEFAULT_FOLDER = ROOT / ".local"
DEFAULT_PORT = 54321
# Signing algorithms: a key pair, as in new Supabase projects, or a shared secret.
KEYS = ("es256", "rs256", "hs256")


class Stack:
    """A stack in `folder`, running or not. Methods raise CommandError with what to do about it."""

    def __init__(
        self, folder: Path = DEFAULT_FOLDER, *, postgres_version: int | None = None, keys: str | None = None
    ) -> None:
        self.folder = folder.resolve()
        self._file = self.folder / "stack.json"
        self.state = stack_state.load(self._file) or State()
        self.choose_postgres(postgres_version)
        self.choose_keys(keys)

    def choose_postgres(self, version: int | None) -> None:
        """Set the major version of a new stack. Raises CommandError when it has data of another version."""
        if version is None or version == self.state.postgres_version:
            return
        if self.postgres.is_initialised():
            raise CommandError(
                f"{self.folder} holds data of Postgres {self.state.postgres_version}; "
                "choose another folder with --data, or remove it with: down --remove"
            )
        self.state.postgres_version = version
        self._save_choice()

    def choose_keys(self, keys: str | None) -> None:
        """Set the signing algorithm of a new stack. Raises CommandError when it has data and another
        algorithm."""
        if keys is None or keys == self.state.keys:
            return
        if self.postgres.is_initialised():
            raise CommandError(
                f"the tokens of {self.folder} are signed with {self.state.keys.upper()}; "
                "choose another folder with --data, or remove it with: down --remove"
            )
        self.state.keys, self.state.private_key, self.state.anon_key = keys, None, None
        self._save_choice()

    def _save_choice(self) -> None:
        # A start that failed before it created data left a file, which the next start reads.
        if self._file.exists():
            self._save()

    @classmethod
    @contextmanager
    def temporary(cls, keys: str | None = None) -> "Iterator[Stack]":
        """A stack that is not started, and that is removed at the end of the block."""
        with tempfile.TemporaryDirectory(prefix="rag-stack-") as folder:
            stack = cls(Path(folder), keys=keys)
            try:
                yield stack
            finally:
                stack.remove()

    # -- addresses and credentials --------------------------------------------------------------------

    @property
    def url(self) -> str:
        return self.state.url

    @property
    def playground(self) -> str:
        """The playground's URL, with the secret for the demo users' tokens."""
        return playground_server.playground_url(self.url, self.state.playground_secret)

    @property
    def signing_key(self) -> access_tokens.SigningKey:
        return self.state.signing_key

    @property
    def anon_key(self) -> str:
        return self.state.public_anon_key

    @property
    def publishable_key(self) -> str:
        return self.state.publishable_key

    @property
    def postgres(self) -> Postgres:
        state = self.state
        drop_to = os.environ.get("RAG_LOCAL_POSTGRES_USER")
        return Postgres.at(self.folder, state.postgres_version, state.postgres_port, state.password, drop_to)

    def database_url(self, user: str = "postgres", database: str | None = None) -> str:
        """A connection URL of the stack's own database, or of another one of its Postgres."""
        return self.postgres.url(database or self.state.database, user)

    def require_up(self) -> None:
        """Raises CommandError when it is not."""
        if not self.is_up():
            raise CommandError(f"no stack is running in {self.folder}; start one with: make serve")

    def user_id(self, email: str) -> str:
        """The id of a user of this stack. Raises CommandError without such a user, or stack."""
        self.require_up()
        with psycopg.connect(self.database_url()) as connection:
            row = connection.execute("select id from auth.users where email = %s", [email]).fetchone()
            if row is None:
                known = [
                    name for (name,) in connection.execute("select email from auth.users order by email")
                ]
                raise CommandError(
                    f"no user has the address {email}; the users are {', '.join(filter(None, known))}"
                )
        return str(row[0])

    def token(self, email: str) -> str:
        """A day's access token for a user of this stack."""
        return access_tokens.user_token(self.signing_key, self.url, self.user_id(email), email)

    # -- start, stop, status --------------------------------------------------------------------------

    def up(
        self,
        port: int | None = None,
        *,
        durable: bool = True,
        seed: bool = True,
        worker: bool = False,
        processes: int = 1,
    ) -> bool:
        """Start everything that does not run, and return when all of it responds. `port` 0 means any free
        port, None the default port or the next free one; with `worker`, added documents are processed
        automatically. `processes`: those that run the functions. Returns whether the default port was taken
        by another program."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._exclusive_lock():
            self.state = stack_state.load(self._file) or self.state
            if self.is_up() and port in (0, None, self.state.port):
                return False
            self._require_not_served()
            self._stop_children()  # remains of a crash, or of a start on another port
            try:
                self._start(port, durable=durable, seed=seed, processes=processes)
                if worker:
                    self._spawn_worker()
            except BaseException:
                self._stop_children()
                raise
        return port is None and self.state.port != DEFAULT_PORT

    def down(self) -> None:
        """Stop every process of this stack; its data stays."""
        if self.folder.exists():
            with self._exclusive_lock():
                self.state = stack_state.load(self._file) or self.state
                self._stop_children()

    @contextmanager
    def serve_lock(self) -> Iterator[None]:
        """Mark the stack as served by this process. Raises CommandError when another process serves it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(self._serve_lock) as is_held:
            if not is_held:
                raise self._served_error(lock_holder(self._serve_lock))
            yield

    def restart_worker(self) -> Child | None:
        """Restart the worker if its process has ended. None if it runs, or if the stack has no worker."""
        with self._exclusive_lock():
            self.state = stack_state.load(self._file) or self.state
            worker = self.state.children.get("worker")
            if worker is None or worker.process() is not None:
                return None
            worker.stop()
            self._spawn_worker()
            return self.state.children["worker"]

    def remove(self) -> None:
        """Stop it and delete its folder."""
        self.down()
        self.postgres.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_up(self) -> bool:
        """Whether every process is alive and the gateway answers."""
        names = ("postgres", "postgrest", "gateway")
        alive = all(name in self.state.children and self.state.children[name].process() for name in names)
        return alive and is_responding(f"{self.url}/health")

    def status(self) -> dict[str, Any]:
        """Everything `status --json` prints: addresses, keys, PIDs, versions, the effective embedder."""
        self.require_up()
        with psycopg.connect(self.database_url()) as connection:
            (server,) = connection.execute("select current_setting('server_version')").fetchone() or ("",)
            vector = connection.execute(
                "select extversion from pg_extension where extname = 'vector'"
            ).fetchone()
        health = self._health()
        return {
            "url": self.url,
            "database_url": self.database_url(),
            "publishable_key": self.publishable_key,
            "anon_key": self.anon_key,
            "pids": {name: child.pid for name, child in self.state.children.items()},
            "versions": {
                "postgres": server,
                "pgvector": vector[0] if vector else None,
                "postgrest": version_of(postgrest_binary(), "--version"),
                "supabase": version_of(npm_program("supabase"), "--version"),
            },
            "keys": self.state.keys,
            "embedder": health["embedder"],
            "generator": health["generator"],
            "folder": str(self.folder),
        }

    def postgres_only(self) -> None:
        """Start an empty database and nothing else, for work on the schema."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._start_postgres(durable=False)

    # -- steps of up ----------------------------------------------------------------------------------

    def _start(self, port: int | None, *, durable: bool, seed: bool, processes: int) -> None:
        state, logs = self.state, self.folder / "logs"
        logs.mkdir(exist_ok=True)
        state.port = free_port_from(DEFAULT_PORT) if port is None else port or free_port()
        if not port_is_free(state.port):
            raise CommandError(
                f"port {state.port} is taken by another process; choose a free port: "
                f"make serve PORT={free_port_from(state.port)} (python -m local takes --port)"
            )
        state.postgrest_port = free_port()
        self._make_keys()
        self._save()

        # The gateway needs a second to import and to load its model: it does so while the database starts.
        self._spawn("gateway", self._gateway_command(processes), self._gateway_environment())
        self._start_database(durable=durable, seed=seed)
        # The hash is stored before the functions check whether the database accepts their secret.
        digest = hashlib.sha256(state.functions_secret.encode()).hexdigest()
        self._write_settings(functions_secret_hashes=[digest], **self._issuer_settings())
        self._spawn("postgrest", [postgrest_binary()], self._postgrest_environment())

        for name, address in (
            ("postgrest", f"http://127.0.0.1:{state.postgrest_port}/"),
            ("gateway", f"{self.url}/health"),
        ):
            wait_until_ready(partial(is_responding, address), state.children[name], logs / f"{name}.log")
        # The default embedding model of direct calls to SQL functions.
        self._write_settings(embedding_model=self._health()["embedder"]["model"])

    def _health(self) -> Any:
        with http_client(30) as client:
            return client.get(f"{self.url}/health").json()

    def _start_postgres(self, *, durable: bool) -> None:
        self.state.postgres_port = free_port()
        self._record_child("postgres", self.postgres.start(durable=durable))
        self.postgres.script(ROOT / "local" / "bootstrap.sql")

    def _start_database(self, *, durable: bool, seed: bool) -> None:
        if self.postgres.is_initialised() and self.state.schema != declared_schema.digest():
            raise CommandError(
                f"the schema in {self.folder} is not the one in sql/, and is not upgraded before the first "
                f"release; remove the data with: python -m local --data {self.folder} down --remove"
            )
        self._start_postgres(durable=durable)
        self.migrate("--include-seed" if seed else "")

    def _stop_database(self) -> None:
        self.postgres.stop()

    def _make_keys(self) -> None:
        """Create the key pair of a new stack with the supabase CLI."""
        if self.state.keys != "hs256" and self.state.private_key is None:
            output = supabase(self.folder, "gen", "signing-key", "--algorithm", self.state.keys.upper())
            self.state.private_key = json.loads(output.splitlines()[0])
            self.state.anon_key = access_tokens.anon_key(self.signing_key)

    def _write_settings(self, **values: object) -> None:
        changes = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in values)
        with psycopg.connect(self.database_url()) as connection:
            connection.execute(sql.SQL("update rag.settings set {}").format(changes), [*values.values()])

    def _issuer_settings(self) -> dict[str, object]:
        """The columns of rag.settings for the shell's third-party issuers. No columns if neither this shell
        nor that of the last start has issuers: a developer may have set them by SQL."""
        issuers = {each.issuer: each.audience for each in service_environments.third_party_issuers()}
        previous, self.state.third_party_issuers = self.state.third_party_issuers, issuers
        if not issuers and not previous:
            return {}
        # The port, and with it the stack's own issuer, may be another one than at the last start.
        own = access_tokens.issuer(self.url) if issuers else None
        return {"issuer": own, "third_party_issuers": Jsonb(issuers)}

    def migrate(self, *options: str) -> str:
        """Apply supabase/migrations to this stack's database with the real supabase CLI; its output."""
        return supabase(
            self.folder, "db", "push", "--yes", *filter(None, options), f"--remote={self.database_url()}"
        )

    def _gateway_command(self, processes: int) -> list[str]:
        options = ["--host", "127.0.0.1", "--port", str(self.state.port), "--log-level", "warning"]
        # Longer than clients keep idle connections, or they use one that the server is closing.
        options += ["--timeout-keep-alive", "75"]
        options += [
            "--workers",
            str(processes),
            "--loop",
            "uvloop",
            "--http",
            "shared.api.request_head_limit:HttpProtocol",
        ]
        return [sys.executable, "-m", "uvicorn", "local.gateway:app", *options]

    def _gateway_environment(self) -> dict[str, str]:
        return service_environments.of_gateway(self.state, self.folder)

    def _postgrest_environment(self) -> dict[str, str]:
        return service_environments.of_postgrest(self.state, self.database_url(user="authenticator"))

    def function_environment(self) -> dict[str, str]:
        """Environment of a function that uses this stack as its Supabase project."""
        return service_environments.of_functions(self.state)

    def _spawn_worker(self) -> None:
        command = [sys.executable, "-m", "functions.schedule", "--pause", "1"]
        self._spawn("worker", command, service_environments.of_worker(self.state))

    # -- processes and state --------------------------------------------------------------------------

    def _spawn(self, name: str, command: list[Any], environment: dict[str, str]) -> None:
        self._record_child(name, start(command, environment, self.folder / "logs" / f"{name}.log"))

    def _record_child(self, name: str, child: Child) -> None:
        self.state.children[name] = child
        self._save()

    def _stop_children(self) -> None:
        for name in ("worker", "gateway", "postgrest"):
            if child := self.state.children.pop(name, None):
                child.stop()
        self._stop_database()
        self.state.children.pop("postgres", None)
        self._save()

    def _save(self) -> None:
        stack_state.save(self.state, self._file)

    @property
    def _serve_lock(self) -> Path:
        """The lock file of the process that serves the stack."""
        return self.folder / "serve.lock"

    def _require_not_served(self) -> None:
        """Raises CommandError when another process serves this stack."""
        if (pid := lock_holder(self._serve_lock)) not in (None, os.getpid()):
            raise self._served_error(pid)

    def _served_error(self, pid: int | None) -> CommandError:
        return CommandError(
            f"process {pid} serves {self.folder} already, at {self.url}; "
            f"stop it first (Ctrl-C, or: kill {pid}), or choose another folder with --data and another --port"
        )

    @contextmanager
    def _exclusive_lock(self) -> Iterator[None]:
        """Lock the stack's folder: one command at a time changes it."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
