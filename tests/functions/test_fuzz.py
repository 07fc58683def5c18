"""Whatever fits a function's own OpenAPI description, or just does not: no 5xx, no undocumented answer.

Over HTTP, at the process that a container starts, with a user's token, with an API key and with none.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from functions.server import SLUGS
from local.processes import answers, free_port, start, wait_until
from local.stack import Stack
from local.tools import ROOT
from tests.actors import World

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Derandomized, so that a run can be repeated; few, since every search of them embeds.
fuzzing = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
UNLIMITED = {"RAG_RATE_LIMIT": "1000000/minute", "RAG_API_RATE_LIMIT": "1000000/minute"}


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
        **stack.function_environment(),
        **UNLIMITED,
        **store,
        "PORT": str(port),
        "PYTHONPATH": str(ROOT),
    }
    log = stack.folder / "logs" / "fuzzed.log"
    child = start([sys.executable, "-m", "functions.server"], environment, log)
    url = f"http://127.0.0.1:{port}"
    world = World(stack)
    try:
        wait_until(lambda: answers(f"{url}/health"), child, log)
        admin = world.user(world.org(), role="admin")
        bearer = {"Authorization": f"Bearer {admin.token()}"}
        made = httpx.post(f"{url}/api/keys", json={"name": "fuzz", "scopes": ["admin"]}, headers=bearer)
        key = {"Authorization": f"Bearer {made.json()['key']}"}
        yield Deployed(url, {"nobody": {}, "a user": bearer, "a key": key})
    finally:
        world.close()
        child.stop()


OPERATIONS = [
    (slug, path, method)
    for slug, module in SLUGS.items()
    for path, methods in import_module(module).app.openapi()["paths"].items()
    for method in methods
]


def can_be_wrong(slug: str, path: str, method: str) -> bool:
    """Whether it takes anything but texts, any of which is well-formed."""
    operation = import_module(SLUGS[slug]).app.openapi()["paths"][path][method]
    schemas = [given["schema"] for given in operation.get("parameters", []) if given["in"] != "header"]
    return "requestBody" in operation or any(
        schema.get("type") != "string" or "format" in schema or "enum" in schema for schema in schemas
    )


# Those that take API keys.
KEYED = {
    "api-keys", "chat-completions", "collections", "documents", "webhooks", "indexes", "index-query",
    "index-snapshots", "knowledge", "v1-search", "v1-contents", "v1-similar", "v1-answer",
    "chat", "retrievals", "administration",
}  # fmt: skip
# Anybody may ask.
PUBLIC = {"/health", "/api/keys/health", "/healthz", "/readyz"}
# The same, but not with a credential that is wrong.
OPEN = {"/api/v1/health", "/v1/health"}
# What is well-formed succeeds here, sooner or later, for whoever may.
SURE = {
    ("/api/rag/search", "post"): 200,
    ("/functions/v1/rag-search", "post"): 200,
    ("/api/rag/answer", "post"): 200,
    ("/functions/v1/rag-answer", "post"): 200,
    ("/api/v1/collections", "get"): 200,
    ("/v1/collections", "get"): 200,
    ("/index", "post"): 200,
    ("/indexes", "get"): 200,
    ("/api/v1/knowledge/namespaces", "get"): 200,
    ("/api/keys", "get"): 200,
    ("/api/keys", "post"): 201,
}


@pytest.mark.parametrize("who", ["nobody", "a user", "a key"])
@pytest.mark.parametrize(
    ("path", "method", "slug", "mode"),
    [
        (path, method, slug, mode)
        for slug, path, method in OPERATIONS
        for mode in GenerationMode
        if mode is GenerationMode.POSITIVE or can_be_wrong(slug, path, method)
    ],
)
def test_no_request_gets_a_5xx_or_an_answer_that_is_not_described(
    deployed: Deployed, path: str, method: str, slug: str, mode: GenerationMode, who: str
):
    description = import_module(SLUGS[slug]).app.openapi()
    operation = schemathesis.openapi.from_dict(description)[path][method.upper()]
    seen: set[int] = set()

    @fuzzing
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if any(not str(value).strip(".") for value in (case.path_parameters or {}).values()):
            # The client takes dots in a path for a way elsewhere: this would not be asked of the operation.
            return
        answer = case.call(base_url=deployed.url, headers=deployed.credentials[who])
        # There is no model here, and a conversation without an index is for nobody else.
        checks = CHECKS[1:] if slug == "chat-completions" and answer.status_code == 503 else CHECKS
        case.validate_response(answer, checks=checks)
        seen.add(answer.status_code)

    ask()
    admitted = path in PUBLIC or (who == "a user" and slug != "ingest") or (who == "a key" and slug in KEYED)
    if slug == "chat-completions":
        seen -= {503}
    if path in OPEN:
        assert 200 in seen
        assert seen <= {200, 401}
    elif not admitted:
        assert seen <= {400, 401, 404, 413, 422}
    elif path in PUBLIC:
        assert seen == {200}
    elif (
        mode is GenerationMode.POSITIVE
        and (path, method) in SURE
        and not (who == "a key" and method == "post")
    ):
        assert SURE[path, method] in seen
