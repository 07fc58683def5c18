"""Supervision of the stack that `serve` runs: a worker that died is restarted."""

import time
from collections.abc import Callable

from rich.console import Console

from local.errors import CommandError
from local.stack import Stack

CHECK_SECONDS = 2.0
# Before a restart of the worker, in seconds: doubled each time, until the worker has run for long enough.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
STEADY_SECONDS = 60.0


class WorkerWatch:
    """Restarts a stack's worker and reports it, one sentence at a time."""

    def __init__(
        self, stack: Stack, report: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stack = stack
        self._report = report
        self._clock = clock
        self._pause = FIRST_PAUSE
        self._started_at = clock()
        self._restart_at: float | None = None

    def check(self) -> None:
        """Notice that the worker's process has ended, or restart the worker when it is time to."""
        now = self._clock()
        if self._restart_at is None:
            self._notice(now)
        elif now >= self._restart_at:
            self._restart_at = None
            if child := self._stack.restart_worker():
                self._started_at = now
                self._report(f"The worker runs again (process {child.pid}).")

    def _notice(self, now: float) -> None:
        worker = self._stack.state.children.get("worker")
        if worker is None or worker.process() is not None:
            return
        if now - self._started_at > STEADY_SECONDS:
            self._pause = FIRST_PAUSE
        self._restart_at = now + self._pause
        log = self._stack.folder / "logs" / "worker.log"
        self._report(
            f"The worker (process {worker.pid}) stopped; see {log}. It is restarted in {self._pause:.0f} s."
        )
        self._pause = min(2 * self._pause, LONGEST_PAUSE)


def watch(stack: Stack, console: Console) -> None:
    """Never returns. Raises CommandError when a part of the stack that is not restarted has stopped."""
    worker = WorkerWatch(
        stack, lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
    )
    while stack.is_up():
        worker.check()
        time.sleep(CHECK_SECONDS)
    raise CommandError(f"a process of the stack stopped; its log is in {stack.folder / 'logs'}")
