"""The commands on machines of new users: keys and proxies in the shell, other Pythons, missing programs."""

import io
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from rich.console import Console

from functions.server import SLUGS
from local import ROOT, demo, install
from local.child_processes import free_port_from
from local.seed_demo import make_services
from local.shell_environment import isolate_demo
from local.stack import Stack
from shared.clients import proxies
from shared.errors import ConfigurationError
from shared.generation.generators import Extractive
from tests.local.command_line import run_local
from tests.stand_in_server import Reply, StandIn

# The start of a process that the demo would be, in a shell with all of the variables.
START = """
import os, sys
from pathlib import Path
from local.__main__ import main
from local.shell_environment import isolate_demo
from local.stack import Stack
isolate_demo()
print(*sorted(os.environ), *Stack(Path(sys.argv[1]))._gateway_environment())
"""


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    """The service or proxy that the variables name. Nothing may reach it."""
    with StandIn() as server:
        server.replies(Reply(status=500))
        yield server
        assert server.requests == []


@contextmanager
def shell(variables: dict[str, str]) -> Iterator[None]:
    """This process's environment, with these variables and the system's alone."""
    before = dict(os.environ)
    proxies.proxy_of.cache_clear()
    try:
        os.environ.clear()
        os.environ.update({"PATH": before["PATH"], "HOME": "/nonexistent", **variables})
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        proxies.proxy_of.cache_clear()


def python(code: str, *arguments: str, **variables: str) -> str:
    """The output of a new process."""
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


# Each is the shell of another user.
SHELLS = {
    "a key of OpenAI": {"OPENAI_API_KEY": "sk-any", "OPENAI_BASE_URL": "{url}", "RAG_EMBEDDING_URL": "{url}"},
    "a key of a gateway": {"LOVABLE_API_KEY": "any", "RAG_LLM_URL": "{url}"},
    "settings of another deployment": {
        "RAG_LLM_MODEL": "gpt-5",
        "RAG_RATE_LIMIT_RAG": "many",
        "RAG_SIGNING_KEY": "{}",
        "SUPABASE_URL": "{url}",
        "SUPABASE_JWT_SECRET": "s",
        "DATABASE_URL": "postgresql://nowhere.invalid/db",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "{url}",
        "RERANK_PROVIDER": "cohere",
        "RAG_REMOVED_SETTING": "1",
    },
    "HTTP proxies": dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), "{url}"
    ),
    "a SOCKS proxy": {"ALL_PROXY": "socks5://127.0.0.1:9", "all_proxy": "socks://127.0.0.1:9"},
    "locale, time zone, terminal, libpq": {
        "LC_ALL": "tr_TR.UTF-8",
        "LANG": "POSIX",
        "TZ": "Asia/Kathmandu",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "COLUMNS": "30",
        "PGHOST": "nowhere.invalid",
        "PGSSLMODE": "verify-full",
        "PGOPTIONS": "-c search_path=nowhere",
        "PGSERVICE": "other",
    },
}


# A stack has these of its own.
OWN = {"RAG_SIGNING_KEY", "SUPABASE_URL", "SUPABASE_JWT_SECRET"}


@pytest.mark.parametrize("name", SHELLS)
def test_the_demo_uses_the_local_model_and_asks_nobody(stack: Stack, stand_in: StandIn, name: str):
    variables = {name: value.replace("{url}", stand_in.url) for name, value in SHELLS[name].items()}
    question = demo.Question("tomas@halden.example", "answer", "What does error code E-42 mean?")
    with shell(variables):
        assert not isolate_demo()
        assert not variables.keys() & stack._gateway_environment().keys() - OWN
        with closing(make_services(stack)) as services:
            assert services.embedder.model == "all-MiniLM-L6-v2"
            assert len(services.embedder.embed(["word"])[0]) == 384
            assert isinstance(services.generator, Extractive)
        body = demo.ask(stack.url, stack.anon_key, stack.token(question.asker), question)
    assert body["status"] in ("success", "insufficient_context")


def test_a_process_in_such_a_shell_starts_and_keeps_no_setting(tmp_path: Path):
    variables = {name: value for shell in SHELLS.values() for name, value in shell.items()}
    kept = set(python(START, str(tmp_path), **variables).split())
    assert kept & variables.keys() - OWN == {"LC_ALL", "LANG", "TZ", "TERM", "NO_COLOR", "COLUMNS"}


def test_the_tests_keep_only_variables_that_they_name():
    variables = {name: value for shell in SHELLS.values() for name, value in shell.items()}
    kept = python("import os, pytest, tests; print(*os.environ)", **variables, CI="true", PYTEST_ADDOPTS="-x")
    named = {"PATH", "HOME", "CI", "PYTEST_ADDOPTS", "LC_ALL", "LANG", "TZ", "TERM", "NO_COLOR", "COLUMNS"}
    assert set(kept.split()) - {"LC_CTYPE"} == named


def run(folder: Path, *arguments: str, **variables: str) -> str:
    """The one line of the error of a command in that shell."""
    with shell(variables):
        process = run_local(folder, *arguments)
    assert process.returncode == 1
    assert process.stderr.startswith("error: ")
    assert process.stderr.count("\n") == 1
    assert "secret" not in process.stdout + process.stderr
    return process.stderr.removeprefix("error: ")


def test_the_demo_s_own_variable_needs_a_key_and_has_one_value(tmp_path: Path):
    assert run(tmp_path, "demo", RAG_DEMO_MODELS="environment").startswith(
        "RAG_DEMO_MODELS=environment needs a key"
    )
    error = run(tmp_path, "demo", RAG_DEMO_MODELS="yes", OPENAI_API_KEY="k")
    assert error.startswith("RAG_DEMO_MODELS has only one value")


def test_serve_names_a_wrong_variable_before_it_starts_anything(tmp_path: Path):
    for variables, sentence in (
        ({"RAG_LLM_MODEL": "gpt-5"}, "RAG_LLM_API_KEY: not set, but RAG_LLM_URL or RAG_LLM_MODEL is"),
        ({"RAG_RATE_LIMIT_RAG": "many"}, "RAG_RATE_LIMIT_RAG: one rate per second"),
        (
            {"OPENAI_API_KEY": "k", "ALL_PROXY": "socks://u:secret@x:9"},
            "ALL_PROXY: socks:// is not supported",
        ),
        ({"OPENAI_API_KEY": "k", "https_proxy": "socks5://u:secret@x:9"}, "HTTPS_PROXY: a SOCKS proxy needs"),
    ):
        assert run(tmp_path, "serve", **variables).startswith(sentence)
    assert not (tmp_path / "postgres").exists()


def test_serve_reports_its_models_and_the_names_of_the_variables_used(stack: Stack, stand_in: StandIn):
    variables = {
        "OPENAI_API_KEY": "sk-secret",
        "RAG_EMBEDDING_URL": stand_in.url,
        "LOVABLE_API_KEY": "secret",
        "RAG_REMOVED_SETTING": "1",
        "PGHOST": "x",
    }
    output = io.StringIO()
    with shell(variables), closing(make_services(stack)) as services:
        demo.report_models(services, Console(file=output, width=300))
    assert output.getvalue().splitlines() == [
        "From the shell: LOVABLE_API_KEY, OPENAI_API_KEY, RAG_EMBEDDING_URL",
        "Ignored, since no setting has this name: RAG_REMOVED_SETTING",
        f"Embeddings: text-embedding-3-small at {stand_in.url}",
        "Answers: google/gemini-2.5-flash at https://ai.gateway.lovable.dev/v1",
    ]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    assert run(tmp_path / "file" / "stack", "up") == f"{tmp_path}/file/stack/stack.json: Not a directory\n"


def test_the_default_port_is_replaced_by_the_next_free_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert free_port_from(port) in range(port + 10, 2**16, 10)
    assert free_port_from(port) == port


# -- proxies ----------------------------------------------------------------------------------------------


@pytest.fixture
def proxy_of() -> Any:
    """proxy_of_url with these variables."""

    def of(url: str, **variables: str) -> str | None:
        with shell(variables):
            return proxies.proxy_of_url(url)

    return of


def test_a_proxy_leads_to_services_and_never_to_this_machine(proxy_of: Any):
    proxy = "http://proxy.example:3128"
    for url, variables, expected in (
        ("https://api.openai.com/v1", {"HTTPS_PROXY": proxy}, proxy),
        ("https://api.openai.com/v1", {"HTTP_PROXY": proxy}, None),
        ("https://api.openai.com/v1", {"ALL_PROXY": proxy}, proxy),
        ("https://api.openai.com/v1", {"https_proxy": "proxy.example:3128"}, proxy),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": proxy, "NO_PROXY": "openai.com"}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": proxy, "NO_PROXY": "*"}, None),
        ("http://127.0.0.1:54321", {"HTTP_PROXY": proxy, "ALL_PROXY": "socks://x:1"}, None),
        ("http://127.9.9.9", {"HTTP_PROXY": proxy}, None),
        ("http://[::1]:8000", {"HTTP_PROXY": proxy}, None),
        ("http://localhost:8000", {"HTTP_PROXY": proxy}, None),
        ("http://kong.localhost", {"HTTP_PROXY": proxy}, None),
        ("http://10.0.0.7:11434/v1", {"HTTP_PROXY": proxy}, proxy),
    ):
        assert proxy_of(url, **variables) == expected, (url, variables)
    with pytest.raises(ConfigurationError, match=r"^ALL_PROXY: socks:// is not supported; use one of http, "):
        proxy_of("https://api.openai.com", ALL_PROXY="socks://user:secret@proxy.example:1")


# -- other versions of Python -----------------------------------------------------------------------------


def test_no_validator_is_a_builtin_whose_signature_differs_between_versions():
    """str.format has a signature since Python 3.13, and pydantic takes it for one with two arguments."""
    for module in SLUGS.values():
        import_module(module)
    models = [model for model in _subclasses(BaseModel) if model.__module__.startswith("shared.")]
    assert len(models) > 100
    validators = {
        (model.__name__, name, part.func)
        for model in models
        for name, field in model.model_fields.items()
        for part in field.metadata
        if hasattr(part, "func")
    }
    assert validators
    assert [row for row in validators if type(row[2]).__name__ == "builtin_function_or_method"] == []


def _subclasses(cls: type[Any]) -> set[type[Any]]:
    return {cls}.union(*map(_subclasses, cls.__subclasses__()))


# -- the installation -------------------------------------------------------------------------------------


def install_npm(folder: Path, programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`install.py npm` where only these programs are installed, each a script."""
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(stat.S_IRWXU)
    return subprocess.run(
        [sys.executable, "local/install.py", "npm"],
        env={"PATH": str(folder)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("programs", "sentence"),
    [
        ({}, "Node is missing; install Node 20 or newer with npm"),
        ({"node": "echo v18.19.0"}, "Node 20 or newer is needed, and {folder}/node is v18.19.0; install"),
        ({"node": "exit 1"}, "Node 20 or newer is needed, and {folder}/node is broken; install"),
        ({"node": "echo v22.1.0"}, "npm is missing; it comes with Node"),
        (
            {"node": "echo v22.1.0", "npm": "echo npm error code ENOTFOUND >&2; exit 1"},
            "the npm packages were not installed: the package registry was not reached; check the network",
        ),
    ],
)
def test_a_missing_or_old_program_is_named(tmp_path: Path, programs: dict[str, str], sentence: str):
    process = install_npm(tmp_path, programs)
    assert process.returncode == 1
    assert process.stderr.startswith(f"error: {sentence.replace('{folder}', str(tmp_path))}")
    assert process.stderr.count("\n") == 1


def test_the_output_of_a_failed_installer_becomes_a_sentence():
    for output, sentence in INSTALLERS_OUTPUT:
        assert install.cause_of(output).startswith(sentence), output


INSTALLERS_OUTPUT = [
    (
        "WARNING: Failed to establish a new connection: [Errno 111] Connection refused')': /simple/uv/\n"
        "ERROR: Could not find a version that satisfies the requirement uv (from versions: none)\n"
        "ERROR: No matching distribution found for uv\n",
        "the package registry was not reached; check the network, HTTPS_PROXY",
    ),
    (
        "ERROR: Could not install packages due to an OSError: Missing dependencies for SOCKS support.\n",
        "pip has no SOCKS support; set HTTPS_PROXY",
    ),
    (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n\n",
        "the disk is full; free some space, and run make again ([Errno 28]"[:54],
    ),
    (
        "error: Failed to create `.venv/x`\n  Caused by: Read-only file system (os error 30)\n",
        "the folder cannot be",
    ),
    ("something else\n", "the installer failed (something else)"),
]


def test_a_python_that_is_too_old_or_missing_is_named(tmp_path: Path):
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(stat.S_IRWXU)
    for python in (str(tmp_path / "python3"), "python-of-nobody"):
        rule = re.search(r"^\.venv/ready:.*?\n\n", (ROOT / "Makefile").read_text(), re.DOTALL | re.MULTILINE)
        assert rule
        (tmp_path / "Makefile").write_text(f"PYTHON := {python}\nINSTALL := false\n{rule[0]}")
        for name in re.findall(r"\S+\.txt", rule[0].splitlines()[0]):
            (tmp_path / name).touch()
        made = subprocess.run(
            ["make", ".venv/ready"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert made.returncode != 0
        assert made.stderr.startswith(
            f"error: Python 3.11 or newer is needed, and {python} is missing or older"
        )
