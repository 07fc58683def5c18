"""Temporary stacks, and servers beside them."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from local import ROOT
from local.child_processes import free_port, is_responding, start, wait_until_ready
from local.seed_demo import demo_files, ingest_files, make_services, principals_of
from local.stack import Stack
from shared.services import Services

USER_EMAIL = "tomas@halden.example"
# More than any measurement asks.
UNLIMITED = {
    "RAG_RATE_LIMIT_RAG": "10000000/minute",
    "RAG_RATE_LIMIT_API": "10000000/minute",
    "RAG_INGEST_BYTES_PER_MINUTE": str(2**30),
}


@dataclass(frozen=True)
class BenchStack:
    stack: Stack
    services: Services

    def token(self) -> str:
        return self.stack.token(USER_EMAIL)


@contextmanager
def temporary_stack(*, seed: bool = True) -> Iterator[Stack]:
    """A stack that is taken away afterwards."""
    with Stack.temporary("hs256") as stack:
        stack.up(0, durable=False, seed=seed)
        yield stack


@contextmanager
def start_bench_stack(console: Console) -> Iterator[BenchStack]:
    """A stack with the demo's documents."""
    with temporary_stack() as stack, closing(make_services(stack)) as services:
        ingest_files(services, demo_files(), principals_of(stack), console)
        yield BenchStack(stack, services)


@dataclass(frozen=True)
class Server:
    url: str
    process: psutil.Process


@contextmanager
def serve(
    command: Sequence[str | Path], port: int, environment: Mapping[str, str], log: Path, path: str = "/"
) -> Iterator[Server]:
    """The server that the command starts on that port, once it answers the path."""
    child, url = start(command, environment, log), f"http://127.0.0.1:{port}"
    try:
        wait_until_ready(lambda: is_responding(f"{url}{path}"), child, log)
        yield Server(url, psutil.Process(child.pid))
    finally:
        child.stop()


@contextmanager
def serve_app(bench: BenchStack, app: str, environment: Mapping[str, str], *options: str) -> Iterator[Server]:
    """An ASGI app under one uvicorn worker, as a deployment of its own beside the stage's stack."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", app, "--port", str(port), "--log-level", "warning", *options]
    own = {"PYTHONPATH": str(ROOT), "HOME": os.environ.get("HOME", "/"), **UNLIMITED}
    log = bench.stack.folder / "logs" / f"{app.replace(':', '-')}.log"
    with serve(command, port, {**own, **bench.stack.function_environment(), **environment}, log) as server:
        yield server
