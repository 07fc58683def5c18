"""Ingestion jobs for an org's admins over HTTP: listed by state, run again in the admin's name."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.actors import NOBODYS, Actor, World
from tests.conftest import People
from tests.functions.app_server import json_of, platform_error
from tests.functions.test_documents import accepted, collection, get, upload, work, write
from tests.process_faults import long_lock_waits, wait_for_waiters

JOBS, RETRY = "/api/v1/jobs", "/api/v1/jobs/retry"
BROKEN = b"%PDF-1.7 and nothing that a parser understands"
LEASE = "update rag.jobs set state = 'running', lease = gen_random_uuid() where id = %s"
Row = dict[str, Any]
# The worker finds no other test's jobs.
pytestmark = pytest.mark.usefixtures("no_jobs")


def jobs(actor: Actor, query: str = "") -> list[Row]:
    body = json_of(actor.request("GET", f"{JOBS}{query}"))
    assert body["pagination"]["total"] >= len(body["data"])
    rows: list[Row] = body["data"]
    return rows


def retry(actor: Actor, *ids: str) -> list[str]:
    retried: list[str] = json_of(actor.request("POST", RETRY, {"job_ids": ids}), 202)["job_ids"]
    return retried


def fail(actor: Actor, home: str, name: str = "kiln.pdf", **form: str) -> Row:
    """A document that the worker could not read."""
    document = accepted(upload(actor, home, BROKEN + name.encode(), name, "application/pdf", **form))
    work(actor)
    assert get(actor, document)["status"] == "failed"
    return document


def test_a_failed_job_is_listed_with_its_reason_until_the_document_has_a_later_one(people: People):
    home = collection(people.ann, "docs")
    document = fail(people.ann, home, private="true", external_id="kiln")
    waiting = accepted(write(people.ann, home))
    (first, second) = jobs(people.ada)
    assert [first["document_id"], second["document_id"]] == [waiting["id"], document["id"]]
    assert (first["state"], first["error"], first["attempts"]) == ("waiting", None, 0)
    assert first["next_attempt_at"] is not None
    assert (second["state"], second["title"], second["collection"]) == ("failed", "kiln.pdf", "docs")
    assert (second["user_id"], second["next_attempt_at"]) == (people.ann.id, None)
    assert second["error"] == get(people.ann, document)["error"]
    assert [row["id"] for row in jobs(people.ada, "?state=failed")] == [second["id"]]
    assert [row["id"] for row in jobs(people.ada, "?limit=1&offset=1")] == [second["id"]]
    accepted(upload(people.ann, home, b"The kiln is hot now.", private="true", external_id="kiln"))
    work(people.ann)
    assert jobs(people.ada) == []


def test_a_retry_runs_in_the_admin_s_name_and_keeps_changes_of_title_and_metadata(
    people: People, world: World
):
    home = collection(people.ann, "docs")
    document = fail(people.ann, home, private="true", metadata='{"author": "Ann"}')
    people.ann.request(
        "PATCH", f"/v1/documents/{document['id']}", {"title": "The kiln", "metadata": {"author": "Ada"}}
    )
    # The file is readable now: as if a parser had been missing.
    world.sql("update rag.originals set bytes = %s where document_id = %s", b"# Oven\n\nHot.", document["id"])
    world.sql(
        'update rag.jobs set document = document || \'{"content_type": "text/plain", "filename": "a.txt"}\' '
        "where document_id = %s",
        document["id"],
    )
    (failed,) = jobs(people.ada)
    assert retry(people.ada, failed["id"]) == [failed["id"]]
    (job,) = jobs(people.ada)
    assert (job["state"], job["attempts"], job["user_id"]) == ("waiting", 0, people.ada.id)
    assert get(people.ann, document)["status"] == "processing"
    work(people.ada)
    done = get(people.ann, document)
    assert (done["status"], done["title"], done["metadata"]) == ("completed", "The kiln", {"author": "Ada"})
    # It is still Ann's own.
    assert (done["owner_id"], done["user_id"]) == (people.ann.id, people.ann.id)
    assert people.alf.request("GET", f"/v1/documents/{document['id']}").status_code == 404
    # Neither the old job nor the finished one runs again.
    assert retry(people.ada, failed["id"], job["id"]) == []


def test_a_waiting_job_runs_now_with_all_attempts_and_a_running_one_is_left_alone(
    people: People, world: World
):
    home = collection(people.ann, "docs")
    document = accepted(write(people.ann, home))
    postpone = "update rag.jobs set attempts = 9, due_at = now() + interval '1 day' where document_id = %s"
    world.sql(postpone, document["id"])
    (waiting,) = jobs(people.ada)
    assert retry(people.ada, waiting["id"]) == [waiting["id"]]
    work(people.ada)
    assert get(people.ann, document)["status"] == "completed"
    accepted(write(people.ann, home, "The kiln is cold."))
    (running,) = jobs(people.ada)
    world.sql(LEASE, running["id"])
    assert retry(people.ada, running["id"]) == []
    assert [row["id"] for row in jobs(people.ada, "?state=running")] == [running["id"]]


def test_a_job_that_a_worker_claims_during_the_retry_keeps_running(people: People, world: World):
    accepted(write(people.ann, collection(people.ann, "docs")))
    (job,) = jobs(people.ada)
    url = world.stack.database_url()
    with long_lock_waits(world.stack), psycopg.connect(url) as worker, ThreadPoolExecutor() as threads:
        worker.execute(LEASE, [job["id"]])
        retried = threads.submit(retry, people.ada, job["id"])
        wait_for_waiters(world.stack, 1)
        worker.commit()
        assert retried.result() == []
    assert [row["id"] for row in jobs(people.ada, "?state=running")] == [job["id"]]


def test_an_invalid_retry_or_state_is_refused(people: People):
    assert retry(people.ada, NOBODYS) == []
    platform_error(people.ada.request("POST", RETRY, {"job_ids": ["x"]}), 400)
    refused = people.ada.rpc("rag_list_jobs", {"state": "done"})
    assert (refused.status_code, refused.json()["details"]) == (400, "invalid_state")


def test_the_job_of_a_deleted_file_keeps_its_reason(people: People):
    document = accepted(
        upload(people.ann, collection(people.ann, "docs"), b"\x1f\x8b" + b"\0" * 100, "a.bin")
    )
    work(people.ann)
    (failed,) = jobs(people.ada)
    assert failed["error"]["code"] == "unsupported_file_type"
    assert retry(people.ada, failed["id"]) == []
    assert get(people.ann, document)["error"] == failed["error"]
