"""What Storage may answer, and what becomes of it; never a word of it, since it carries tokens."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from shared.clients.supabase_storage import Storage
from shared.errors import NotFound, StorageFailed, UnreadableDocument
from shared.types import Principal
from tests.stand_in_server import Reply, StandIn

ANN = Principal("ann", "eyJ.ann.token")
PATH = "org/collection/user/new/kiln.pdf"
GONE = {"statusCode": "404", "error": "not_found", "message": "Object not found"}


@pytest.fixture
def storage(service: StandIn) -> Iterator[Storage]:
    with closing(Storage(service.url, "anon", "bucket")) as made:
        yield made


@contextmanager
def server_and_storage() -> Iterator[tuple[StandIn, Storage]]:
    with StandIn() as service, closing(Storage(service.url, "anon", "bucket")) as storage:
        yield service, storage


def test_a_link_to_an_object_names_the_file(service: StandIn, storage: Storage):
    service.replies(Reply(json={"signedURL": "/object/sign/bucket/x?token=t"}))
    link = storage.download_link(ANN, PATH, "a&b/é .pdf")
    assert link.endswith("/storage/v1/object/sign/bucket/x?token=t&download=a%26b%2F%C3%A9%20.pdf")
    assert service.requests[0].json == {"expiresIn": "60"}


def test_an_invalid_response_is_a_failure_without_details(subtests: pytest.Subtests):
    replies: list[tuple[Reply, str]] = [
        (Reply(status=500, json={"message": "eyJ.secret"}), "storage 500"),
        (Reply(status=400, json={"statusCode": "403", "error": "Unauthorized"}), "storage 403"),
        (Reply(status=400, json={"statusCode": "404", "error": "Bucket not found"}), "storage 404"),
        (Reply(status=302, body=b"", headers={"Location": "http://169.254.169.254/"}), "storage 302"),
        (Reply(drop=True), "RemoteProtocolError"),
        (Reply(body=b"eyJ.secret"), "malformed response"),
    ]
    for call in ("upload_link", "download_link", "size_of", "remove"):
        for reply, log_reason in replies:
            with subtests.test(call=call, reply=reply), server_and_storage() as (service, storage):
                service.replies(reply)
                arguments = (ANN, PATH, "a.pdf") if call == "download_link" else (ANN, PATH)
                with pytest.raises(StorageFailed) as failed:
                    getattr(storage, call)(*arguments)
                assert failed.value.log_reason == log_reason
                assert str(failed.value) == "The file storage could not answer. Please try again."


def test_a_url_below_another_host_and_a_size_that_is_no_number_are_failures(subtests: pytest.Subtests):
    cases: list[Any] = [
        {}, [], {"url": 1}, {"url": "https://elsewhere.example/object/?token=t"},
        {"url": "//elsewhere.example/object/x?token=t"}, {"url": "/object/upload/sign/x"},
        {"size": None}, {"size": "7"},
    ]  # fmt: skip
    for text in cases:
        with subtests.test(text=text), server_and_storage() as (service, storage):
            service.replies(Reply(json=text))
            for call in (storage.upload_link, storage.size_of):
                with pytest.raises(StorageFailed):
                    call(ANN, PATH)


def test_a_missing_object_is_not_found(subtests: pytest.Subtests):
    replies: list[Any] = [GONE, {"statusCode": "404", "error": "Not Found", "code": "NoSuchKey"}]
    for status in (400, 404):
        for text in replies:
            with subtests.test(status=status, text=text), server_and_storage() as (service, storage):
                service.replies(Reply(status=status, json=text))
                for call in (storage.upload_link, storage.size_of, storage.download):
                    with pytest.raises(NotFound):
                        call(ANN, PATH)


def test_no_more_than_the_limit_is_read(service: StandIn, storage: Storage):
    service.replies(Reply(body=b"x" * 100_000))
    assert storage.download(ANN, PATH, 100_000) == b"x" * 100_000
    with pytest.raises(UnreadableDocument) as refused:
        storage.download(ANN, PATH, 99_999)
    assert refused.value.code == "file_too_large"


def test_a_slow_object_is_abandoned_at_the_deadline(
    service: StandIn, storage: Storage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("shared.clients.supabase_storage.DOWNLOAD_SECONDS", 0.5)
    service.replies(Reply(body=b"x" * 100, drip=0.05))
    with pytest.raises(StorageFailed) as failed:
        storage.download(ANN, PATH)
    assert str(failed.value.log_reason).endswith("Timeout")
