"""The real stack, once for each supported Postgres of the wheel; people made anew for every test.

What is asked of the database itself, and every attack on it, runs on both versions. What stands on that, the
functions and the core's modules, runs on the newest; with --every-postgres on both.
"""

import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from functions import documents
from local import tokens
from local.stack import DEFAULT_FOLDER, Stack
from shared.config import Settings
from shared.embed import Embedder, local_embedder
from shared.pipeline import Pipeline
from tests.actors import Actor, Org, World, client
from tests.functions.serving import made, served
from tests.stand_in import StandIn
from tests.storage_server import BUCKET, StorageServer
from tests.uploading import Uploading

NEWEST = 18
ON_THE_NEWEST = {"functions", "sdk", "shared"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-postgres", action="store_true", help="every test on every Postgres")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("every_postgres"):
        return
    chosen, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        asked = getattr(item, "callspec", None)
        older = asked is not None and asked.params.get("stack", NEWEST) != NEWEST
        folder = item.path.relative_to(config.rootpath / "tests").parts[0]
        (left_out if older and folder in ON_THE_NEWEST else chosen).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = chosen


@pytest.fixture(scope="session")
def _folder(worker_id: str) -> Iterator[Path]:
    """A fixed one for each process of a test run, so that a run finds and stops what a killed one left;
    and one test run at a time in a clone."""
    folder = DEFAULT_FOLDER / f"tests-{worker_id}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@pytest.fixture(scope="session", params=[NEWEST, 16], ids=["postgres18", "postgres16"])
def stack(request: pytest.FixtureRequest, _folder: Path) -> Iterator[Stack]:
    """A whole stack of that version."""
    folder = _folder / f"postgres{request.param}"
    Stack(folder).remove()
    running = Stack(folder, postgres_version=request.param)
    try:
        yield running.up(0, durable=False)
    finally:
        client().close()
        client.cache_clear()
        running.remove()


@pytest.fixture(scope="session")
def settings(stack: Stack) -> Settings:
    """What a function deployed beside the stack reads from its environment."""
    environment = stack.function_environment()
    return Settings(**{name.lower(): value for name, value in environment.items()})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def core(settings: Settings) -> Iterator[Pipeline]:
    pipeline = Pipeline(settings)
    yield pipeline
    pipeline.close()


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return local_embedder()


@pytest.fixture
def world(stack: Stack) -> Iterator[World]:
    made = World(stack)
    yield made
    made.close()


@pytest.fixture
def no_jobs(world: World) -> Iterator[None]:
    """Nothing that another test has left for the worker to do or to send, and nothing left."""
    clear = "delete from rag.jobs; delete from rag.webhooks; delete from rag.extractions"
    world.sql(clear)
    yield
    world.sql(clear)


@pytest.fixture
def gateway() -> Iterator[StandIn]:
    """Stands in for a model's endpoint; what it answers is the test's to say."""
    with StandIn() as server:
        yield server


@pytest.fixture
def uploading(
    stack: Stack, settings: Settings, embedder: Embedder, world: World, no_jobs: None
) -> Iterator[Uploading]:
    """A deployment that takes large files; Storage is empty."""
    world.sql("delete from rag.removals")
    world.sql("delete from storage.objects")
    with StorageServer(stack) as server:
        changes = {
            "supabase_url": server.url,
            "supabase_jwt_issuer": tokens.issuer(stack.url),
            "rag_storage_bucket": BUCKET,
        }
        with made(settings, **changes) as core, served(documents.app, core) as app:
            yield Uploading(server, core, app, embedder, world)


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
    acme, bolt = world.org("Acme"), world.org("Bolt")
    return People(
        acme,
        bolt,
        ann=world.user(acme),
        alf=world.user(acme),
        ada=world.user(acme, role="admin"),
        bob=world.user(bolt),
        kim=world.user(acme, bolt),
        sam=world.user(),
    )
