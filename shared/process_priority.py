"""Low priority of the work that no request waits for, when it competes for processor time."""

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

# About a third of the time of other processes, and a tenth of that of other threads. With a tenth for
# processes, a text waited up to 17 seconds while another org's costly requests kept two cores busy.
NICENESS, THREAD_NICENESS = 5, 10
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
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), THREAD_NICENESS)
