"""The library that the attacks are made on."""

from collections.abc import Iterator

import httpx
import pytest

from local.stack import Stack
from shared.services import Services
from tests.conftest import People
from tests.isolation.victim_documents import SECRETS, Library, store


@pytest.fixture(scope="session")
def client(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url) as pooled:
        yield pooled


@pytest.fixture
def library(services: Services, client: httpx.Client, people: People) -> Library:
    """A new library, for a test that changes it."""
    return library_of(services, client, people)


@pytest.fixture(scope="module")
def shared_library(services: Services, client: httpx.Client, shared_people: People) -> Library:
    """The same library for all tests of a module, whose attacks change nothing."""
    return library_of(services, client, shared_people)


def library_of(services: Services, client: httpx.Client, people: People) -> Library:
    return Library(
        services,
        client,
        people,
        acme_document=store(services, people.ann, SECRETS["acme"]),
        bolt_document=store(services, people.bob, SECRETS["bolt"]),
        ann_document=store(services, people.ann, SECRETS["ann"], private=True),
    )
