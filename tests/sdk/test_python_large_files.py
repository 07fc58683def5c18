"""Files above the size of a request: the Python SDK uploads them to the project's storage."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions import documents
from mnemosyne import APIConnectionError, AsyncMnemosyne, Mnemosyne, PermissionDeniedError
from mnemosyne.uploads import MAX_REQUEST_BYTES
from shared.documents.documents import MAX_BYTES
from tests.conftest import People
from tests.functions.app_server import live
from tests.functions.test_documents import collection
from tests.sdk.python_client import key_of, ran
from tests.stand_in_server import Reply, StandIn
from tests.upload_client import Uploads, page

LARGE = page("The kiln is hot.", MAX_BYTES + 1)


@pytest.fixture
def address(uploading: Uploads) -> Iterator[str]:
    with live(documents.app, uploading.core) as url:
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
            collection(people.ann, "docs"),
            str(path),
            metadata={"author": "Ann"},
            external_id="kiln",
            on_progress=lambda sent, size: progress.append((sent, size)),
        )
        assert (document.status, document.filename, document.size_bytes) == (
            "processing", "kiln é.html", len(LARGE),
        )  # fmt: skip
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


def test_a_key_without_the_scope_uploads_nothing(uploading: Uploads, address: str, people: People):
    home = collection(people.ann, "docs")
    key = key_of(people.ann, scopes=["documents:read"])
    with Mnemosyne(key, address) as client, pytest.raises(PermissionDeniedError):
        client.documents.create(home, LARGE, filename="kiln.html")
    assert uploading.world.sql("select count(*) from storage.objects") == [(0,)]


def test_the_signed_url_gets_no_key_and_is_in_no_error():
    with StandIn() as storage, StandIn() as api:
        url = f"{storage.url}/object?token=secret-7f3x"
        api.replies(Reply(json={"upload_url": url, "upload": "ticket-7f3x", "expires_at": "2026-01-01"}))
        storage.replies(Reply(drop=True))
        with (
            Mnemosyne("mn_live_key", f"{api.url}/api/v1") as client,
            pytest.raises(APIConnectionError) as raised,
        ):
            client.documents.create("c1", LARGE, filename="kiln.html")
        assert "7f3x" not in f"{raised.value} {raised.value.__context__} {raised.value.__cause__}"
        assert [request.path for request in api.requests] == ["/api/v1/documents/upload"]
        assert storage.requests
        assert all("authorization" not in request.headers for request in storage.requests)
