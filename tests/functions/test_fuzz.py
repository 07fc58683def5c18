"""Requests generated from the OpenAPI descriptions: no response is a 5xx or is missing in the description.

The requests go over HTTP to the process that a container starts. Positive requests fit the description,
negative ones break it. `make test` sends few to one route of each endpoint, with one credential;
`make test-long` sends more to every route, with every credential.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import httpx
import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from functions.server import SLUGS
from local import ROOT
from local.child_processes import free_port, is_responding, start, wait_until_ready
from local.stack import Stack
from local.tools import openapi
from tests.actors import World

# Checks of a response against the description.
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# Few examples, since each search embeds.
EXAMPLES, EXAMPLES_LONG = 3, 25
UNLIMITED = {"RAG_RATE_LIMIT_RAG": "1000000/minute", "RAG_RATE_LIMIT_API": "1000000/minute"}


@dataclass(frozen=True)
class Deployed:
    url: str
    credentials: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def deployed(stack: Stack) -> Iterator[Deployed]:
    """All functions as one process, and whom it knows."""
    port = free_port()
    store = {"RAG_SNAPSHOT_URL": f"file://{stack.folder}/fuzzed"}
    environment = {
        **stack.function_environment(), **UNLIMITED, **store, "PORT": str(port), "PYTHONPATH": str(ROOT),
        "WEB_CONCURRENCY": "1",
    }  # fmt: skip
    log = stack.folder / "logs" / "fuzzed.log"
    child = start([sys.executable, "-m", "functions.server"], environment, log)
    url = f"http://127.0.0.1:{port}"
    world = World(stack)
    try:
        wait_until_ready(lambda: is_responding(f"{url}/health"), child, log)
        admin = world.user(world.org(), role="admin")
        bearer = {"Authorization": f"Bearer {admin.token()}"}
        response = httpx.post(f"{url}/api/keys", json={"name": "fuzz", "scopes": ["admin"]}, headers=bearer)
        key = {"Authorization": f"Bearer {response.json()['key']}"}
        yield Deployed(url, {"nobody": {}, "a user": bearer, "a key": key})
    finally:
        world.close()
        child.stop()


@dataclass(frozen=True)
class Operation:
    slug: str
    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def description(self) -> dict[str, Any]:
        row: dict[str, Any] = app(self.slug).openapi()["paths"][self.path][self.method]
        return row

    @property
    def modes(self) -> list[GenerationMode]:
        """Negative requests exist only where a parameter or body is more than a text."""
        schemas = [
            field["schema"] for field in self.description.get("parameters", []) if field["in"] != "header"
        ]
        if "requestBody" in self.description or any(
            schema.get("type") != "string" or "format" in schema or "enum" in schema for schema in schemas
        ):
            return list(GenerationMode)
        return [GenerationMode.POSITIVE]

    @property
    def endpoint(self) -> Callable[..., Any]:
        """The function that serves the route. Aliases of a route have the same one."""
        (endpoint,) = [
            route.endpoint
            for route in app(self.slug).routes
            if isinstance(route, APIRoute)
            and (route.path_format, route.methods) == (self.path, {self.method.upper()})
        ]
        function: Callable[..., Any] = inspect.unwrap(endpoint)
        return function


def app(slug: str) -> FastAPI:
    results: FastAPI = import_module(SLUGS[slug]).app
    return results


@cache
def schema(slug: str) -> Any:
    return schemathesis.openapi.from_dict(app(slug).openapi())


# Making them anew takes seconds of each test process. tests/local/tools/test_openapi.py compares them.
OPERATIONS = [Operation(*operation) for operation in openapi.operations()]
# One route of each endpoint.
DISTINCT = list({operation.endpoint: operation for operation in OPERATIONS}.values())


# Those that take API keys.
KEYED = {
    "api-keys", "chat-completions", "collections", "documents", "webhooks", "indexes", "index-query",
    "index-snapshots", "knowledge", "v1-search", "v1-contents", "v1-similar", "v1-answer",
    "chat", "retrievals", "administration", "mcp", "sources", "records", "dify",
}  # fmt: skip
# Without a credential.
PUBLIC = {
    "/health", "/api/keys/health", "/healthz", "/readyz",
    "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
}  # fmt: skip
# The same, but not with a credential that is wrong.
OPEN = {"/api/v1/health", "/v1/health"}
# A well-formed request succeeds here, sooner or later, for an authorized caller.
SURE = {
    ("/api/rag/search", "post"): 200, ("/functions/v1/rag-search", "post"): 200,
    ("/api/rag/answer", "post"): 200, ("/functions/v1/rag-answer", "post"): 200,
    ("/api/v1/collections", "get"): 200, ("/v1/collections", "get"): 200, ("/index", "post"): 200,
    ("/indexes", "get"): 200, ("/api/v1/knowledge/namespaces", "get"): 200, ("/api/keys", "get"): 200,
    ("/api/keys", "post"): 201,
}  # fmt: skip


@pytest.mark.parametrize("operation", DISTINCT, ids=str)
def test_no_request_gets_a_5xx_or_an_undocumented_response(
    subtests: pytest.Subtests, deployed: Deployed, operation: Operation
):
    who = "a key" if operation.slug in KEYED else "a user"
    for mode in operation.modes:
        with subtests.test(mode=mode.value):
            assert_documented(deployed, operation, mode, who, EXAMPLES)


@pytest.mark.long
@pytest.mark.parametrize("who", ["nobody", "a user", "a key"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_no_caller_gets_a_5xx_from_any_alias(
    subtests: pytest.Subtests, deployed: Deployed, operation: Operation, who: str
):
    for mode in operation.modes:
        with subtests.test(mode=mode.value):
            assert_documented(deployed, operation, mode, who, EXAMPLES_LONG)


def assert_documented(
    deployed: Deployed, operation: Operation, mode: GenerationMode, who: str, examples: int
) -> None:
    slug, method, path = operation.slug, operation.method, operation.path
    statuses: set[int] = set()

    # Derandomized, so that a run can be repeated.
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=schema(slug)[path][method.upper()].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if any(not str(value).strip(".") for value in (case.path_parameters or {}).values()):
            # The HTTP client resolves dots in a path, so the request would reach another operation.
            return
        response = case.call(base_url=deployed.url, headers=deployed.credentials[who])
        # There is no model here, and chat completions without an index answer 503.
        checks = CHECKS[1:] if slug == "chat-completions" and response.status_code == 503 else CHECKS
        case.validate_response(response, checks=checks)
        statuses.add(response.status_code)

    ask()
    admitted = path in PUBLIC or (who == "a user" and slug != "ingest") or (who == "a key" and slug in KEYED)
    if slug == "chat-completions":
        statuses -= {503}
    if path in OPEN:
        assert 200 in statuses
        assert statuses <= {200, 401}
    elif not admitted:
        assert statuses <= {400, 403 if slug == "dify" else 401, 404, 413, 422}
    elif path in PUBLIC:
        assert statuses == {200}
    elif (
        mode is GenerationMode.POSITIVE
        and (path, method) in SURE
        and not (who == "a key" and method == "post")
    ):
        assert SURE[path, method] in statuses
