"""The Python SDK's requests on their way, to a real server that fails as it is told: repeated, raised, and
the key kept from other hosts. Asked by a client with a key."""

import io
import os
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from mnemosyne import (
    APIConnectionError,
    APIError,
    InternalServerError,
    Mnemosyne,
    RateLimitError,
    UnexpectedResponseError,
)
from tests.sdk.python_client import COLLECTION, DOCUMENT, HOME, KEY
from tests.stand_in_server import Reply, StandIn

# Retries without the waits.
pytestmark = pytest.mark.usefixtures("quick_sleep")
GONE = Reply(drop=True)
BUSY = Reply(status=503, headers={"Retry-After": "0"}, json={"error": {"message": "busy", "code": "x"}})
IN_PROGRESS = {"error": {"message": "wait", "code": "request_in_progress"}}
UNDER_WAY = Reply(status=409, headers={"Retry-After": "0"}, json=IN_PROGRESS)
COLLECTION_REPLY = Reply(json=COLLECTION)
DOCUMENT_REPLY = Reply(status=202, json=DOCUMENT)
MISSING = Reply(status=404, json={"error": {"message": "no", "code": "document_not_found"}})


@pytest.fixture
def client(gateway: StandIn) -> Iterator[Mnemosyne]:
    with Mnemosyne(KEY, gateway.url) as made:
        yield made


def test_a_read_is_retried_with_the_key_each_time(gateway: StandIn, client: Mnemosyne):
    gateway.replies(GONE, BUSY, COLLECTION_REPLY)
    assert client.collections.get(HOME).name == "docs"
    assert [request.path for request in gateway.requests] == [f"/collections/{HOME}"] * 3
    assert {request.headers["authorization"] for request in gateway.requests} == {f"Bearer {KEY}"}


def test_retries_are_limited(gateway: StandIn, client: Mnemosyne):
    gateway.replies(BUSY)
    with pytest.raises(InternalServerError) as raised:
        client.collections.get(HOME)
    assert (len(gateway.requests), raised.value.retry_after) == (3, 0.0)


def test_a_chat_with_a_lost_response_is_not_retried(gateway: StandIn, client: Mnemosyne):
    gateway.replies(GONE)
    with pytest.raises(APIConnectionError):
        client.chat.completions.create(HOME, [{"role": "user", "content": "what?"}])
    assert ["idempotency-key" in request.headers for request in gateway.requests] == [False]


MAKING: list[Callable[..., object]] = [
    lambda client, **more: client.collections.create("docs", **more),
    lambda client, **more: client.documents.create(HOME, b"words", **more),
    lambda client, **more: client.documents.create_from_text(HOME, "words", **more),
    lambda client, **more: client.documents.create_from_url(HOME, "https://docs.example/", **more),
]


def keys_of(gateway: StandIn) -> list[str | None]:
    return [request.headers.get("idempotency-key") for request in gateway.requests]


@pytest.mark.parametrize("make", MAKING)
def test_a_creation_is_retried_with_the_same_idempotency_key(
    gateway: StandIn, client: Mnemosyne, make: Callable[..., object]
):
    """The key is drawn for each call, unless the caller has one."""
    made = Reply(json=COLLECTION | DOCUMENT)
    gateway.replies(GONE, UNDER_WAY, made, made, GONE, made)
    make(client)
    make(client)
    make(client, idempotency_key="import-7 of ann")
    first, second, third, other, *own = keys_of(gateway)
    assert first == second == third != other
    assert first is not None
    assert other is not None
    assert own == ["import-7 of ann"] * 2
    with pytest.raises(ValueError, match="idempotency_key"):
        make(client, idempotency_key="é")
    assert len(gateway.requests) == 6


def test_a_creation_without_support_for_keys_is_sent_once_without_one(gateway: StandIn, client: Mnemosyne):
    """Unless the caller asked for a key, or an attempt may have been done."""
    full = Reply(status=429, json={"error": {"message": "too many", "code": "too_many_replies"}})
    gateway.replies(full, GONE, full, GONE, full)
    with pytest.raises(APIConnectionError):
        client.collections.create("docs")
    for key in ("mine", None):
        with pytest.raises(RateLimitError):
            client.collections.create("docs", idempotency_key=key)
    first, without, mine, *drawn = keys_of(gateway)
    assert (first is None, without, mine) == (False, None, "mine")
    assert (len(drawn), None in drawn) == (2, False)


def test_a_file_is_sent_again_from_its_start_and_a_pipe_with_all_that_it_had(
    gateway: StandIn, client: Mnemosyne
):
    gateway.replies(BUSY, DOCUMENT_REPLY, BUSY, DOCUMENT_REPLY)
    text = b"The kiln is hot." * 1000
    file = io.BytesIO(text)
    file.read(5)
    assert client.documents.create(HOME, file, filename="kiln.txt", metadata={"a": 1}).id == "d1"
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as end:
        end.write(text)
    with os.fdopen(reading, "rb") as pipe:
        client.documents.create(HOME, pipe, filename="kiln.txt")
    assert len(gateway.requests) == 4
    for request in gateway.requests:
        assert text in request.body
        assert b'filename="kiln.txt"' in request.body
        assert b"Content-Type: text/plain" in request.body


def test_a_deletion_of_the_first_attempt_counts_as_done(gateway: StandIn, client: Mnemosyne):
    gateway.replies(GONE, MISSING)
    client.documents.delete("d1")
    with pytest.raises(APIError):
        client.documents.delete("d1")


@pytest.mark.parametrize("redirects", [False, True])
def test_a_redirect_to_another_host_never_gets_the_key(gateway: StandIn, redirects: bool):
    """Nor where the caller's http client follows them, and has an idea of its own who asks."""
    with (
        StandIn() as thief,
        httpx.Client(follow_redirects=redirects, auth=("ann", "pw")) as http,
        Mnemosyne(KEY, gateway.url, http_client=http) as client,
    ):
        gateway.replies(Reply(status=307, headers={"Location": f"{thief.url}/collections/{HOME}"}, json={}))
        with pytest.raises(UnexpectedResponseError, match="redirect"):
            client.collections.get(HOME)
        assert thief.requests == []
        assert gateway.requests[0].headers["authorization"] == f"Bearer {KEY}"
        client.close()
        assert not http.is_closed


def test_health_is_returned_for_an_unhealthy_service_too(gateway: StandIn, client: Mnemosyne):
    report: dict[str, Any] = {
        "status": "unhealthy", "version": "1", "services": {"database": "unhealthy"},
        "timestamp": "2026-11-14T10:30:00Z", "details": None,
    }  # fmt: skip
    gateway.replies(Reply(status=503, json=report), Reply(status=503, body=b"a proxy's own"))
    assert client.health().services == {"database": "unhealthy"}
    with pytest.raises(InternalServerError):
        client.health()
