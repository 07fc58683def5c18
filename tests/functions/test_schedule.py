"""The schedule as a process: it calls the worker, goes on after a failure, and ends on SIGTERM."""

import os
import subprocess
import sys
import time
from threading import Event, Thread

import pytest

from functions import schedule
from local import ROOT
from shared.config import Settings
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.sql.passages import put
from tests.sql.reading import state

# Longer than a process that stops for five seconds.
PATIENCE = 60


@pytest.mark.usefixtures("no_jobs")
def test_the_schedule_calls_the_worker_and_ends_on_sigterm(people: People, world: World):
    document = put(world, people.ann, "Ann Lee leads the Ledger Team.")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        **people.ann.stack.function_environment(),
    }
    command = [sys.executable, "-m", "functions.schedule", "--pause", "600"]
    process = subprocess.Popen(command, env=environment)
    try:
        deadline = time.monotonic() + PATIENCE
        while state(world, document) != (1, 0, 0, False, False, None) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.terminate()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
    assert state(world, document) == (1, 0, 0, False, False, None)


@pytest.mark.usefixtures("short_pauses")
def test_a_failed_call_is_logged_and_repeated_after_the_pause(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    services = Services(settings.model_copy(update={"supabase_url": "http://127.0.0.1:1"}))
    monkeypatch.setattr(schedule.log, "propagate", True)
    stop = Event()
    calls = Thread(target=schedule.run, args=(services, stop, 0.01))
    calls.start()
    deadline = time.monotonic() + PATIENCE
    while caplog.text.count("the call of the worker failed") < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    calls.join(PATIENCE)
    services.close()
    assert not calls.is_alive()
    assert caplog.text.count("the call of the worker failed") >= 2
