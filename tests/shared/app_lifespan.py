"""Apps in this process as a deployment starts them: settings from the environment, start-up and shutdown."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from local.stack import Stack
from shared.api.dependencies import get_services


@contextmanager
def started_client(
    app: FastAPI, stack: Stack, monkeypatch: pytest.MonkeyPatch, **settings: str
) -> Iterator[TestClient]:
    """The app beside that stack; faults of ours become responses, as they would outside of a test."""
    for name, value in {**stack.function_environment(), **settings}.items():
        monkeypatch.setenv(name, value)
    get_services.cache_clear()
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client
