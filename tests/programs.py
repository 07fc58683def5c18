"""Programs beside a test: Node, Chromium, and the worker's schedule."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.stack import Stack
from local.tools import ROOT


def run_node(script: Path, given: dict[str, Any], *arguments: str) -> dict[str, Any]:
    """Run a script with `given` on its standard input; what it prints, parsed: nothing is nothing."""
    done = subprocess.run(
        # supabase-js wants a WebSocket at once; Node 20 has one behind this flag, later ones by default.
        ["node", "--experimental-websocket", str(script), *arguments],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout or "{}")
    return result


def printed(command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What a program says that ends well, and complains of nothing."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
        env=surroundings(environment),
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the developer's but where programs are."""
    return {"PATH": os.environ["PATH"], **environment}


def chromium() -> str:
    """The installed browser. CI must have one; a laptop without one skips, and says so."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI"):
        pytest.fail("CI has no chromium: .ci/run installs it")
    pytest.skip("no Chromium on this machine; install it to run the browser tests")


@contextmanager
def working(stack: Stack) -> Iterator[None]:
    """A schedule beside: what is brought meanwhile is worked on, as it is under `serve`."""
    ended = threading.Event()

    def work() -> None:
        headers = {"Authorization": f"Bearer {stack.state.worker_token}"}
        with httpx.Client(timeout=120) as client:
            while not ended.wait(0.1):
                client.post(f"{stack.url}/functions/v1/ingest", headers=headers)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
