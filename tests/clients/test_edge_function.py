"""The edge function `rag` in Deno: what it forwards to a deployment, and supabase-js through it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from local import ROOT
from local.child_processes import free_port, start, wait_until_ready
from local.npm_tools import npm_path, npm_program
from shared.services import Services
from tests.clients.test_supabase_clients import KETTLE, given_for
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.test_rag_search import tell
from tests.stand_in_server import Reply, Request, StandIn

# Headers of the deployment that the tests read.
PASSED = ("Content-Type", "Access-Control-Allow-Origin")
FUNCTION = ROOT / "supabase" / "functions" / "rag" / "index.ts"


@contextmanager
def edge_function(deployment: str, folder: Path) -> Iterator[str]:
    """The address of the function, which forwards to that deployment."""
    port, log = free_port(), folder / "deno.log"
    environment = {
        "RAG_URL": deployment,
        "DENO_SERVE_ADDRESS": f"tcp:127.0.0.1:{port}",
        "DENO_DIR": str(folder / "deno"),
        "HOME": str(folder),
        "PATH": npm_path(),
    }
    command: list[str | Path] = [
        npm_program("deno"),
        "run",
        "--no-config",
        "--allow-env",
        "--allow-net",
        FUNCTION,
    ]
    child, url = start(command, environment, log), f"http://127.0.0.1:{port}"
    try:
        wait_until_ready(lambda: "Listening" in log.read_text(), child, log)
        yield url
    finally:
        child.stop()


@pytest.fixture(scope="module")
def shared_function(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, StandIn]]:
    """The function and the deployment that it forwards to, for all tests: Deno starts slowly."""
    with StandIn() as server, edge_function(f"{server.url}/", tmp_path_factory.mktemp("deno")) as url:
        yield url, server


@pytest.fixture
def url(shared_function: tuple[str, StandIn]) -> str:
    return shared_function[0]


@pytest.fixture
def deployment(shared_function: tuple[str, StandIn]) -> StandIn:
    """Without the requests and the replies of another test."""
    _, server = shared_function
    server.requests.clear()
    server._replies.clear()
    return server


def test_supabase_js_calls_the_deployment(url: str, deployment: StandIn, people: People, services: Services):
    def forward(request: Request) -> Reply:
        address = people.ann.stack.url + request.path
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        response = httpx.request(request.method, address, content=request.body, headers=headers)
        passed = {name: response.headers[name] for name in PASSED if name in response.headers}
        return Reply(body=response.content, status=response.status_code, headers=passed)

    tell(services, people.ann, "Kettle manual", KETTLE)
    deployment.replies(Reply(json=forward))
    result = run_node(Path(__file__).parent / "edge_function.mjs", given_for(people.ann) | {"url": url})
    assert "100 degrees" in result["answer"]["answer"]["text"]
    assert result["search"]["results"][0]["source_title"] == "Kettle manual"
    assert result["invalid"]["status"] == 400
    assert result["invalid"]["body"]["error"]["code"] == "invalid_request"
    assert [row["name"] for row in result["collections"]["data"]] == ["default"]
    assert result["anonymous"] == 401
    assert result["preflight"] == [200, "*"]
    assert '"type": "delta"' in result["events"] or '"type":"delta"' in result["events"]


def test_a_request_has_a_body_where_the_caller_s_has_one(url: str, deployment: StandIn):
    def body(request: Request) -> str | None:
        assert "transfer-encoding" not in request.headers
        return request.body.decode() if "content-length" in request.headers else None

    deployment.replies(Reply(json=body))
    for method in ("OPTIONS", "DELETE", "GET"):
        assert httpx.request(method, f"{url}/rag/api/v1/documents/1").json() is None
    for method in ("POST", "DELETE", "PATCH"):
        assert httpx.request(method, f"{url}/rag/api/v1/documents/1", content=b"{}").json() == "{}"


def test_a_stream_arrives_while_the_deployment_writes_it(url: str, deployment: StandIn):
    rest = threading.Event()
    forwarded = {"X-Api-Key": "k", "X-Workspace-Id": "w", "X-Rag-Read-After": "7", "X-Request-Id": "r"}
    headers = {"Authorization": "Bearer t", "Cookie": "session=1", "apikey": "k", **forwarded}
    deployment.replies(Reply(chunks=[b"data: 1\n\n", rest, b"data: 2\n\n"]))
    with httpx.stream("POST", f"{url}/rag/api/v1/chat?x=1", content=b"{}", headers=headers) as response:
        parts = response.iter_bytes()
        assert next(parts) == b"data: 1\n\n"
        rest.set()
        assert b"".join(parts) == b"data: 2\n\n"
    (request,) = deployment.requests
    assert (request.method, request.path, request.body) == ("POST", "/api/v1/chat?x=1", b"{}")
    assert request.headers["authorization"] == "Bearer t"
    assert forwarded.items() <= {name: request.headers[name.lower()] for name in forwarded}.items()
    assert not {"cookie", "apikey"} & request.headers.keys()


def test_a_path_names_no_other_host(url: str, deployment: StandIn):
    deployment.replies(Reply(json={}))
    with StandIn() as other:
        other.replies(Reply(json={}))
        host = other.url.removeprefix("http://")
        for path in (f"/rag//{host}/x", f"/rag/@{host}/x", f"/rag@{host}/x", f"/rag/api/../..//{host}/x"):
            assert httpx.post(f"{url}{path}").status_code == 200
        assert (len(deployment.requests), other.requests) == (4, [])


def test_a_deployment_that_does_not_answer_is_named(url: str, deployment: StandIn):
    deployment.replies(Reply(drop=True))
    absent = httpx.post(f"{url}/rag/answer", json={})
    assert (absent.status_code, absent.json()["error"]["code"]) == (502, "deployment_unreachable")
