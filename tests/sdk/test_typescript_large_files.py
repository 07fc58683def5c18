"""Files above the size of a request, and files by their path: the TypeScript SDK opens and uploads them."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions import documents
from shared.documents.documents import MAX_BYTES
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.app_server import live
from tests.functions.test_documents import collection
from tests.sdk.python_client import key_of
from tests.sdk.typescript_package import HOME, KEY, SCRIPTS, Package, Row
from tests.stand_in_server import Reply, StandIn
from tests.upload_client import Uploads, page

FILE = page("The kiln is hot.", MAX_BYTES + 1)


@pytest.fixture
def address(uploading: Uploads) -> Iterator[str]:
    with live(documents.app, uploading.services) as url:
        yield f"{url}/api/v1"


def create(home: str, file: Row, **fields: object) -> Row:
    return {"call": "documents.create", "args": [{"collectionId": home, **fields}], "file": file}


def test_a_large_file_is_created_from_a_path_with_progress(
    typescript: Package, uploading: Uploads, address: str, people: People, tmp_path: Path
):
    path = tmp_path / "kiln é.html"
    path.write_bytes(FILE)
    step = create(
        collection(people.ann, "docs"), {"kind": "path", "path": str(path)},
        metadata={"a_b": {"cD": 1}}, externalId="kiln",
    )  # fmt: skip
    client = {"baseUrl": address, "apiKey": key_of(people.ann)}
    (made,) = typescript.results(client, {**step, "progress": True})
    document = made["value"]
    assert (document["filename"], document["sizeBytes"]) == ("kiln é.html", len(FILE))
    assert document["metadata"] == {"a_b": {"cD": 1}}
    assert document["progress"][-1] == [len(FILE), len(FILE)]
    assert len(document["progress"]) > 10
    assert document["progress"] == sorted(document["progress"])
    assert uploading.work().completed == 1
    (got,) = typescript.results(client, {"call": "documents.get", "args": [document["id"]]})
    assert got["value"]["status"] == "completed"


def test_a_repeated_large_upload_with_one_key_returns_the_first_document(
    typescript: Package, uploading: Uploads, address: str, people: People
):
    step = create(
        collection(people.ann, "docs"), {"kind": "large", "name": "kiln.html", "text": "hot"}
    )  # fmt: skip
    step["args"].append({"idempotencyKey": "import-7"})
    client = {"baseUrl": address, "apiKey": key_of(people.ann)}
    first, second = typescript.results(client, step, step)
    assert first["value"]["id"] == second["value"]["id"]


def test_a_page_uploads_a_large_file_with_progress(
    typescript: Package, uploading: Uploads, address: str, people: People, browser: str
):
    home = collection(people.ann, "docs")
    client = {"baseUrl": address, "apiKey": key_of(people.ann)}
    arguments = {"browser": browser, "dist": str(typescript.sdk / "dist"), "client": client}
    result = run_node(SCRIPTS / "browser.mjs", {**arguments, "collectionId": home})
    assert (result["filename"], result["progress"][-1]) == ("kiln.txt", [7_000_003, 7_000_003])
    assert result["path"] == "A browser opens no paths: pass a File or a Blob as file."
    assert result["atOnce"] == [7_000_004]
    assert [len(data) for data in uploading.server.objects.values()] == [7_000_003, 7_000_004]


def test_a_small_file_is_read_from_a_path_and_a_missing_one_is_an_error(
    typescript: Package, gateway: StandIn, tmp_path: Path
):
    path = tmp_path / "kiln.md"
    path.write_text("hot")
    gateway.replies(Reply(json={"id": "d"}))
    made, missing = typescript.results(
        {"baseUrl": gateway.url},
        create(HOME, {"kind": "path", "path": str(path)}),
        create(HOME, {"kind": "path", "path": str(tmp_path / "none.md")}),
    )
    assert made["value"] == {"id": "d"}
    (request,) = gateway.requests
    assert re.search(rb'filename="kiln.md"\r\nContent-Type: text/markdown\r\n\r\nhot', request.body)
    assert (missing["error"]["name"], "none.md cannot be opened" in missing["error"]["message"]) == (
        "MnemosyneError", True,
    )  # fmt: skip


def test_a_directory_and_a_pipe_are_refused_as_paths(typescript: Package, gateway: StandIn, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    paths = [tmp_path, tmp_path / "pipe"]
    steps = [create(HOME, {"kind": "path", "path": str(path)}) for path in paths]
    for result, path in zip(typescript.results({"baseUrl": gateway.url}, *steps), paths, strict=True):
        assert result["error"]["name"] == "MnemosyneError"
        assert result["error"]["message"].startswith(f"{path} is not a regular file.")
    assert gateway.requests == []


def test_a_file_that_changes_while_it_is_sent_is_an_error_without_a_retry(
    typescript: Package, gateway: StandIn, tmp_path: Path
):
    small, large = tmp_path / "small.md", tmp_path / "large.md"
    small.write_text("hot")
    large.write_bytes(FILE)
    gateway.replies(Reply(json={"upload_url": f"{gateway.url}/object", "upload": "ticket"}))
    for path, requests in ((small, 1), (large, 2)):
        step = create(HOME, {"kind": "path", "path": str(path)}, externalId="kiln")
        called = typescript.run(
            "driver.mjs",
            {"client": {"apiKey": KEY, "baseUrl": gateway.url}, "steps": [step], "growing": str(path)},
        )
        (result,) = called["results"]
        assert result["error"]["name"] == "MnemosyneError"
        assert result["error"]["message"].startswith("The file cannot be read.")
        assert result["asked"] == requests


def test_the_signed_url_gets_no_key_and_is_in_no_error(typescript: Package):
    with StandIn() as storage, StandIn() as api:
        url = f"{storage.url}/object?token=secret-7f3x"
        api.replies(Reply(json={"upload_url": url, "upload": "ticket-7f3x"}))
        storage.replies(Reply(drop=True), Reply(status=400, json={"message": f"no: {url}"}))
        step = create(HOME, {"kind": "large", "name": "kiln.html", "text": "hot"})
        results = typescript.results({"baseUrl": f"{api.url}/api/v1"}, step, step)
        dropped, refused = (result["error"] for result in results)
        assert (dropped["name"], refused["name"]) == ("APIConnectionError", "UploadFailedError")
        assert refused["message"].startswith("Storage did not accept the file: no: http")
        assert dropped["message"].startswith(f"Storage at {storage.url.removeprefix('http://')} could not be")
        assert "[cause]" in dropped["shown"]
        assert "7f3x" not in f"{dropped} {refused}"
        assert [request.path for request in api.requests] == ["/api/v1/documents/upload"] * 2
        assert len(storage.requests) == 2
        assert all("authorization" not in request.headers for request in storage.requests)
