"""Files above the size of a request: the Python SDK uploads them to the project's storage."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from functions import documents
from mnemosyne import APIConnectionError, AsyncMnemosyne, ConflictError, Mnemosyne, UploadFailedError
from mnemosyne.uploads import MAX_REQUEST_BYTES
from shared.documents.documents import MAX_BYTES
from tests.conftest import People
from tests.functions.app_server import live
from tests.functions.test_documents import collection
from tests.sdk.python_client import HOME, key_of, ran
from tests.stand_in_server import Reply, StandIn
from tests.upload_client import Uploads, page

LARGE = page("The kiln is hot.", MAX_BYTES + 1)


@pytest.fixture
def address(uploading: Uploads) -> Iterator[str]:
    with live(documents.app, uploading.services) as url:
        yield f"{url}/api/v1"


def test_the_limit_is_the_server_s():
    assert MAX_REQUEST_BYTES == MAX_BYTES


def test_a_large_file_is_created_from_a_path_with_progress(
    uploading: Uploads, address: str, people: People, tmp_path: Path
):
    path = tmp_path / "kiln é.html"
    path.write_bytes(LARGE)
    progress: list[tuple[int, int]] = []
    with Mnemosyne(key_of(people.ann), address) as client:
        document = client.documents.create(
            collection(people.ann, "docs"), str(path), metadata={"author": "Ann"}, external_id="kiln",
            on_progress=lambda sent, size: progress.append((sent, size)),
        )  # fmt: skip
        assert (document.status, document.filename) == ("processing", "kiln é.html")
        assert document.size_bytes == len(LARGE)
        assert document.metadata == {"author": "Ann"}
        assert progress[-1] == (len(LARGE), len(LARGE))
        assert progress == sorted(progress)
        assert uploading.work().completed == 1
        assert client.documents.get(document.id).status == "completed"


def test_an_open_file_and_the_asynchronous_client(uploading: Uploads, address: str, people: People):
    home = collection(people.ann, "docs")
    file = io.BytesIO(LARGE)
    file.seek(100)

    async def create() -> Any:
        async with AsyncMnemosyne(key_of(people.ann), address) as client:
            return await client.documents.create(home, file, filename="kiln.html")

    assert ran(create()).size_bytes == len(LARGE)
    assert not file.closed


def test_a_repeated_call_with_the_same_idempotency_key_returns_the_first_document(
    uploading: Uploads, address: str, people: People
):
    home = collection(people.ann, "docs")
    with Mnemosyne(key_of(people.ann), address) as client:

        def create(file: bytes = LARGE, **fields: Any) -> str:
            keyed = {"filename": "kiln.html", "idempotency_key": "import-7", **fields}
            return client.documents.create(home, file, **keyed).id

        first = create()
        assert create() == first
        for other in ({"file": LARGE[:-1] + b" "}, {"private": True}, {"metadata": {"a": 1}}):
            with pytest.raises(ConflictError) as raised:
                create(**other)
            assert raised.value.code == "idempotency_mismatch"
        assert [document.id for document in client.documents.list(home)] == [first]


@pytest.fixture
def storage() -> Iterator[StandIn]:
    with StandIn() as storage:
        yield storage


@pytest.fixture
def client(storage: StandIn) -> Iterator[Mnemosyne]:
    """Its HTTP client has credentials of the caller's own for other hosts."""
    headers, cookies = {"Authorization": "Bearer own-7f3x", "X-Own": "own-7f3x"}, {"session": "own-7f3x"}
    with StandIn() as api, httpx.Client(headers=headers, cookies=cookies) as http_client:
        url = f"{storage.url}/object?token=secret-7f3x"
        api.replies(Reply(json={"upload_url": url, "upload": "ticket-7f3x", "expires_at": "2026-01-01"}))
        with Mnemosyne("mn_live_7f3x", f"{api.url}/api/v1", http_client=http_client) as client:
            yield client
        assert [request.path for request in api.requests] == ["/api/v1/documents/upload"]


def test_storage_gets_no_credential_and_its_error_names_it(storage: StandIn, client: Mnemosyne):
    storage.replies(Reply(drop=True))
    with pytest.raises(APIConnectionError, match=f"^Storage at {re.escape(storage.url)} ") as raised:
        client.documents.create(HOME, LARGE, filename="kiln.html")
    assert "7f3x" not in f"{raised.value} {raised.value.__context__} {raised.value.__cause__}"
    (request,) = storage.requests
    assert request.path == "/object?token=secret-7f3x"
    assert "7f3x" not in str(request.headers)
    assert (request.headers["content-type"], request.headers["content-length"]) == (
        "text/html", str(len(LARGE)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        # The form of Storage's errors, one that repeats the token, and a proxy's page.
        (Reply(status=409, json={"statusCode": "409", "error": "Duplicate", "message": "exists"}), "exists"),
        (Reply(status=403, json={"message": "bad token secret-7f3x"}), "bad token [the token]"),
        (Reply(status=502, body=b"<html>secret-7f3x"), "it gave no reason"),
    ],
)
def test_an_error_of_storage_has_its_reason_and_status(
    storage: StandIn, client: Mnemosyne, reply: Reply, reason: str
):
    storage.replies(reply)
    with pytest.raises(UploadFailedError) as raised:
        client.documents.create(HOME, LARGE, filename="kiln.html")
    message = f"Storage did not accept the file: {reason}. Create the document again. (status {reply.status})"
    assert (str(raised.value), raised.value.status_code) == (message, reply.status)
