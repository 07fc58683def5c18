"""Fixtures: the real stack of a test process and its users.

Every test runs on one version of Postgres: the newest, or the one that --postgres or --installation names.
"""

import gc
import importlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

import httpx
import hypothesis
import pytest

from functions import documents
from local import ROOT, access_tokens
from local.stack import Stack
from shared import services as services_module
from shared.access import api_key_authenticator
from shared.api import health_probes
from shared.clients import http_client, postgrest, read_replica
from shared.config import Settings
from shared.ingestion.parsers import ocr
from shared.models import chat_gateway, embedder_window, reranking
from shared.models.embeddings import Embedder, local_embedder
from shared.observability import request_record_store
from shared.services import Services
from tests.actors import Actor, Org, World, client
from tests.databases import LONG_TIME_OUTS, ProcessStack, Run, add_installation
from tests.external_programs import chromium
from tests.functions.app_server import EVENT_LOOPS, client_of, event_loop, services_with
from tests.stand_in_server import StandIn
from tests.storage_server import BUCKET, StorageServer
from tests.upload_client import Uploads

TESTS = ROOT / "tests"
# Other modules of tests/deploy wait for the package that test_lambda.py builds.
SLOW = [TESTS / name for name in ("deploy/test_lambda.py", "local", "verify", "sdk", "playground")]
RUN, LOCK, STACK = pytest.StashKey[Run](), pytest.StashKey[TextIO](), pytest.StashKey[ProcessStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgres", type=int, choices=(16, 18), default=18, help="the Postgres to test on")
    parser.addoption("--installation", type=Path, help="the folder of another Postgres to test on")


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("installation"):
        config.option.postgres = add_installation(folder)
    # Properties are drawn alike in every run, and a slow machine is no failure. Modules with properties are
    # imported afterwards: their own settings extend these at the import.
    slow = [hypothesis.HealthCheck.too_slow]
    profile = hypothesis.settings(derandomize=True, deadline=None, suppress_health_check=slow)
    hypothesis.settings.register_profile("repeatable", profile)
    hypothesis.settings.load_profile("repeatable")
    # The five seconds of httpx would end a request of a busy machine.
    vars(httpx._config.DEFAULT_TIMEOUT_CONFIG).update(vars(httpx.Timeout(300)))
    # A new httpx client reads the certificate authorities, for 20 ms, and tests make thousands of clients.
    pytest.MonkeyPatch().setattr(ssl, "create_default_context", cache(ssl.create_default_context))
    if (worker := getattr(config, "workerinput", None)) is not None:
        config.stash[RUN] = Run(Path(worker["run"]))
    else:
        config.stash[RUN], config.stash[LOCK] = Run.begin()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist which run it belongs to."""
    node.workerinput["run"] = str(node.config.stash[RUN].folder)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the test modules, each process from another one on.

    pytest compiles each module for its assertions, which takes 15 seconds where no bytecode is cached.
    So the processes share this work."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted(TESTS.rglob("test_*.py"))
    ]
    first = len(names) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for name in names[first:] + names[:first]:
        importlib.import_module(name)


def pytest_unconfigure(config: pytest.Config) -> None:
    if LOCK in config.stash:
        config.stash[RUN].remove()
        config.stash[LOCK].close()


def pytest_collection_finish() -> None:
    # All modules are imported: the garbage collector need not look through them again, a tenth of the time.
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "sql"):
            item.add_marker(pytest.mark.postgres)
    # The modules that take longest start first, so that the run does not end with one process at work.
    items.sort(key=lambda item: not any(item.path.is_relative_to(path) for path in SLOW))


@pytest.fixture(scope="session", autouse=True)
def _long_time_outs() -> Iterator[None]:
    """Time-outs that a busy machine does not reach. A test of a time-out sets its own."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (read_replica, "DATABASE_SECONDS"),
            (reranking, "RERANK_SECONDS"),
            (embedder_window, "SECONDS"),
            (chat_gateway, "LIST_SECONDS"),
            (request_record_store, "CALL_SECONDS"),
            (health_probes, "CHECK_SECONDS"),
            (services_module, "CALIBRATION_TIMEOUT_SECONDS"),
            (api_key_authenticator, "LOOK_UP_WAIT_SECONDS"),
        ):
            patch.setattr(module, name, 60.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_ocr() -> Iterator[None]:
    """Whether or not this machine has tesseract. A test of OCR sets its own program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ocr, "PROGRAM", "tesseract-of-no-test")
        yield


@pytest.fixture(scope="session", autouse=True)
def _event_loop() -> Iterator[None]:
    yield
    EVENT_LOOPS.close()
    event_loop.cache_clear()


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest) -> Run:
    """The test run, whose folder all of its processes share."""
    return request.config.stash[RUN]


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest, run: Run, worker_id: str) -> Iterator[Stack]:
    """The stack of this process, of the Postgres version that was asked for."""
    server = run.postgres(request.config.getoption("postgres"))
    running = ProcessStack(run.folder / worker_id, server, f"{run.folder.name}_{worker_id}")
    try:
        running.up(0, durable=False)
        request.config.stash[STACK] = running
        yield running
        client().close()
        client.cache_clear()
    finally:
        running.remove()


@pytest.fixture(scope="module", autouse=True)
def _empty_database(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if STACK in request.config.stash:
        request.config.stash[STACK].empty()


@pytest.fixture(scope="session")
def settings(stack: Stack) -> Settings:
    """What a function deployed beside the stack reads from its environment."""
    environment = stack.function_environment()
    values = {name.lower(): value for name, value in {**environment, **LONG_TIME_OUTS}.items()}
    return Settings(**values)  # type: ignore[arg-type]


@pytest.fixture
def unlimited_wait_for_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a measurement takes longer than a request waits."""
    monkeypatch.setattr("shared.models.scale_before_calibration.WAIT_SECONDS", 60.0)


@pytest.fixture(scope="session")
def services(settings: Settings) -> Iterator[Services]:
    pipeline = Services(settings)
    yield pipeline
    pipeline.close()


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return local_embedder()


@pytest.fixture(scope="module")
def world(stack: Stack) -> Iterator[World]:
    made = World(stack)
    yield made
    made.close()


@pytest.fixture
def no_jobs(world: World) -> Iterator[None]:
    """Nothing that another test has left for the worker to do or to send, and nothing left."""
    tables = ("jobs", "webhooks", "object_removals", "sources")
    clear = "; ".join(f"delete from rag.{table}" for table in tables)
    world.sql(clear)
    yield
    world.sql(clear)


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without the waits."""
    for module, name in ((http_client, "SERVICE_PAUSES"), (postgrest, "PAUSES"), (chat_gateway, "PAUSES")):
        monkeypatch.setattr(module, name, (0.001,) * len(vars(module)[name]))


@pytest.fixture
def gateway() -> Iterator[StandIn]:
    """Stands in for a model's endpoint; what it answers is the test's to say."""
    with StandIn() as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[str]:
    """The address of a Chromium for all browser tests of this process."""
    with chromium() as address:
        yield address


@pytest.fixture
def uploading(
    stack: Stack, settings: Settings, embedder: Embedder, world: World, no_jobs: None
) -> Iterator[Uploads]:
    """A deployment that takes large files; Storage is empty."""
    world.sql("delete from rag.object_removals")
    world.sql("delete from storage.objects")
    with StorageServer(stack) as server:
        changes = {
            "supabase_url": server.url,
            "supabase_jwt_issuer": access_tokens.issuer(stack.url),
            "rag_storage_bucket": BUCKET,
            "rag_public_url": "http://testserver",
        }
        with services_with(settings, **changes) as services, client_of(documents.app, services) as app:
            yield Uploads(server, services, app, embedder, world)


@dataclass(frozen=True)
class People:
    """Two orgs: ann and alf are members of the first, ada is its admin; bob is a member of the second;
    kim belongs to both, sam to none."""

    acme: Org
    bolt: Org
    ann: Actor
    alf: Actor
    ada: Actor
    bob: Actor
    kim: Actor
    sam: Actor


@pytest.fixture
def people(world: World) -> People:
    """New people, for a test that writes."""
    return _people(world)


@pytest.fixture(scope="module")
def shared_people(world: World) -> People:
    """The same people for all tests of a module that only read, with room for more requests than usual."""
    people = _people(world)
    for org in (people.acme, people.bolt):
        world.tier(org, rag=10**6, api=10**6)
    return people


def _people(world: World) -> People:
    acme, bolt = Org(str(uuid4()), "Acme"), Org(str(uuid4()), "Bolt")
    member = "member"
    users = [([acme], member), ([acme], member), ([acme], "admin"), ([bolt], member), ([acme, bolt], member)]
    return People(acme, bolt, *world.add([acme, bolt], [*users, ([], member)]))
