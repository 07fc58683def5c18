"""The Python SDK waits for a document: until it is ready, has failed, or time is up; also while the server is
gone. Asked by a client with a key."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.child_processes import free_port
from mnemosyne import APITimeoutError, DocumentFailedError, Mnemosyne, NotFoundError
from tests.sdk.python_client import DOCUMENT, KEY
from tests.stand_in_server import Reply, StandIn

# So that a stopped server is gone from kept connections too.
ONCE = {"Connection": "close"}
PROCESSING = Reply(json=DOCUMENT, headers=ONCE)
UNSURE = Reply(
    json={**DOCUMENT, "error": {"code": "url_unreachable", "message": "Again later."}}, headers=ONCE
)
READY = Reply(json={**DOCUMENT, "status": "completed", "chunk_count": 3}, headers=ONCE)
FAILED = Reply(
    json={**DOCUMENT, "status": "failed", "error": {"code": "processing_failed", "message": "Unreadable."}}
)


@pytest.mark.usefixtures("quick_sleep")
def test_waiting_ends_when_the_document_is_ready(gateway: StandIn):
    gateway.replies(
        PROCESSING, Reply(drop=True), *(Reply(status=status, json={}) for status in (503, 429, 408)),
        UNSURE, READY,
    )  # fmt: skip
    with Mnemosyne(KEY, gateway.url) as client:
        assert client.documents.wait_until_ready("d1", timeout=60).chunk_count == 3
    assert len(gateway.requests) == 7


def test_the_next_poll_respects_retry_after(gateway: StandIn, monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    gateway.replies(Reply(status=429, json={}, headers={"Retry-After": "7", **ONCE}), PROCESSING, READY)
    with Mnemosyne(KEY, gateway.url) as client:
        client.documents.wait_until_ready("d1", timeout=60)
    assert (pauses[0], len(gateway.requests)) == (7, 3)


def test_waiting_survives_a_server_outage():
    with StandIn(free_port()) as first, ThreadPoolExecutor(1) as pool, Mnemosyne(KEY, first.url) as client:
        first.replies(PROCESSING)
        waiting = pool.submit(client.documents.wait_until_ready, "d1", 60)
        first.wait_for_requests(1)
        first.__exit__()
        time.sleep(0.6)
        assert not waiting.done()
        with StandIn(int(first.url.rpartition(":")[2])) as second:
            second.replies(READY)
            assert waiting.result(60).status == "completed"


def test_a_failed_document_raises_its_reason(gateway: StandIn):
    gateway.replies(PROCESSING, FAILED)
    with Mnemosyne(KEY, gateway.url) as client, pytest.raises(DocumentFailedError, match="Unreadable") as why:
        client.documents.wait_until_ready("d1")
    assert (why.value.document_id, why.value.code) == ("d1", "processing_failed")


@pytest.mark.usefixtures("quick_sleep")
def test_a_time_out_reports_the_document_s_state(gateway: StandIn):
    gateway.replies(UNSURE)
    with Mnemosyne(KEY, gateway.url) as client:
        with pytest.raises(APITimeoutError, match=r"d1 .* processing \(url_unreachable: Again later"):
            client.documents.wait_until_ready("d1", timeout=60)
        gateway.__exit__()
        with pytest.raises(APITimeoutError, match="could not be reached"):
            client.documents.wait_until_ready("d1", timeout=60)


def test_a_permanent_error_is_raised_at_once(gateway: StandIn):
    gateway.replies(Reply(status=404, json={"error": {"message": "no", "code": "document_not_found"}}))
    with Mnemosyne(KEY, gateway.url) as client, pytest.raises(NotFoundError):
        client.documents.wait_until_ready("d1")
    assert len(gateway.requests) == 1
