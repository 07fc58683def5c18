"""Schedule of the worker where no EventBridge calls it: `python -m functions.schedule`.

It calls the worker in its own process, again at once while work remains. SIGTERM ends it after the current
call.
"""

import argparse
import gc
import logging
import math
import signal
import sys
from threading import Event

from functions.ingest import work
from shared.api.dependencies import get_services
from shared.errors import ConfigurationError, RagError
from shared.process_priority import lower_process_priority
from shared.services import Services

log = logging.getLogger("rag")
PAUSE_SECONDS = 10.0


def run(services: Services, stop: Event, pause: float) -> None:
    """Call the worker until `stop` is set, with a pause when nothing is due and after a failure."""
    while not stop.is_set():
        is_idle = True
        try:
            # In a process of its own no time-out ends the call.
            is_idle = work(services, latest_claim=math.inf).idle
        except Exception as error:
            reason = error.log_reason if isinstance(error, RagError) else type(error).__name__
            log.error("the call of the worker failed (%s); the next one follows", reason)
        if is_idle:
            stop.wait(pause)


def main() -> None:
    parser = argparse.ArgumentParser(prog="functions.schedule", description=__doc__)
    parser.add_argument("--pause", type=float, default=PAUSE_SECONDS, help="seconds; default %(default)s")
    options = parser.parse_args()
    lower_process_priority()
    # functions/__init__.py disabled collections.
    gc.enable()
    stop = Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    try:
        services = get_services()
    except ConfigurationError as error:
        sys.exit(str(error))
    run(services, stop, options.pause)
    services.close()


if __name__ == "__main__":
    main()
