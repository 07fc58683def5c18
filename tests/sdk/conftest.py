"""The SDKs as they are built, once for all tests."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import Run
from tests.sdk.typescript_package import Package, compile_users, install


@pytest.fixture
def quick_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """time.sleep sets the clock forward and takes no time."""
    monotonic, slept = time.monotonic, list[float]()
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(slept))


@pytest.fixture(scope="session")
def typescript(run: Run) -> Iterator[Package]:
    """The npm package, scripts that import it by its name, and its examples, compiled."""

    def build(folder: Path) -> None:
        install(folder)
        compile_users(Package(folder))

    package = Package(run.build_once("typescript", build))
    yield package
    package.close()
