"""Parts of the pipeline for the tests of this folder, and the end of their connections."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from shared.api.contracts.platform.webhooks import message_of
from shared.clients.ssrf_guard import AddressPolicy
from shared.documents import collections
from shared.documents.webhook_delivery_attempts import WebhookSender
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import Jobs
from shared.services import Services
from tests.actors import World
from tests.conftest import People
from tests.shared.examples import close_opened
from tests.shared.webhook_documents import Desk
from tests.stand_in_server import Reply, StandIn


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_opened()


@pytest.fixture
def service() -> Iterator[StandIn]:
    """A paid service's stand-in, for one test."""
    with StandIn() as server:
        yield server


@pytest.fixture
def jobs(services: Services, no_jobs: None) -> Jobs:
    return Jobs(services.database, services.require_signer())


@pytest.fixture
def worker(services: Services, jobs: Jobs) -> Worker:
    return Worker(jobs, services.embedder)


@pytest.fixture
def home(services: Services, people: People) -> str:
    """Ann's collection."""
    return str(collections.create(services.database, people.ann.principal, {"name": "docs"})["id"])


@pytest.fixture
def desk(services: Services, people: People, world: World, home: str, courier: WebhookSender) -> Desk:
    return Desk(services, people, world, home, courier)


@pytest.fixture
def receiver(service: StandIn) -> StandIn:
    """One that is always content."""
    service.replies(Reply(json={}))
    return service


@pytest.fixture
def courier(services: Services) -> WebhookSender:
    """What sends to the receivers, which are on this machine."""
    return sender(services, AddressPolicy(["127.0.0.1/32"]))


def sender(services: Services, networks: AddressPolicy) -> WebhookSender:
    return WebhookSender(services.database, services.require_signer(), networks, message_of)


@pytest.fixture
def silent() -> Iterator[str]:
    """A port whose queue is full: connecting to it gets no answer, neither yes nor no."""
    with socket.socket() as listening, ExitStack() as stack:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
