"""Programs beside a test: Node, Chromium, and the worker's schedule."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from local import ROOT
from local.stack import Stack


def completed(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """A program that has ended, in the project's folder unless told otherwise, and what it printed."""
    options = {"cwd": ROOT, "timeout": 600, **options}
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def run_node(script: Path, inputs: dict[str, Any], *arguments: str) -> dict[str, Any]:
    """Run a script with `given` on its standard input; what it prints, parsed: nothing is nothing."""
    process = completed(["node", str(script), *arguments], input=json.dumps(inputs), timeout=180)
    assert process.returncode == 0, process.stderr
    result: dict[str, Any] = json.loads(process.stdout or "{}")
    return result


def output_of(command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    """What a program says that ends well, and complains of nothing."""
    process = completed(command, timeout=300, cwd=folder, env=surroundings(environment))
    assert (process.returncode, process.stderr) == (0, ""), process.stderr
    return process.stdout


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the developer's but where programs are."""
    return {"PATH": os.environ["PATH"], **environment}


@contextmanager
def chromium() -> Iterator[str]:
    """The installed browser, running; the address that Playwright connects to. CI must have one; a laptop
    without one skips, and says so."""
    names = ("chromium", "chromium-browser", "google-chrome")
    if (program := next(filter(None, map(shutil.which, names)), None)) is None:
        if os.environ.get("CI"):
            pytest.fail("CI has no chromium: .ci/run installs it")
        pytest.skip("no Chromium on this machine; install it to run the browser tests")
    command = ["node", str(ROOT / "tests" / "browser_server.mjs"), program]
    # The server ends when its standard input closes, so also when this process is killed.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        address = server.stdout.readline().strip()
        assert address, "Chromium did not start; see the output of tests/browser_server.mjs"
        yield address


def call_worker(stack: Stack, url: str | None = None) -> httpx.Response:
    """The answer of the worker of the stack, or of the deployment at `url`, after its waiting jobs."""
    headers = {"Authorization": f"Bearer {stack.state.worker_token}"}
    return httpx.post(f"{url or stack.url}/functions/v1/ingest", headers=headers, timeout=120)


@contextmanager
def run_worker(stack: Stack, url: str | None = None) -> Iterator[None]:
    """A schedule that calls the worker of the stack, or of the deployment at `url`, ten times a second."""
    ended = threading.Event()
    failures: list[str] = []

    def work() -> None:
        while not ended.wait(0.1):
            answer = call_worker(stack, url)
            failures.extend([] if answer.is_success else [answer.text])

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not failures, failures
