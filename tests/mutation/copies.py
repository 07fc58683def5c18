"""Project copy with one defect, and the run of its tests."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from xml.etree import ElementTree

import psutil

from local import ROOT
from tests.mutation import exclusions, migration
from tests.mutation.definitions import Mutant, project_files

# Set by Ctrl-C: each run ends its tests and removes its copy.
STOP = threading.Event()
REPORT = "mutation-report.xml"
# Errors of a defect that breaks a module instead of a behaviour.
IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError", "NameError")
# Signals to the tests, and the seconds that each gives: the first two let the fixtures stop their stacks.
ENDINGS = ((signal.SIGINT, 45), (signal.SIGTERM, 10), (signal.SIGKILL, 10))


@contextmanager
def copy_with(mutant: Mutant, root: Path, texts: Mapping[str, str]) -> Iterator[Path]:
    """A copy of the checkout `root` with that defect; it is removed with its processes."""
    folder = Path(tempfile.mkdtemp(prefix="rag-mutant-")).resolve()
    try:
        for name in project_files(root):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name, follow_symlinks=False)
        for name in (".venv", "node_modules"):
            (folder / name).symlink_to(ROOT / name)
        change = "-- No change.\n"
        if mutant.find:
            path = next(name for name, text in texts.items() if mutant.find in text)
            (folder / path).write_text(mutant.edited(texts[path]))
            if path.endswith(".sql"):
                change = migration.script(texts[path], mutant.edited(texts[path]), mutant.execute)
        (folder / migration.PATH).write_text(change)
        yield folder
    finally:
        _stop_stacks(folder)
        _stop_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)


def run_tests(folder: Path, tests: tuple[str, ...], workers: int, seconds: float) -> tuple[str, str]:
    """The verdict (caught, missed or broken) and the test that failed, or the reason."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", "PYTEST_ADDOPTS"}}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", str(workers)]
    command += ["-o", "junit_family=xunit1", f"--junitxml={REPORT}", *exclusions.pytest_options(), *tests]
    # What the tests keep outside the project is in the copy too, so that no stack is overlooked.
    temporary = folder / "temporary"
    temporary.mkdir()
    command.append(f"--basetemp={temporary / 'pytest'}")
    environment |= {"PYTHONPATH": str(folder), "TMPDIR": str(temporary)}
    log = folder / "mutation.log"
    deadline = time.monotonic() + seconds
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            while process.poll() is None and time.monotonic() < deadline:
                if STOP.wait(0.2):
                    raise KeyboardInterrupt
            if process.poll() is None:
                return "broken", f"time limit of {seconds:.0f} s: {_last_line(log)}"
        finally:
            _end(process)
    return verdict(process.returncode, folder / REPORT, _last_line(log))


def verdict(status: int, report: Path, last_line: str) -> tuple[str, str]:
    """The verdict by pytest's exit status and its report. With several processes pytest ends with 2 when it
    stops at the first failure, and with 1 otherwise."""
    if status == 0:
        return "missed", ""
    if status not in (1, 2) or not report.exists():
        return "broken", f"pytest ended with {status}: {last_line}"
    reason = last_line
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314  # pytest wrote it
        name = f"{case.get('file')}::{case.get('name')}"
        for failure in (*case.findall("failure"), *case.findall("error")):
            message, text = failure.get("message") or "", failure.text or ""
            if message.startswith(IMPORT_ERRORS):
                reason = f"{name}: {message.splitlines()[0]}"
                continue
            # A set-up counts by its assertion: the stack's start and an import raise other errors.
            by_assertion = "AssertionError" in message or "\nE       assert " in text
            if failure.tag == "failure" or by_assertion:
                return "caught", name
            reason = f"{name}: {message.splitlines()[0] if message else text[-200:]}"
    return "broken", reason


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][-300:] if lines else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    for number, seconds in ENDINGS:
        if process.poll() is not None:
            return
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def _stop_stacks(folder: Path) -> None:
    """Stop the stacks that the tests left, by the copy's own code: it knows where their data is."""
    for state in [*folder.glob(".local/**/stack.json"), *folder.glob("temporary/**/stack.json")]:
        command = [sys.executable, "-m", "local", "--data", str(state.parent), "down", "--remove"]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False)


def _stop_processes(folder: Path) -> None:
    """End each process that was started in this copy or names it in its command."""
    own = list[psutil.Process]()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = [process.cwd(), *process.cmdline()]
            if any(str(folder) in word for word in words):
                own.append(process)
    for process in own:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(own, timeout=10)
