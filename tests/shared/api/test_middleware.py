"""What every response carries, a stream's included: its head leaves before its end is known."""

from collections.abc import AsyncIterator

import pytest
from fastapi.testclient import TestClient
from starlette.requests import Request
from starlette.responses import StreamingResponse

from shared.api.app import create_app
from shared.api.authentication import Caller
from shared.api.contracts import rag
from shared.api.dependencies import services_dependency
from shared.clients.postgrest import SECRET_HEADER
from shared.services import Services
from tests.conftest import People


@pytest.fixture
def streaming(services: Services) -> TestClient:
    """A function that streams three tokens, and one that breaks after the first."""
    app = create_app(rag, "rag-answer", errors=())

    async def tokens(*, breaks: bool) -> AsyncIterator[str]:
        yield "data: one\n\n"
        if breaks:
            raise RuntimeError("a detail")
        yield "data: two\n\n"

    @app.get("/stream")
    def stream(caller: Caller, breaks: bool = False) -> StreamingResponse:
        return StreamingResponse(tokens(breaks=breaks), media_type="text/event-stream")

    app.dependency_overrides[services_dependency] = lambda: services
    return TestClient(app, raise_server_exceptions=False)


def test_a_stream_has_rate_limit_headers_and_the_request_id_from_its_first_byte(
    streaming: TestClient, people: People, caplog: pytest.LogCaptureFixture
):
    headers = {"Authorization": f"Bearer {people.ann.token()}", "X-Request-Id": "stream-1"}
    with streaming.stream("GET", "/stream", headers=headers) as answer:
        assert answer.headers["x-ratelimit-limit"] == "60"
        assert answer.headers["x-ratelimit-remaining"] == "59"
        assert int(answer.headers["x-ratelimit-reset"]) > 1_700_000_000
        assert answer.headers["x-request-id"] == "stream-1"
        assert "".join(answer.iter_text()) == "data: one\n\ndata: two\n\n"
    (line,) = [vars(record) for record in caplog.records if record.getMessage() == "request"]
    assert (line["status"], line["request_id"]) == (200, "stream-1")


def test_a_broken_stream_is_logged_with_its_cause_and_reveals_nothing(
    streaming: TestClient, people: People, caplog: pytest.LogCaptureFixture
):
    headers = {"Authorization": f"Bearer {people.ann.token()}"}
    answer = streaming.get("/stream?breaks=true", headers=headers)
    assert answer.headers["x-ratelimit-remaining"] == "59"
    assert "a detail" not in answer.text
    (line,) = [vars(record) for record in caplog.records if record.getMessage() == "request"]
    assert line["error"] == "internal_error"
    assert line["because"].startswith("RuntimeError at test_middleware.py:")
    assert "a detail" not in str(line)


def test_no_function_sees_the_functions_secret_of_a_request():
    """So that none can pass it on or log it."""
    app = create_app(rag, "rag-answer", errors=())

    @app.get("/headers")
    def headers(request: Request) -> dict[str, str]:
        return dict(request.headers)

    answer = TestClient(app).get("/headers", headers={SECRET_HEADER: "secret-7f3x", "X-Other": "other"})
    assert answer.json()["x-other"] == "other"
    assert "7f3x" not in answer.text


def test_a_redirect_keeps_the_client_s_host(streaming: TestClient):
    headers = {"Host": "evil.example"}
    answer = streaming.get("/stream/?breaks=true", headers=headers, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/stream?breaks=true")
