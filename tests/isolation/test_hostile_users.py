"""Hostile users against another org, whose searches, chats and ingestion must not slow down.

All users come through the reverse proxy of deploy/nginx.conf.template, which limits the rate of each address.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from local import ROOT
from tests.actors import Actor, World
from tests.conftest import People
from tests.isolation.hostile_client_process import LASTING, SECONDS_TO_WAIT, Task
from tests.process_faults import private_bytes
from tests.reverse_proxy import reverse_proxy

pytestmark = pytest.mark.long
# The duration of the attack. The quiet baseline before it takes a quarter of that, at most ten minutes.
SECONDS = float(os.environ.get("RAG_HOSTILE_SECONDS", "3600"))
MOST_SLOWDOWN, MOST_BYTES = 3.0, 400 << 20
# Between two requests of the attacked org.
PAUSE_SECONDS = 0.2
QUESTION = "How hot does the kettle become?"
DOCUMENTS = 40


@dataclass
class Times:
    """The duration of each request by its kind, in seconds, and the responses that were errors."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def p95(self, kind: str) -> float:
        ordered = sorted(self.seconds[kind])
        return ordered[int(len(ordered) * 0.95)]


def text(number: int) -> str:
    return f"Kettle {number} becomes {60 + number} degrees hot. It holds {number} litres. " * 5


def requests(actor: Actor, address: str, client: httpx.Client) -> dict[str, Callable[[int], httpx.Response]]:
    """The requests of the attacked org, by kind, as functions of a counter."""

    def send(path: str, body: object) -> httpx.Response:
        return client.post(f"{address}{path}", json=body, headers=actor.headers())

    def ingest(number: int) -> httpx.Response:
        place = number % DOCUMENTS
        body = {"documents": [{"document_id": str(place), "text": text(place)}]}
        return send("/api/v1/knowledge/kettles/documents", body)

    return {
        "search": lambda _: send("/api/rag/search", {"query_text": QUESTION}),
        "chat": lambda _: send("/api/v1/chat", {"message": QUESTION, "stream": False}),
        "ingest": ingest,
    }


def work(actor: Actor, address: str, seconds: float) -> Times:
    """Run one client of each kind for so many seconds."""
    times = Times()
    until = time.monotonic() + seconds

    def repeat(kind: str) -> None:
        with httpx.Client(timeout=SECONDS_TO_WAIT) as client:
            send = requests(actor, address, client)[kind]
            number = 0
            while time.monotonic() < until:
                started = time.perf_counter()
                try:
                    answer = send(number)
                    if answer.is_error:
                        times.errors.append(f"{kind} {answer.status_code} {answer.text[:200]}")
                except httpx.TransportError as error:
                    times.errors.append(f"{kind} {type(error).__name__} {error}")
                times.seconds.setdefault(kind, []).append(time.perf_counter() - started)
                number += 1
                time.sleep(PAUSE_SECONDS)

    threads = [threading.Thread(target=repeat, args=[kind]) for kind in ("search", "chat", "ingest")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


@contextmanager
def attacked(tasks: list[Task]) -> Iterator[list[dict[str, int]]]:
    """Attackers run meanwhile, each in a process; the list has the counts of their responses afterwards."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.isolation.hostile_client_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        for _ in tasks
    ]
    answers: list[dict[str, int]] = []
    try:
        for process, task in zip(processes, tasks, strict=True):
            assert process.stdin is not None
            process.stdin.write(json.dumps(asdict(task)).encode())
            process.stdin.close()
            process.stdin = None
        yield answers
        answers += [json.loads(process.communicate(timeout=3 * SECONDS_TO_WAIT)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextmanager
def watched(postmaster: psutil.Process) -> Iterator[list[int]]:
    """The largest private memory of a Postgres backend meanwhile, in bytes."""
    largest = [0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            for process in postmaster.children():
                largest[0] = max(largest[0], private_bytes(process.pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield largest
    finally:
        ended.set()
        thread.join()


def task_of(actor: Actor, world: World, address: str, seed: int) -> Task:
    org = actor.org
    assert org is not None
    chunks = world.sql("select id::text, document_id::text from rag.chunks where org_id = %s", org.id)
    ((collection,),) = world.sql(
        "select distinct collection_id::text from rag.chunks where org_id = %s", org.id
    )
    ((vector,),) = world.sql("select embedding::text from rag.chunks where org_id = %s limit 1", org.id)
    return Task(
        url=address,
        source=f"127.0.0.{1 + seed}",
        headers=actor.direct().headers(),
        org_id=org.id,
        collection_id=collection,
        document_ids=list({document for _, document in chunks}),
        chunk_ids=[chunk for chunk, _ in chunks],
        vector=json.loads(vector),
        seconds=SECONDS,
        seed=seed,
    )


def fill(actor: Actor, namespace: str) -> None:
    documents = [{"document_id": str(place), "text": text(place)} for place in range(DOCUMENTS)]
    path = f"/api/v1/knowledge/{namespace}/documents"
    answer = actor.request("POST", path, {"documents": documents})
    assert answer.status_code == 201, answer.text


@pytest.fixture(autouse=True)
def _default_limits(world: World) -> Iterator[None]:
    limits = "reads_per_user, reads_per_org, writes_per_user, writes_per_org"
    (row,) = world.sql(f"select {limits} from rag.settings")
    world.sql(f"update rag.settings set ({limits}) = (default, default, default, default)")
    yield
    world.sql(f"update rag.settings set ({limits}) = (%s, %s, %s, %s)", *row)


def test_two_hostile_users_do_not_slow_another_org_down(people: People, world: World, tmp_path: Path):
    fill(people.bob, "kettles")
    fill(people.ann, LASTING)
    world.tier(people.bolt, rag=10**6, api=10**6)
    postmaster = psutil.Process(people.bob.stack.state.children["postgres"].pid)

    state = people.bob.stack.state
    with reverse_proxy(state.port, state.postgrest_port, tmp_path) as address:
        work(people.bob, address, min(10, SECONDS / 20))
        quiet = work(people.bob, address, min(600, SECONDS / 4))
        tasks = [
            task_of(people.ann, world, address, 1),
            task_of(people.alf, world, address, 2),
        ]
        with watched(postmaster) as largest, attacked(tasks) as answers:
            busy = work(people.bob, address, SECONDS)

    rows = {kind: (quiet.p95(kind), busy.p95(kind)) for kind in quiet.seconds}
    print(f"p95 in seconds, quiet and attacked: {rows}")  # noqa: T201
    print(f"requests: { {kind: len(times) for kind, times in busy.seconds.items()} }")  # noqa: T201
    print(f"largest private memory of a backend: {largest[0] >> 20} MB")  # noqa: T201
    print(json.dumps(answers, indent=1))  # noqa: T201
    assert quiet.errors == busy.errors == []
    assert sum(sum(counts.values()) for counts in answers) > SECONDS
    assert largest[0] < MOST_BYTES
    assert {kind: pair for kind, pair in rows.items() if pair[1] > MOST_SLOWDOWN * pair[0]} == {}
