"""Properties are drawn alike in every run, a slow machine is no failure, and connections are closed."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.shared.examples import close_opened
from tests.stand_in import StandIn

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_opened()


@pytest.fixture
def service() -> Iterator[StandIn]:
    """A paid service's stand-in, for one test."""
    with StandIn() as server:
        yield server
