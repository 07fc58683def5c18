"""Workspaces for the tests of search, answers and chat: one per module to read, one per test to change."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from functions import chat_completions
from shared.services import Services
from tests import graph_documents
from tests.actors import World
from tests.conftest import People
from tests.functions.app_server import client_of
from tests.functions.search_workspace import Workspace, workspace, workspace_id


@pytest.fixture(scope="module")
def shared_workspace(services: Services, shared_people: People) -> Workspace:
    """The documents of `home`. No test changes them."""
    return workspace(services, shared_people.ann)


@pytest.fixture
def home(shared_workspace: Workspace, shared_people: People, world: World) -> Workspace:
    """The shared workspace, for a new member of its org without sessions, replies and counted requests."""
    return shared_workspace.for_actor(world.user(shared_people.acme))


@pytest.fixture
def own_home(services: Services, people: People) -> Workspace:
    """A workspace of ann, for a test that adds or deletes documents."""
    return workspace(services, people.ann)


@pytest.fixture(scope="module")
def graph_workspace(services: Services, world: World) -> Workspace:
    """Documents whose graph is known, alone in their org. No test changes them."""
    actor = world.user(world.org())
    ids = graph_documents.put_all(services, actor, "graph")
    documents = {title: f"doc_{document_id}" for title, document_id in ids.items()}
    return Workspace(services, actor, workspace_id(actor, "graph"), "graph", documents)


@pytest.fixture
def local(services: Services) -> Iterator[TestClient]:
    """Chat completions of a deployment without a model."""
    with client_of(chat_completions.app, services) as client:
        yield client
