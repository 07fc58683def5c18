"""Supervision of the stack that `serve` runs: a worker that died is restarted."""

import time

from rich.console import Console

from local.errors import CommandError
from local.stack import Stack

CHECK_SECONDS = 5.0


def restart_dead_worker(stack: Stack) -> str | None:
    """A sentence about the restart; None if the worker runs."""
    before = stack.state.children.get("worker")
    if before is None or (child := stack.restart_worker()) is None:
        return None
    log = stack.folder / "logs" / "worker.log"
    return (
        f"The worker (process {before.pid}) stopped; see {log}. The worker runs again (process {child.pid})."
    )


def watch(stack: Stack, console: Console) -> None:
    """Never returns. Raises CommandError when a part of the stack that is not restarted has stopped."""
    while stack.is_up():
        if report := restart_dead_worker(stack):
            console.print(report, markup=False, highlight=False, soft_wrap=True)
        time.sleep(CHECK_SECONDS)
    raise CommandError(f"a process of the stack stopped; its log is in {stack.folder / 'logs'}")
