"""Child processes of the local stack, identified by PID and start time.

The start time guards against PID reuse: after a crash the state file may name another program's PID.
"""

import atexit
import fcntl
import os
import random
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import httpx
import psutil

from local.errors import CommandError
from shared.clients.http_client import http_client

# Processes started by this one, which must reap them.
_started_processes: dict[int, subprocess.Popen[bytes]] = {}
atexit.register(lambda: [process.poll() for process in _started_processes.values()])


@dataclass(frozen=True)
class Child:
    """A child process: its PID and its start time in seconds since the epoch."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> "Child":
        return cls(pid, psutil.Process(pid).create_time())

    def process(self) -> psutil.Process | None:
        """The running process, or None when it ended or its PID belongs to another process."""
        try:
            process = psutil.Process(self.pid)
            same_process = abs(process.create_time() - self.started) < 0.1
        except psutil.NoSuchProcess:
            return None
        return process if same_process and is_alive(process) else None

    def stop(self, timeout: float = 10) -> None:
        """Send SIGTERM; after `timeout` seconds SIGKILL to it and its descendants."""
        if (process := self.process()) is not None:
            family = [process, *process.children(recursive=True)]
            with suppress(psutil.NoSuchProcess):
                process.terminate()
            if not wait_for_end(family, timeout):
                for straggler in filter(is_alive, family):
                    with suppress(psutil.NoSuchProcess):
                        straggler.kill()
                wait_for_end(family, timeout)
        if (popen := _started_processes.pop(self.pid, None)) is not None:
            popen.wait()


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs. A zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_for_end(processes: Sequence[psutil.Process], seconds: float) -> bool:
    """Wait until all have ended. False after `seconds`."""
    deadline = time.monotonic() + seconds
    while any(map(is_alive, processes)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def start(command: Sequence[str | Path], environment: Mapping[str, str], log: Path) -> Child:
    """Start a command in its own session, so that Ctrl-C reaches only this process."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            env={"PATH": os.environ.get("PATH", os.defpath), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _started_processes[process.pid] = process
    return Child.of(process.pid)


def wait_until_ready(ready: Callable[[], bool], child: Child, log: Path, seconds: float = 300) -> None:
    """Wait for `ready`; raises CommandError with the log's last error when the child dies or time is up."""
    deadline = time.monotonic() + seconds
    while not ready():
        if child.process() is None or time.monotonic() > deadline:
            lines = log.read_text(errors="replace").strip().splitlines() or ["nothing"]
            # A traceback ends with its error. uvicorn adds lines of its own.
            errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|FATAL|error): ", line)]
            raise CommandError(f"{log.stem} did not start: {(errors or lines)[-1]} (log: {log})")
        time.sleep(0.02)


def is_responding(address: str) -> bool:
    """Whether a GET of the address gets a response below 500."""
    try:
        with http_client(30) as client:
            return client.get(address).status_code < 500
    except httpx.TransportError:
        return False


def free_port() -> int:
    """A TCP port of the loopback interface without a listener. It is below the ports that operating systems
    give to other sockets, or one of those could take it before its process listens."""
    return next(filter(port_is_free, (random.randrange(10_000, 32_768) for _ in count())))  # noqa: S311  # no secret


def free_port_from(port: int) -> int:
    """`port` if it is free, else a free TCP port above it, in steps of ten."""
    return next(filter(port_is_free, range(port, 2**16, 10)), 0) or free_port()


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def lock_holder(path: Path) -> int | None:
    """The PID of the process that holds the lock file (hold_lock), or None."""
    with suppress(FileNotFoundError), path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            # Empty for the moment between the lock and the write.
            return int(lock.read() or 0)
    return None


@contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Hold the lock file, with this process's PID in it, as long as the block runs. False if another process
    holds it. The lock ends with the process, however it ends."""
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield True
