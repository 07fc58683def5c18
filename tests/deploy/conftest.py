"""The content of the Lambda zip and its templates, made once a run; the paid APIs that the functions call."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from local import ROOT
from local.npm_tools import npm_program
from local.stack import Stack
from local.tools import lambda_package
from tests import INSTALLATION_PROXIES
from tests.actors import vector
from tests.databases import Run
from tests.external_programs import completed
from tests.stand_in_server import Reply, StandIn

RUNTIME = Path(__file__).with_name("lambda_runtime.py")
METRICS_TOKEN = "metrics-token-7f3x"
EVENTS = Path(__file__).with_name("events")
CONFIGURATION = (ROOT / lambda_package.CONFIGURATION).read_text()
# Every variable that serverless.yml takes from its environment; when packaged here, each is its own <NAME>.
VARIABLES = {name: f"<{name}>" for name in re.findall(r"\$\{env:(\w+)", CONFIGURATION)}
# The holder of one of these can spend, sign or read as a user.
SECRETS = {
    "OPENAI_API_KEY", "RAG_LLM_API_KEY", "SUPABASE_JWT_SECRET", "RAG_SIGNING_KEY", "RAG_METRICS_TOKEN",
    "RAG_RERANK_API_KEY", "RAG_WORKER_TOKEN", "RAG_TRANSCRIPTION_KEY", "RAG_OTHER_EMBEDDING",
}  # fmt: skip
# A deployment with all options, the required settings, and secrets from Secrets Manager.
OPTIONS = {
    "function-urls": "true",
    "function-concurrency": "0",
    "alarm-email": "operator@example.org",
    "stream-image": "1.dkr.ecr.eu-central-1.amazonaws.com/rag:1",
}
REFERENCES = {name: f"{{{{resolve:secretsmanager:rag/{name}}}}}" for name in SECRETS}
REQUIRED = {name: f"<{name}>" for name in re.findall(r"\$\{env:(\w+)\}", CONFIGURATION)}


@dataclass(frozen=True)
class Template:
    """The CloudFormation template in `folder`, which `osls package` made."""

    folder: Path

    @cached_property
    def text(self) -> str:
        return (self.folder / "cloudformation-template-update-stack.json").read_text()

    @cached_property
    def resources(self) -> dict[str, dict[str, Any]]:
        resources: dict[str, dict[str, Any]] = json.loads(self.text)["Resources"]
        return resources

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """The properties of the resources of that type."""
        return [entry["Properties"] for entry in self.resources.values() if entry["Type"] == kind]

    @cached_property
    def functions(self) -> dict[str, dict[str, Any]]:
        """The properties of the functions of serverless.yml, by slug."""
        functions = self.of_type("AWS::Lambda::Function")
        return {_slug(entry): entry for entry in functions if "FunctionName" in entry}

    @cached_property
    def routes(self) -> dict[str, str]:
        """The slug that each route of the HTTP API reaches."""
        slugs: dict[str, str] = {}
        for route in self.of_type("AWS::ApiGatewayV2::Route"):
            _, (_, integration) = route["Target"]["Fn::Join"]
            address = self.resources[integration["Ref"]]["Properties"]["IntegrationUri"]
            slugs[route["RouteKey"]] = _slug(self.resources[address["Fn::GetAtt"][0]]["Properties"])
        return slugs

    def variables(self, slug: str) -> dict[str, str]:
        """The environment that serverless.yml gives a function, with <NAME> for what the deployer sets."""
        arguments: dict[str, str] = self.functions[slug]["Environment"]["Variables"]
        return arguments


@dataclass(frozen=True)
class Package(Template):
    """`root`: the zip's content; `parsers` and `sources`: the folders that some functions have besides."""

    root: Path
    parsers: Path
    sources: Path


def _slug(function: Mapping[str, str]) -> str:
    return function["FunctionName"].removeprefix("rag-dev-")


def osls_package(
    folder: Path, options: Mapping[str, str] | None = None, variables: Mapping[str, str] = VARIABLES
) -> None:
    """Run the real osls in a folder with a configuration, as docs/aws-lambda.md says."""
    parameters = [part for name, value in (options or {}).items() for part in ("--param", f"{name}={value}")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **variables}
    process = completed([npm_program("osls"), "package", *parameters], cwd=folder, env=environment)
    assert process.returncode == 0, process.stdout + process.stderr


def build(folder: Path) -> None:
    """Build the folder that osls packages, from the package index."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in INSTALLATION_PROXIES.items():
            patch.setenv(name, value)
        lambda_package.build(folder)


def zips_of(folder: Path) -> list[Path]:
    """Build the deployment in `folder`, and package it: the zips, by name."""
    build(folder)
    osls_package(folder)
    return sorted((folder / ".serverless").glob("*.zip"))


def _build(folder: Path) -> None:
    """Build the deployment; the templates are made without the libraries, which take 15 seconds to zip."""
    built, light, optional = folder / "built", folder / "light", folder / "optional"
    build(built)
    for name in (lambda_package.PARSERS, lambda_package.SOURCES):
        (built / name).rename(folder / name)
    light.mkdir()
    for name in (lambda_package.CONFIGURATION, "deploy"):
        (built / name).rename(light / name)
    for name in ("functions", "shared"):
        shutil.copytree(built / name, light / name)
    shutil.copytree(light, optional)
    with ThreadPoolExecutor() as pool:
        plain = pool.submit(osls_package, light)
        osls_package(optional, OPTIONS, REQUIRED | REFERENCES)
        plain.result()


@pytest.fixture(scope="session")
def packaged(run: Run) -> Package:
    folder = run.build_once("lambda", _build)
    folders = (folder / name for name in (lambda_package.PARSERS, lambda_package.SOURCES))
    return Package(folder / "light" / ".serverless", folder / "built", *folders)


@pytest.fixture(scope="session")
def packaged_with_options(packaged: Package) -> Template:
    return Template(packaged.root.parent / "optional" / ".serverless")


class Runtime:
    """A bare Python with the libraries of the zip, which forks for each call. Use as a context manager."""

    # What takes a second to import and is not this project's.
    LIBRARIES = ("fastapi", "httpx", "httpx2", "jose.jwt", "mangum", "openai", "postgrest", "slowapi")

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        self._calls = 0
        self._process = subprocess.Popen(
            # -I and -S: no site-packages, no variables, nothing of this project but the zip.
            [runtime_python(), "-I", "-S", RUNTIME, str(root), *self.LIBRARIES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={},
            text=True,
        )

    def __enter__(self) -> "Runtime":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def run(
        self, handler: str, events: Sequence[Any], environment: Mapping[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._calls += 1
        output = self._folder / str(self._calls)
        job = {"handler": handler, "events": events, "environment": environment, "output": str(output)}
        self._process.stdin.write(f"{json.dumps(job)}\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        printed, complaints = (output.with_suffix(f".{name}").read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess([handler], status, printed, complaints)


@dataclass(frozen=True)
class Lambda:
    """The content of the zip, run as Lambda would: a bare Python, and what the deployer set."""

    package: Package
    runtime: Runtime
    deployer: Mapping[str, str]

    def environment(self, slug: str) -> dict[str, str]:
        """What Lambda gives the function: its own part of what the deployer set, and Lambda's variables."""
        chosen = {}
        for name, value in self.package.variables(slug).items():
            request = re.fullmatch(r"<(\w+)>", value)
            if request is None or request[1] in self.deployer:
                chosen[name] = self.deployer[request[1]] if request else value
        task = {"AWS_LAMBDA_FUNCTION_NAME": f"rag-dev-{slug}", "LAMBDA_TASK_ROOT": str(self.package.root)}
        return {**chosen, **task}

    def start(
        self, slug: str, events: Sequence[Any], *, handler: str | None = None, **changes: str | None
    ) -> "subprocess.CompletedProcess[str]":
        """Import the function's handler and give it these events, whatever comes of it."""
        environment: dict[str, str | None] = {**self.environment(slug), **changes}
        arguments = {name: value for name, value in environment.items() if value is not None}
        return self.runtime.run(handler or self.package.functions[slug]["Handler"], events, arguments)

    def invoke(self, slug: str, *events: Any, handler: str | None = None) -> dict[str, Any]:
        process = self.start(slug, events, handler=handler)
        assert process.returncode == 0, process.stderr
        messages: dict[str, Any] = json.loads(process.stdout)
        return messages

    def answers(self, slug: str, *events: Any, handler: str | None = None) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = self.invoke(slug, *events, handler=handler)["answers"]
        return answers


def runtime_python() -> str:
    """A Python of the Lambda runtime's version: these tests' own, or one on the PATH."""
    version = lambda_package.python_version()
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    if path := shutil.which(f"python{version}"):
        return path
    if os.environ.get("CI"):
        pytest.fail(f"CI has no Python {version}, which Lambda runs")
    pytest.skip(f"no Python {version}, which Lambda runs")


@pytest.fixture
def embeddings() -> Iterator[StandIn]:
    """The paid embeddings API: every text becomes the vector 1."""
    with StandIn() as server:
        server.replies(embedding_reply(vector(1)))
        yield server


@pytest.fixture
def gateway() -> Iterator[StandIn]:
    """The paid model: it always says the same."""
    with StandIn() as server:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "It is 1."},
            "finish_reason": "stop",
        }
        completion = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        server.replies(Reply(json=completion))
        yield server


@pytest.fixture(scope="module")
def runtime(packaged: Package, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    with Runtime(packaged.root, tmp_path_factory.mktemp("calls")) as running:
        yield running


@pytest.fixture
def deployed(
    packaged: Package, runtime: Runtime, stack: Stack, embeddings: StandIn, gateway: StandIn
) -> Lambda:
    """The zip deployed beside the test stack."""
    return Lambda(packaged, runtime, deployer_of(stack, embeddings, gateway))


def deployer_of(stack: Stack, embeddings: StandIn, gateway: StandIn) -> dict[str, str]:
    """What a deployer has in the environment."""
    return {
        **stack.function_environment(),
        "OPENAI_API_KEY": "sk-embeddings-7f3x",
        "RAG_EMBEDDING_URL": f"{embeddings.url}/v1",
        "RAG_LLM_API_KEY": "sk-gateway-7f3x",
        "RAG_LLM_URL": f"{gateway.url}/v1",
        "RAG_METRICS_TOKEN": METRICS_TOKEN,
    }


def embedding_reply(numbers: Sequence[float], **reply: Any) -> Reply:
    """What an OpenAI-compatible endpoint answers for one text."""
    data = [{"object": "embedding", "index": 0, "embedding": list(numbers)}]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Reply(json={"object": "list", "model": "m", "data": data, "usage": usage}, **reply)


def event(
    kind: str,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: str | None = None,
    query: str = "",
    **fields: Any,
) -> dict[str, Any]:
    """That request as AWS documents it: `kind` is a file of events/, header names in lower case."""
    made: dict[str, Any] = json.loads((EVENTS / f"{kind}.json").read_text())
    made |= {"rawPath": path, "rawQueryString": query, **fields}
    made["requestContext"]["http"] |= {"method": method, "path": path}
    if kind == "http_api":
        made["routeKey"] = made["requestContext"]["routeKey"] = f"{method} {path}"
    made["headers"] |= headers or {}
    if body is not None:
        made["body"] = body
        made["headers"]["content-length"] = str(len(body))
    return made
