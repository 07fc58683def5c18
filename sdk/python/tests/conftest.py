"""The collection that tests/sdk/test_frameworks.py filled, by the environment's key and address."""

import os
from collections.abc import Iterator

import pytest

from mnemosyne import Mnemosyne

COLLECTION = os.environ["FRAMEWORKS_COLLECTION"]
OTHERS_COLLECTION = os.environ["FRAMEWORKS_OTHERS_COLLECTION"]
QUESTION = "How hot does the kettle of hall 3 become?"


@pytest.fixture
def client() -> Iterator[Mnemosyne]:
    with Mnemosyne() as client:
        yield client
