"""Low priority of the work that no request waits for: about a tenth of the processor time of other processes,
when they compete."""

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

NICENESS = 10
# Where Linux groups processes by session (sched_autogroup), their niceness counts within a session alone.
_GROUP = Path("/proc/self/autogroup")


def lower_process_priority() -> None:
    """Of this process, which is the first of its session. A sandbox may forbid a change."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
    with suppress(OSError):
        _GROUP.write_text(str(NICENESS))


def lower_thread_priority() -> None:
    """Of this thread. Only Linux has priorities of threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
