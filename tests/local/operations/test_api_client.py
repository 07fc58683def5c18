"""Calls that wait where waiting helps; a real server stands in for a deployment."""

import time
from collections.abc import Iterator

import httpx
import pytest

from local.errors import CommandError
from local.operations.api_client import ApiClient, ApiError
from tests.stand_in_server import Reply, StandIn

DONE = Reply({"done": True})


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as started:
        yield started


@pytest.fixture
def api(server: StandIn) -> Iterator[ApiClient]:
    with httpx.Client(base_url=server.url) as client:
        yield ApiClient(client)


def error(status: int, code: str = "x", message: str = "Why.", **headers: str) -> Reply:
    return Reply({"error": {"code": code, "message": message}}, status, headers)


@pytest.mark.parametrize(
    "first", [error(429, **{"Retry-After": "1"}), error(503), error(500), Reply(drop=True)]
)  # fmt: skip
def test_a_temporary_limit_is_waited_for(server: StandIn, api: ApiClient, first: Reply):
    texts: list[str] = []
    api.on_wait = texts.append
    server.replies(first, DONE)
    started = time.monotonic()
    assert api.request("POST", "/", data={"a": "b"}, files={"file": ("a.md", b"the words")}) == {"done": True}
    assert time.monotonic() - started >= 0.9
    assert [request.body.count(b"the words") for request in server.requests] == [1, 1]
    assert texts[0].endswith("Again in 1 s.")
    assert texts[1] == ""


def test_an_exhausted_quota_is_not_waited_for(server: StandIn, api: ApiClient):
    server.replies(error(429, "rate_limit_exceeded", "room for 10"))
    with pytest.raises(ApiError, match="room for 10") as refused:
        api.request("POST", "/")
    assert (refused.value.status, len(server.requests)) == (429, 1)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (error(429, **{"Retry-After": "7200"}), r"2\.0 hours"),
        (error(401), "401: Why"),
        (error(403), "403: Why"),
        (Reply(body=b"<html>"), "does not answer like this API"),
    ],
)
def test_an_error_of_every_request_ends_the_run(server: StandIn, api: ApiClient, reply: Reply, message: str):
    server.replies(reply)
    with pytest.raises(CommandError, match=message):
        api.request("GET", "/")
    assert len(server.requests) == 1


def test_a_permanently_lost_connection_ends_the_run(
    server: StandIn, api: ApiClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("local.operations.api_client.RETRY_DELAYS", (0.01, 0.01))
    server.replies(Reply(drop=True))
    with pytest.raises(CommandError, match="no connection to http://127"):
        api.request("GET", "/")
    assert len(server.requests) == 3


def test_error_messages_are_safe_for_a_terminal(server: StandIn, api: ApiClient):
    server.replies(error(400, "a\x1b[2J", "\x1b]0;owned\x07 two\nlines"))
    with pytest.raises(ApiError) as refused:
        api.request("GET", "/")
    assert (refused.value.code, str(refused.value)) == ("a[2J", "]0;owned two lines")


def test_a_proxy_s_error_response_is_shown(server: StandIn, api: ApiClient):
    server.replies(Reply(body=b"<h1>Request too long</h1>", status=413))
    with pytest.raises(ApiError, match="too long") as refused:
        api.request("GET", "/")
    assert refused.value.code == "http_413"


def test_a_malformed_url_is_reported():
    with httpx.Client(base_url="nowhere") as client, pytest.raises(CommandError, match="protocol"):
        ApiClient(client).request("GET", "/")
