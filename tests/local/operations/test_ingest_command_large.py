"""python -m local ingest PATH, of files that are too large for a request, where the deployment takes them."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from local import ROOT, access_tokens
from local.child_processes import free_port, is_responding, start, wait_until_ready
from shared.documents.documents import MAX_BYTES
from tests.actors import Actor, World
from tests.conftest import People
from tests.external_programs import run_worker
from tests.local.command_line import run_local
from tests.local.operations.test_ingest_command import documents
from tests.storage_server import BUCKET
from tests.upload_client import Uploads, page


@pytest.fixture
def deployment(uploading: Uploads, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Functions of their own beside the project with Storage; their address."""
    stack, port = uploading.world.stack, free_port()
    log = tmp_path_factory.mktemp("deployment") / "functions.log"
    environment = {
        **stack.function_environment(),
        "SUPABASE_URL": uploading.server.url,
        "SUPABASE_JWT_ISSUER": access_tokens.issuer(stack.url),
        "RAG_STORAGE_BUCKET": BUCKET,
        "RAG_WORKER_TOKEN": stack.state.worker_token,
        "RAG_FUNCTIONS": "collections,documents,ingest",
        "PORT": str(port),
        "WEB_CONCURRENCY": "1",
        "PYTHONPATH": str(ROOT),
    }
    child = start([sys.executable, "-m", "functions.server"], environment, log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_ready(partial(is_responding, f"{url}/health"), child, log)
        yield url
    finally:
        child.stop()


def bring(actor: Actor, url: str, folder: Path, status: int = 0) -> str:
    """What it prints, while a worker works."""
    stack = actor.stack
    with run_worker(stack, url):
        process = run_local(stack.folder, "ingest", folder, "--url", url, RAG_TOKEN=actor.token())
    printed = process.stdout + process.stderr
    assert process.returncode == status, printed
    return printed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shelf"
    made.mkdir()
    (made / "kiln.html").write_bytes(page("The kiln is opened after a whole day.", MAX_BYTES))
    (made / "wheel.md").write_text("The wheel turns.")
    return made


def test_large_files_are_uploaded_once_and_again_after_a_change(
    uploading: Uploads, deployment: str, people: People, world: World, folder: Path
):
    assert "2 completed\n" in bring(people.ann, deployment, folder)
    first = documents(world, people)
    assert {path: status for path, (_, status, _) in first.items()} == {
        "shelf/kiln.html": "completed",
        "shelf/wheel.md": "completed",
    }
    assert "0 completed, 2 unchanged\n" in bring(people.alf, deployment, folder)
    (folder / "kiln.html").write_bytes(page("The kiln is opened after three days.", MAX_BYTES))
    assert "1 completed, 1 unchanged\n" in bring(people.ann, deployment, folder)
    second = documents(world, people)
    assert second["shelf/kiln.html"][0] == first["shelf/kiln.html"][0]
    body = people.alf.search("When is the kiln opened?").json()["results"]
    assert body[0]["snippet"] == "The kiln is opened after three days."
    uploading.remove()
    assert len(uploading.paths) == 1
    (folder / "copy.html").write_bytes((folder / "kiln.html").read_bytes())
    printed = bring(people.ann, deployment, folder)
    assert "0 completed, 2 unchanged, 1 duplicates of existing documents" in printed
    assert set(documents(world, people)) == set(first)


def test_content_of_a_concurrent_upload_is_a_duplicate(
    uploading: Uploads, deployment: str, people: People, world: World, folder: Path
):
    body = people.ann.request("POST", "/api/v1/collections", {"name": "default"}).json()
    uploading.bring(people.alf, body["id"], (folder / "kiln.html").read_bytes())
    assert "1 completed, 1 duplicates of existing documents\n" in bring(people.ann, deployment, folder)
    printed = bring(people.ann, deployment, folder)
    assert "0 completed, 1 unchanged, 1 duplicates of existing documents\n" in printed


def test_refused_files_are_reported_one_by_one(deployment: str, people: People, world: World, folder: Path):
    world.tier(people.acme, file_bytes=MAX_BYTES)
    with (folder / "huge.txt").open("wb") as huge:
        huge.truncate(100 * 2**20 + 1)
    printed = bring(people.ann, deployment, folder)
    assert "1 completed, 2 skipped" in printed
    assert (
        f"skipped: shelf/kiln.html: file_too_large: The tier of your org allows files of at most {MAX_BYTES}"
        in printed
    )
    reason = "file_too_large: A file may have at most 100 MB. Divide it, and upload the parts."
    assert f"skipped: shelf/huge.txt: {reason}\n" in printed
