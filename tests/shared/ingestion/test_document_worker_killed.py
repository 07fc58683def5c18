"""Workers, PostgREST and Postgres killed at whatever moment: no document is lost, none is there twice."""

import os
import random
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import count
from typing import Any

import pytest

from local import ROOT
from local.stack import Stack
from shared import pipeline
from shared.config import Settings
from shared.documents import collections, documents
from shared.documents.documents import NewUpload
from shared.ingestion.document_worker import Worker
from shared.ingestion.job_queue import Job, JobKind, Jobs
from shared.services import Services
from shared.types import Mode, Query
from tests.actors import Actor, World
from tests.conftest import People
from tests.process_faults import kill, start_postgres, start_postgrest, wait_for_postgrest
from tests.sql.keyword_index.test_index_triggers import drift

# Three short chunks, so that half a document would show; and the result of state() for a whole document.
COLLECTION = {"name": "docs", "config": {"chunk_size": 32, "chunk_overlap": 0}}
TEXT = "The kiln K-{} is hot. " + "It cools for a whole day, and then it is opened. " * 5
WHOLE = ("completed", None, 3, 3, 2)
Row = dict[str, Any]


def bring(services: Services, actor: Actor, home: str, number: int) -> Row:
    text = TEXT.format(f"{number:04}").encode()
    document = NewUpload(text, f"Kiln {number}", content_type="text/plain")
    return documents.add(services.database, actor.principal, home, document)


def state(world: World, home: str) -> dict[str, tuple[Any, ...]]:
    """Of each document: its status, why it failed, its chunks, their different places, and the last."""
    rows = world.sql(
        "select documents.id::text, status, error_code, count(chunks.id), count(distinct chunks.ordinal), "
        "  max(chunks.ordinal) "
        "from rag.documents left join rag.chunks on chunks.document_id = documents.id "
        "where documents.collection_id = %s group by documents.id, status, error_code",
        home,
    )
    return {row[0]: row[1:] for row in rows}


def left(world: World) -> int:
    """How many jobs have not ended; the leases of the dead run out now, and so do pauses."""
    unfinished = "state in ('waiting', 'running')"
    # What a dead worker had asked for may be carried out after its end, and be a claim.
    world.sql(f"update rag.jobs set due_at = now() where {unfinished}")
    return int(world.sql(f"select count(*) from rag.jobs where {unfinished}")[0][0])


# -- at every step ------------------------------------------------------------------------------------


class Killed(BaseException):
    """Nothing of the worker runs after it."""


class Dying(Jobs):
    """Calls of a worker that dies at one of them: before it is sent, or before its answer is read. After it,
    the other threads send no call."""

    def __init__(self, services: Services, at: int, *, answered: bool) -> None:
        super().__init__(services.database, services.require_signer())
        self._numbers, self._at, self._answered = count(), at, answered
        self._is_dead = False

    def claim(self, kind: JobKind, count: int, busy_orgs: Sequence[str] = ()) -> list[Job]:
        jobs: list[Job] = self._counted(lambda: super(Dying, self).claim(kind, count, busy_orgs))
        return jobs

    def call(self, job: Job, function: str, arguments: Row) -> Any:
        return self._counted(lambda: super(Dying, self).call(job, function, arguments))

    def _counted(self, call: Callable[[], Any]) -> Any:
        is_last = next(self._numbers) == self._at
        self._is_dead |= is_last and not self._answered
        if self._is_dead:
            raise Killed
        result = call()
        self._is_dead |= is_last
        if is_last:
            raise Killed
        return result


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize("answered", [False, True], ids=["before it asks", "before it hears"])
def test_a_worker_that_dies_at_any_step_loses_nothing(
    services: Services, people: People, world: World, answered: bool, monkeypatch: pytest.MonkeyPatch
):
    # Three chunks are a large document then, whose steps are written.
    monkeypatch.setattr("shared.ingestion.document_worker.EMBEDDED_AT_ONCE", 2)
    home = collections.create(services.database, people.ann.principal, COLLECTION)["id"]
    worker = Worker(Jobs(services.database, services.require_signer()), services.embedder)
    step, died = 0, True
    while died:
        ids = {bring(services, people.ann, home, 2 * step + number)["id"] for number in (0, 1)}
        died = False
        try:
            Worker(Dying(services, step, answered=answered), services.embedder).work()
        except Killed:
            died = True
        while left(world):
            worker.work()
        now = {document: visible for document, visible in state(world, home).items() if document in ids}
        assert set(now.values()) == {WHOLE}, step
        step += 1
    # A claim; for each of two documents to open, embed, begin to store, store.
    assert step == 10
    assert drift(world, people) == []


# -- at any moment ------------------------------------------------------------------------------------

# Fifty, and two hundred documents.
VICTIMS = ["worker"] * 30 + ["postgrest"] * 10 + ["postgres"] * 10
AT_ONCE, WORKERS = 4, 2


@pytest.fixture
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack for this test alone."""
    stack = Stack(tmp_path_factory.mktemp("mortal"), keys="hs256")
    try:
        # What Postgres has said is committed must be there after it was killed.
        stack.up(0, durable=True, seed=False)
        yield stack
    finally:
        stack.remove()


@pytest.fixture
def workers(mortal: Stack) -> Iterator[deque[subprocess.Popen[bytes]]]:
    """Those that are at work, the newest last."""
    running = deque(worker_of(mortal) for _ in range(WORKERS))
    yield running
    for process in running:
        process.kill()
        process.wait()


def worker_of(stack: Stack) -> subprocess.Popen[bytes]:
    environment = {**stack.function_environment(), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "tests.shared.worker_process"]
    return subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.DEVNULL)


def kill_and_replace(victim: str, stack: Stack, workers: deque[subprocess.Popen[bytes]]) -> None:
    """Returns when the database is there again, through PostgREST."""
    if victim == "worker":
        dying = workers.popleft()
        dying.kill()
        dying.wait()
        workers.append(worker_of(stack))
        return
    kill(stack.state.children[victim])
    if victim == "postgrest":
        start_postgrest(stack)
    else:
        start_postgres(stack, durable=True)
        wait_for_postgrest(stack)


def somebody_works(world: World) -> bool:
    return world.sql("select 1 from rag.jobs where state = 'running' limit 1") == [(1,)]


@pytest.mark.long
def test_every_document_is_found_once_whatever_is_killed(
    mortal: Stack, workers: deque[subprocess.Popen[bytes]]
):
    draw = random.Random(7)  # noqa: S311  # not a secret
    with closing(World(mortal)) as world:
        people = People(world.org(), world.org(), *[world.user()] * 6)
        ann = world.user(people.acme)
    values: Row = {name.lower(): value for name, value in mortal.function_environment().items()}
    with closing(Services(Settings(**values))) as services:
        home = collections.create(services.database, ann.principal, COLLECTION)["id"]
        ids: list[str] = []
        busy: Counter[str] = Counter()
        for victim in draw.sample(VICTIMS, len(VICTIMS)):
            ids += [bring(services, ann, home, len(ids) + number)["id"] for number in range(AT_ONCE)]
            time.sleep(draw.uniform(0.05, 0.5))
            with closing(World(mortal)) as world:
                busy[victim] += somebody_works(world)
                left(world)
            kill_and_replace(victim, mortal, workers)
        assert min(busy[victim] for victim in set(VICTIMS)) > 2, "there was too little to lose"
        with closing(World(mortal)) as world:
            deadline = time.monotonic() + 240
            while left(world):
                assert time.monotonic() < deadline, "they do not come to an end"
                # Long enough for the living to end what they are at.
                time.sleep(3)
            done = assert_nothing_is_lost(world, home, ids)
            assert drift(world, people) == []
        for number, document in enumerate(ids):
            name = f"K-{number:04}"
            matches = pipeline.search(services, ann.principal, Query(name, mode=Mode.KEYWORD)).matches
            results = [match.document_id for match in matches if name in match.text]
            assert results == ([document] if document in done else [])


def assert_nothing_is_lost(world: World, home: str, ids: list[str]) -> set[str]:
    """Which documents are whole; the others, of which there are few, failed with a reason."""
    now = state(world, home)
    assert sorted(now) == sorted(ids)
    done = {document for document, state in now.items() if state == WHOLE}
    # Whose workers died again and again, until they were taken for what these died of.
    failed = {
        document
        for document, visible in now.items()
        if visible[0] == "failed" and visible[1] and not visible[2]
    }
    assert done | failed == set(ids)
    assert len(failed) <= len(ids) // 20
    orphans = "select count(*) from rag.chunks where document_id not in (select id from rag.documents)"
    assert world.sql(orphans) == [(0,)]
    return done
