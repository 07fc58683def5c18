"""Several functions as one app: chosen by RAG_FUNCTIONS, each under its own routes, health always."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from fastapi.testclient import TestClient

from functions import schedule, server
from functions.server import SLUGS, create
from local import ROOT
from local.__main__ import main as command_line
from local.child_processes import free_port, is_responding
from local.stack import Stack
from shared.api.dependencies import get_services
from shared.errors import ConfigurationError
from tests.conftest import People
from tests.external_programs import completed
from tests.functions.app_server import wait_for
from tests.stand_in_server import Reply, StandIn

SEARCH, ANSWER = "/api/rag/search", "/api/rag/answer"


@pytest.fixture
def environment(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """This process as a container beside the test stack."""
    for name, value in stack.function_environment().items():
        monkeypatch.setenv(name, value)
    get_services.cache_clear()
    return monkeypatch


def test_every_module_of_functions_except_the_programs_is_a_function():
    programs = {"__init__", "schedule", "server"}
    files = {path.stem for path in (ROOT / "functions").glob("*.py")} - programs
    assert {slug.replace("-", "_") for slug in SLUGS} == files
    assert set(SLUGS.values()) == {f"functions.{name}" for name in files}


UNKNOWN_NAMES: list[str] = ["rag_search", "rag-search,hunter2", "all,rag-search", "server", ",", "All"]


def test_an_unknown_name_is_refused_with_the_setting_and_the_known_names(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
):
    for value in UNKNOWN_NAMES:
        with subtests.test(value=value):
            monkeypatch.setenv("RAG_FUNCTIONS", value)
            with pytest.raises(ConfigurationError) as raised:
                create()
            message = str(raised.value)
            assert message.startswith("RAG_FUNCTIONS: ")
            assert all(slug in message for slug in SLUGS)
            assert "hunter2" not in message


def test_only_selected_functions_are_imported_and_the_sdk_of_mcp_by_its_function_alone():
    others = ",".join(module for slug, module in SLUGS.items() if slug != "mcp")
    code = (
        "import sys; from functions.server import create; create();"
        "print(*sorted(name for name in sys.modules if name.startswith('functions.')));"
        f"import {others}; print(*{{'mcp', 'mcp_types'}} & set(sys.modules))"
    )
    environment = {"PATH": os.environ["PATH"], "RAG_FUNCTIONS": " rag-search, "}
    selected, of_sdk = completed([sys.executable, "-c", code], env=environment).stdout.split("\n")[:2]
    assert selected.split() == ["functions.health", "functions.rag_search", "functions.server"]
    assert of_sdk == ""


def test_the_processors_are_those_of_the_machine_within_the_quota(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(server, "CPU_QUOTA", quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert server.processor_count() == 8
    for text, count in (("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1), ("1600000 100000", 8)):
        quota.write_text(f"{text}\n")
        assert server.processor_count() == count


@contextmanager
def served(stack: Stack, processes: str, **settings: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    port = str(free_port())
    own = {"PORT": port, "RAG_FUNCTIONS": "rag-search", "WEB_CONCURRENCY": processes, **settings}
    process = subprocess.Popen(
        [sys.executable, "-m", "functions.server"],
        env={"PATH": os.environ["PATH"], **stack.function_environment(), **own},
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield f"http://127.0.0.1:{port}", process
    finally:
        if process.poll() is None:
            for each in (*psutil.Process(process.pid).children(recursive=True), process):
                each.kill()
        process.wait()
        assert process.stderr
        process.stderr.close()


def children_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that serve."""
    children = psutil.Process(process.pid).children()
    return [child for child in children if any("spawn_main" in word for word in child.cmdline())]


@pytest.mark.long
def test_a_process_without_processor_time_for_seconds_is_not_replaced(stack: Stack):
    """As on a busy machine. uvicorn's default is five seconds."""
    with served(stack, "2") as (url, process):
        while not is_responding(f"{url}/health"):
            assert process.poll() is None
            time.sleep(0.1)
        before = children_of(process)
        before[0].suspend()
        time.sleep(8)
        before[0].resume()
        assert children_of(process) == before


def test_as_many_processes_serve_as_the_setting_says_and_end_with_the_first(stack: Stack, people: People):
    """They share the counts of the database. test_fuzz.py has a server of one process."""
    with served(stack, "2") as (url, process):
        while not is_responding(f"{url}/health"):
            assert process.poll() is None
            time.sleep(0.1)
        own = children_of(process)
        assert len(own) == 2
        assert httpx.get(f"{url}/openapi.json").status_code == 200

        def search(_: int) -> httpx.Response:
            return httpx.post(f"{url}{SEARCH}", json={}, headers=people.ann.headers())

        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(search, range(8)))
        assert {response.status_code for response in responses} == {400}
        assert len({response.headers["X-RateLimit-Remaining"] for response in responses}) == 8
        process.terminate()
        assert process.wait(60) == 0
        assert not [child for child in own if child.is_running()]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_wrong_setting_is_one_sentence_and_stops_all_processes(stack: Stack, processes: str):
    with served(stack, processes, RAG_LLM_URL="x") as (_, process):
        _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "ERROR:    RAG_LLM_URL: " in error
    assert "Traceback" not in error


def test_a_wrong_setting_is_one_sentence_of_a_program(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    environment.setenv("RAG_LLM_URL", "x")
    environment.setattr(sys, "argv", ["functions.schedule"])
    environment.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit, match=r"^RAG_LLM_URL: "):
        schedule.main()
    assert command_line(["calibrate", "--database", "postgresql://127.0.0.1/x"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: RAG_LLM_URL: ")


def test_a_name_that_no_setting_has_is_logged_at_the_start(
    environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    environment.setenv("RAG_LLM_TIMEOUT", "9")
    with TestClient(create()):
        pass
    (message,) = (record.getMessage() for record in caplog.records if "no setting" in record.getMessage())
    assert message == (
        "ignored, since no setting has this name: RAG_LLM_TIMEOUT (perhaps RAG_LLM_TIMEOUT_SECONDS)"
    )


def test_a_path_prefix_of_a_proxy_is_not_part_of_the_route(environment: pytest.MonkeyPatch):
    with TestClient(create(), root_path="/rag") as client:
        assert client.get("/rag/health").json()["status"] == "Healthy"


def test_an_unselected_function_is_404_in_the_envelope(environment: pytest.MonkeyPatch, people: People):
    environment.setenv("RAG_FUNCTIONS", "rag-search")
    with TestClient(create()) as client:
        assert client.post(SEARCH, json={"query_text": "?"}, headers=people.ann.headers()).status_code == 200
        assert client.get("/health").status_code == 200
        for path in (ANSWER, "/functions/v1/rag-answer", "/", "/health/"):
            response = client.post(
                path, json={}, headers={"Origin": "https://app.example", "X-Request-Id": "r1"}
            )
            assert response.status_code == 404
            assert response.json()["error"]["code"] == "not_found"
            assert response.headers["X-Request-Id"] == "r1"
            assert response.headers["Access-Control-Allow-Origin"] == "*"


def operations_of(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (path, method): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def test_one_openapi_document_covers_all_functions(environment: pytest.MonkeyPatch):
    with TestClient(create()) as client:
        document = client.get("/openapi.json").json()
        assert client.post("/openapi.json").status_code == 405
    output, described = operations_of(document), set()
    for slug in SLUGS:
        for (path, method), own in operations_of(import_module(SLUGS[slug]).app.openapi()).items():
            place = path if path in document["paths"] else f"/api{path}", method
            operation = output[place]
            assert operation["tags"] == [slug]
            # The second prefix of a route has an id with a number.
            assert own["operationId"].removeprefix(operation["operationId"]) in ("", "_2")
            assert set(operation["responses"]) == set(own["responses"])
            described.add(place)
    assert described == output.keys()
    # Two APIs have a model Document: each operation refers to its own.
    schemas = document["components"]["schemas"]
    for path, method, field in (
        ("/api/v1/documents/{document_id}", "get", "content_hash"),
        ("/index", "post", "hash_value"),
    ):
        response = document["paths"][path][method]["responses"]["200"]
        schema = response["content"]["application/json"]["schema"]
        name = schema.get("items", schema)["$ref"].rpartition("/")[2]
        assert field in schemas[name]["properties"]
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert references <= set(schemas)


def test_functions_share_services_that_are_closed_and_recreated(
    environment: pytest.MonkeyPatch, people: People
):
    used = []
    app = create()
    for _ in range(2):
        with TestClient(app) as client:
            used.append(get_services())
            assert (
                client.post(SEARCH, json={"query_text": "?"}, headers=people.ann.headers()).status_code == 200
            )
    assert used[0] is not used[1]
    for services in used:
        with pytest.raises(RuntimeError, match="closed"):
            services.database_status()


def test_an_embedder_with_too_many_dimensions_stops_the_start(environment: pytest.MonkeyPatch):
    with StandIn() as api:
        api.replies(Reply(json={"data": [{"index": 0, "embedding": [0.1] * 4096}]}))
        environment.setenv("OPENAI_API_KEY", "any")
        environment.setenv("RAG_EMBEDDING_URL", f"{api.url}/v1")
        environment.setenv("RAG_EMBEDDING_MODEL", "qwen3-embedding:8b")
        with pytest.raises(ConfigurationError) as raised, TestClient(create()):
            pass
        get_services().close()
    assert str(raised.value).startswith("RAG_EMBEDDING_MODEL: qwen3-embedding:8b has 4,096 dimensions")
    assert "docs/models.md" in str(raised.value)


def test_models_that_refuse_are_logged_at_the_start(
    environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The first of these is requested with 1,536 dimensions, the second embeds a word before the start."""
    with StandIn() as api:
        api.replies(Reply(status=401))
        environment.setenv("OPENAI_API_KEY", "any")
        environment.setenv("RAG_EMBEDDING_URL", api.url)
        environment.setenv("RAG_LLM_API_KEY", "any")
        environment.setenv("RAG_LLM_URL", api.url)
        for model in ("text-embedding-3-small", "nomic-embed-text"):
            environment.setenv("RAG_EMBEDDING_MODEL", model)
            caplog.clear()
            with TestClient(create()):
                wait_for(lambda: "the gateway of the answering model refuses" in caplog.text)
            refused = "the embedding model did not embed a word as the server started (embedder_unauthorized)"
            assert refused in caplog.text
