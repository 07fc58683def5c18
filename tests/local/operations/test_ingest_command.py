"""python -m local ingest PATH: a folder's files, as documents of a collection, again and again."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from local import ROOT
from shared.documents.documents import MAX_BYTES
from tests.actors import Actor, World
from tests.conftest import People
from tests.external_programs import call_worker, run_worker
from tests.local.command_line import run_local
from tests.shared import sample_files

# The worker finds no other test's jobs.
pytestmark = pytest.mark.usefixtures("no_jobs")
Row = dict[str, Any]


def ingest(actor: Actor, *arguments: object, **variables: str) -> CompletedProcess[str]:
    """Run `python -m local ingest` as that user, or with the token in RAG_TOKEN."""
    who = ["--url", actor.stack.url] if "RAG_TOKEN" in variables else ["--user", actor.email]
    return run_local(actor.stack.folder, "ingest", *arguments, *who, **variables)


def bring(actor: Actor, *arguments: object, status: int = 0, **variables: str) -> str:
    """What it prints, while a worker works."""
    with run_worker(actor.stack):
        done = ingest(actor, *arguments, **variables)
    printed = done.stdout + done.stderr
    assert done.returncode == status, printed
    return printed


def documents(world: World, people: People) -> dict[str, tuple[str, str, Any]]:
    """By path: id, status and when it changed last."""
    rows = world.sql(
        "select metadata ->> 'path', id::text, status, updated_at from rag.documents where org_id = %s",
        people.acme.id,
    )
    assert len({path for path, *_ in rows}) == len(rows)
    return {path: (identity, status, changed) for path, identity, status, changed in rows}


def search_texts(actor: Actor, text: str) -> list[str]:
    answer = actor.search(text)
    assert answer.status_code == 200, answer.text
    return [result["snippet"] for result in answer.json()["results"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shelf"
    (made / "deep").mkdir(parents=True)
    (made / "kiln.md").write_text("# Firing\n\nThe kiln is opened after a whole day.")
    (made / "deep" / "kiln.pdf").write_bytes(sample_files.pdf(1))
    (made / "deep" / "prices.csv").write_text("item,price\nclay,3.50\n")
    (made / "logo.png").write_bytes(b"\x89PNG")
    (made / ".hidden.md").write_text("nobody's")
    return made


def test_a_folder_is_sent_once_and_searchable(people: People, world: World, folder: Path):
    printed = bring(people.ann, folder, "--collection", "shelf")
    assert "3 completed, 1 of unsupported types, not sent (.png 1; pictures are read where" in printed
    # The bars, with the rate and the remaining time.
    rate = r" 3/3 \d:\d\d:\d\d +([\d.]+/s|[\d.]+/min|-/s) +left \d:\d\d:\d\d"
    assert [line.split()[0] for line in printed.splitlines() if re.search(rate, line)] == [
        "sent",
        "processed",
    ]
    assert any(
        "opened after a whole day" in text for text in search_texts(people.alf, "When is the kiln opened?")
    )
    assert search_texts(people.bob, "When is the kiln opened?") == []
    first = documents(world, people)
    assert set(first) == {"shelf/kiln.md", "shelf/deep/kiln.pdf", "shelf/deep/prices.csv"}
    assert {status for _, status, _ in first.values()} == {"completed"}

    jobs = world.sql("select count(*) from rag.jobs")
    printed = bring(people.alf, folder, "--collection", "shelf")
    assert "0 completed, 3 unchanged, 1 of unsupported types" in printed
    assert documents(world, people) == first
    assert world.sql("select count(*) from rag.jobs") == jobs
    # From a link to it, too; a file of it alone is known as well.
    assert "0 completed, 1 unchanged\n" in bring(people.ann, folder / "kiln.md", "--collection", "shelf")


def test_a_changed_file_replaces_its_document_and_a_deleted_file_s_document_stays_without_prune(
    people: People, world: World, folder: Path
):
    (folder / "notes").write_text("The glaze is blue.")
    bring(people.ann, folder)
    other = folder.parent / "other" / "wheel.md"
    other.parent.mkdir()
    other.write_text("The wheel turns.")
    bring(people.ann, other.parent)
    first = documents(world, people)

    (folder / "kiln.md").write_text("The kiln is opened after three days.")
    (folder / "deep" / "prices.csv").rename(folder / "costs.csv")
    assert "1 completed, 2 unchanged, 1 duplicates of existing documents" in bring(people.ann, folder)
    second = documents(world, people)
    assert second["shelf/kiln.md"][0] == first["shelf/kiln.md"][0]
    assert second["shelf/kiln.md"][2] > first["shelf/kiln.md"][2]
    assert {path: row for path, row in second.items() if path != "shelf/kiln.md"} == {
        path: row for path, row in first.items() if path != "shelf/kiln.md"
    }
    texts = " ".join(search_texts(people.alf, "When is the kiln opened?"))
    assert "opened after three days" in texts
    assert "opened after a whole day" not in texts

    # An empty file is passed over, but it is not gone.
    (folder / "notes").write_bytes(b"")
    printed = bring(people.ann, folder, "--prune")
    assert "1 completed, 2 unchanged, " in printed
    assert "1 documents of deleted files removed" in printed
    # Documents of another folder, and of no folder, stay.
    assert set(documents(world, people)) == {
        "shelf/notes",
        "shelf/kiln.md",
        "shelf/deep/kiln.pdf",
        "shelf/costs.csv",
        "other/wheel.md",
    }
    assert "--prune needs a folder" in bring(people.ann, folder / "kiln.md", "--prune", status=1)


def test_an_unreadable_file_is_sent_once_and_again_after_a_change(people: People, world: World, folder: Path):
    def jobs() -> int:
        ((count,),) = world.sql(
            "select count(*) from rag.jobs where kind = 'ingestion' and org_id = %s", people.acme.id
        )
        return int(count)

    broken = folder / "broken.pdf"
    broken.write_bytes(b"no PDF")
    (folder / "\x1b]0;x\x07.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    reason = "shelf/broken.pdf: processing_failed: This is not a whole PDF file"
    printed = bring(people.ann, folder, status=1)
    assert "3 completed, 1 skipped, 1 failed" in printed
    assert f"failed: {reason}" in printed
    too_large = "file_too_large: A file may have at most 6 MB. Divide it, and upload the parts."
    assert f"skipped: shelf/]0;x.txt: {too_large}\n" in printed
    assert "error: 1 of 5 files failed; correct and send them again\n" in printed
    assert documents(world, people)["shelf/broken.pdf"][1] == "failed"

    sent = jobs()
    # Of another name, too, the content stays what it is.
    (folder / "copy.pdf").write_bytes(b"no PDF")
    printed = bring(people.ann, folder)
    assert "0 completed, 3 unchanged, 3 skipped, 1 of unsupported types" in printed
    assert f"skipped: {reason}" in printed
    assert jobs() == sent
    assert "0 completed, 1 failed" in bring(people.ann, broken, "--retry", status=1)
    assert jobs() == sent + 1

    broken.write_bytes(sample_files.pdf(2))
    assert "1 completed\n" in bring(people.ann, broken)
    # Now an earlier version is found, and the broken one is still sent once.
    broken.write_bytes(b"no PDF any more")
    assert "0 completed, 1 failed" in bring(people.ann, broken, status=1)
    sent = jobs()
    assert "0 completed, 1 skipped\n" in bring(people.ann, broken)
    assert jobs() == sent
    # A setting of the deployment may change.
    world.sql("update rag.documents set error_code = 'unknown_embedding_model' where status = 'failed'")
    assert "1 sent" in ingest(people.ann, broken, "--no-wait").stdout


# More than four at a time send between the eighth document and the signal.
COUNT = 36


def test_an_interrupted_run_can_be_continued(people: People, world: World, tmp_path: Path):
    for number in range(COUNT):
        (tmp_path / f"{number}.txt").write_text(f"Shelf number {number}.")
    program = (sys.executable, "-m", "local")
    running = subprocess.Popen(
        [*program, "--data", people.ann.stack.folder, "ingest", tmp_path, "--user", people.ann.email],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while len(documents(world, people)) < 8 and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    printed, complaints = running.communicate(timeout=120)
    assert running.returncode == 130, complaints
    assert "Run the same command again to continue." in printed
    half = documents(world, people)
    assert 8 <= len(half) < COUNT

    rest = COUNT - len(half)
    assert f" {rest}/{rest} " in bring(people.ann, tmp_path)
    whole = documents(world, people)
    assert len(whole) == COUNT
    assert {status for _, status, _ in whole.values()} == {"completed"}
    assert {path: identity for path, (identity, *_) in whole.items() if path in half} == {
        path: identity for path, (identity, *_) in half.items()
    }
    assert world.sql("select max(attempts), count(*) from rag.jobs where kind = 'ingestion'") == [(1, COUNT)]


def test_no_wait_ends_after_sending(people: People, world: World, folder: Path):
    printed = ingest(people.ann, folder, "--no-wait").stdout
    assert "3 sent, 1 of unsupported types" in printed
    sent = documents(world, people)
    assert {status for _, status, _ in sent.values()} == {"processing"}
    # What the worker has still to do is not sent again.
    printed = ingest(people.ann, folder, "--no-wait").stdout
    assert "0 sent, 1 of unsupported types" in printed
    assert documents(world, people) == sent


def test_an_exhausted_quota_is_reported_for_each_file(people: People, world: World, tmp_path: Path):
    world.sql("update rag.orgs set tier = 'free' where id = %s", people.acme.id)
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(f"Shelf number {number}.")
    printed = bring(people.ann, tmp_path, status=1)
    assert "10 completed, 2 failed\n" in printed
    assert printed.count("rate_limit_exceeded: The tier of your org allows 10 documents") == 2
    # There is room for another version of an existing one.
    path = next(iter(documents(world, people)))
    (tmp_path / Path(path).name).write_text("Changed.")
    assert "1 completed, 9 unchanged, 2 failed\n" in bring(people.ann, tmp_path, status=1)


def test_a_member_of_several_orgs_must_name_one(people: People, world: World, folder: Path):
    assert "org" in bring(people.kim, folder, status=1)
    assert documents(world, people) == {}
    bring(people.kim, folder, "--org", people.acme.id)
    bring(people.kim, folder, "--org", people.bolt.id)
    assert len(documents(world, people)) == 3
    assert "several of your orgs have a collection default" in bring(people.kim, folder, status=1)


def test_another_deployment_needs_a_key_in_the_environment(people: People, world: World, folder: Path):
    body = {"name": "files", "scopes": ["documents:read", "documents:write", "collections:manage"]}
    key = people.ann.post("/api/keys", body).json()["key"]
    assert "3 completed" in bring(people.ann, folder, RAG_TOKEN=key)
    assert len(documents(world, people)) == 3
    assert "error: 401: " in bring(people.ann, folder, RAG_TOKEN="wrong", status=1)


def test_another_user_s_private_document_of_the_same_name_is_separate(
    people: People, world: World, folder: Path
):
    bring(people.ann, folder)
    ((home,),) = world.sql("select id::text from rag.collections where org_id = %s", people.acme.id)
    private = {
        "collection_id": home,
        "content": "Alf's own.",
        "external_id": "shelf/gone.md",
        "private": True,
    }
    response = people.alf.post("/api/v1/documents/text", {**private, "metadata": {"path": "shelf/gone.md"}})
    assert response.status_code == 202, response.text
    assert call_worker(people.alf.stack).is_success
    assert "0 completed, 3 unchanged, 1 of unsupported types" in bring(people.ada, folder, "--prune")
    assert people.alf.request("GET", f"/api/v1/documents/{response.json()['id']}").status_code == 200
