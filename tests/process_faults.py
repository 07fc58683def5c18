"""What happens to the processes of a stack, on purpose, and how they are there again."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg

from local.child_processes import Child, is_responding, wait_for_end, wait_until_ready
from local.npm_tools import postgrest_binary
from local.stack import Stack

SCHEMA_LOADED = "Schema cache loaded"


def private_bytes(pid: int) -> int:
    """RssAnon of a process; 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    # A process that ends has no such line.
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines.get("RssAnon", "0 kB").split()[0]) << 10


def kill(child: Child) -> None:
    """It has no moment to say goodbye, and is gone when this returns."""
    if (process := child.process()) is not None:
        process.kill()
        assert wait_for_end([process], 60)
    child.stop()


def start_postgrest(stack: Stack) -> None:
    """Return when it answers. It gets no request before its schema cache is loaded. After a response 503 it
    would load the cache again, and fail all calls with PGRST002 while that load waits for a connection."""
    log = stack.folder / "logs" / "postgrest.log"
    loads = log.read_text().count(SCHEMA_LOADED)
    stack._spawn("postgrest", [postgrest_binary()], stack._postgrest_environment())
    child = stack.state.children["postgrest"]
    wait_until_ready(lambda: log.read_text().count(SCHEMA_LOADED) > loads, child, log)
    wait_for_postgrest(stack)


def start_postgres(stack: Stack, *, durable: bool) -> None:
    stack._record_child("postgres", stack.postgres.start(durable=durable))


def wait_for_postgrest(stack: Stack) -> None:
    """Until it answers, which it only does when Postgres answers it."""
    ready = partial(is_responding, f"http://127.0.0.1:{stack.state.postgrest_port}/")
    wait_until_ready(ready, stack.state.children["postgrest"], stack.folder / "logs" / "postgrest.log")


@contextmanager
def long_lock_waits(stack: Stack) -> Iterator[None]:
    """Calls wait a minute for a lock. A busy machine reaches the limit of three seconds."""
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        row = connection.execute("select pg_get_functiondef('rag.begin_call'::regproc)").fetchone()
        assert row
        original = str(row[0])
        changed = original.replace("'3s'", "'60s'")
        assert changed != original
        connection.execute(changed.encode())
        try:
            yield
        finally:
            connection.execute(original.encode())


def wait_for_waiters(stack: Stack, number: int) -> None:
    """Until so many statements in the stack's database wait for a lock."""
    count = """
        select count(*) from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()
    """
    deadline = time.monotonic() + 60
    with psycopg.connect(stack.database_url(), autocommit=True) as connection:
        while connection.execute(count).fetchone() != (number,):
            assert time.monotonic() < deadline
            time.sleep(0.01)
