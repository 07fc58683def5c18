"""Workers that are killed, at whatever moment: no document is lost, none is there twice."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from local.tools import ROOT
from shared import collections, documents
from shared.documents import Brought
from shared.pipeline import Pipeline
from shared.work import Worker
from tests.actors import World
from tests.conftest import People
from tests.sql.test_27_index_words import drift

KILLED, AT_MOST = 5, 40
DOCUMENTS = 120


def run_and_kill(people: People, seconds: float) -> None:
    environment = {**people.ann.stack.function_environment(), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "tests.shared.worker_process"]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)


@pytest.mark.usefixtures("no_jobs")
def test_whatever_is_killed_every_document_is_found_once(core: Pipeline, people: People, world: World):
    home = collections.create(core.database, people.ann.principal, {"name": "docs"})["id"]
    text = "The kiln number {} is hot. " + "It cools for a whole day, and then it is opened. " * 12
    brought = [
        documents.bring(
            core.database, people.ann.principal, home,
            Brought(text.format(number).encode(), f"Kiln {number}", content_type="text/plain"),
        )
        for number in range(DOCUMENTS)
    ]  # fmt: skip
    draw = random.Random(7)  # noqa: S311  # not a secret
    kills, left = 0, DOCUMENTS
    # Until some documents are done, however slow the machine is.
    while kills < KILLED or (left == DOCUMENTS and kills < AT_MOST):
        run_and_kill(people, draw.uniform(0, 1))
        kills += 1
        # The leases of the dead run out at once, here.
        world.sql("update rag.jobs set due_at = now() where state = 'running'")
        left = world.sql("select count(*) from rag.jobs where state in ('waiting', 'running')")[0][0]
    assert 0 < left < DOCUMENTS, "they were killed too early, or too late, to tell anything"

    worker = Worker(core.database, core.embedder, core.require_signer())
    while world.sql("select count(*) from rag.jobs where state in ('waiting', 'running')") != [(0,)]:
        # What a dead worker had asked for may have been carried out after its end: a claim, a longer lease.
        world.sql("update rag.jobs set due_at = now() where state in ('waiting', 'running')")
        worker.work(16)
    rows = world.sql(
        "select documents.id::text, status, count(chunks.id), count(distinct chunks.ordinal), "
        "  max(chunks.ordinal) + 1 "
        "from rag.documents left join rag.chunks on chunks.document_id = documents.id "
        "where documents.collection_id = %s group by documents.id, status",
        home,
    )
    assert {row[0] for row in rows} == {row["id"] for row in brought}
    assert {row[1] for row in rows} == {"completed"}
    whole = max(row[2] for row in rows)
    assert whole > 1
    assert {row[2:] for row in rows} == {(whole, whole, whole)}
    orphans = (
        "select count(*) from rag.chunks "
        "where collection_id = %s and document_id not in (select id from rag.documents)"
    )
    assert world.sql(orphans, home) == [(0,)]
    assert drift(world, people) == []
