"""Commands in shells with keys, settings and proxies: only named variables are used."""

import io
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from local import demo
from local.child_processes import free_port_from
from local.seed_demo import make_services
from local.shell_environment import isolate_demo, no_proxy_for_loopback
from local.stack import Stack
from shared.clients import proxies
from shared.generation.generators import Extractive
from shared.models.embedding_roles import Role
from tests.external_programs import completed
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
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
    process = completed([sys.executable, "-c", code, *arguments], env=environment)
    assert process.returncode == 0, process.stderr
    return process.stdout


# Each is the shell of another user.
SHELLS = {
    "keys, settings of another deployment, HTTP proxies": {
        **{"OPENAI_API_KEY": "sk-any", "OPENAI_BASE_URL": "{url}", "RAG_EMBEDDING_URL": "{url}"},
        **{"LOVABLE_API_KEY": "any", "RAG_LLM_URL": "{url}"},
        "RAG_LLM_MODEL": "gpt-5", "RAG_RATE_LIMIT_RAG": "many", "RAG_SIGNING_KEY": "{}",
        "SUPABASE_URL": "{url}", "SUPABASE_JWT_SECRET": "s", "DATABASE_URL": "postgresql://nowhere.invalid/db",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "{url}", "RERANK_PROVIDER": "cohere", "RAG_REMOVED_SETTING": "1",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), "{url}"),
    },
    "a SOCKS proxy, locale, time zone, terminal, libpq": {
        **{"ALL_PROXY": "socks5://127.0.0.1:9", "all_proxy": "socks://127.0.0.1:9"},
        "LC_ALL": "tr_TR.UTF-8", "LANG": "POSIX", "TZ": "Asia/Kathmandu", "TERM": "dumb", "NO_COLOR": "1",
        "COLUMNS": "30", "PGHOST": "nowhere.invalid", "PGSSLMODE": "verify-full",
        "PGOPTIONS": "-c search_path=nowhere", "PGSERVICE": "other",
    },
}  # fmt: skip


# A stack has these of its own.
OWN = {"RAG_SIGNING_KEY", "SUPABASE_URL", "SUPABASE_JWT_SECRET"}


@pytest.mark.parametrize("name", SHELLS)
def test_the_demo_uses_the_local_model_and_no_service(stack: Stack, stand_in: StandIn, name: str):
    variables = {name: value.replace("{url}", stand_in.url) for name, value in SHELLS[name].items()}
    question = demo.Question("tomas@halden.example", "answer", "What does error code E-42 mean?")
    with shell(variables):
        assert not isolate_demo()
        assert not variables.keys() & stack._gateway_environment().keys() - OWN
        with closing(make_services(stack)) as services:
            assert services.embedder.model == "all-MiniLM-L6-v2"
            assert len(services.embedder.embed(["word"], Role.QUESTION)[0]) == 384
            assert isinstance(services.generator, Extractive)
        body = demo.ask(stack.url, stack.publishable_key, stack.token(question.asker), question)
    assert body["status"] in ("success", "insufficient_context")


def test_a_process_in_such_a_shell_starts_and_keeps_no_setting(tmp_path: Path):
    variables = {name: value for shell in SHELLS.values() for name, value in shell.items()}
    remaining = set(python(START, str(tmp_path), **variables).split())
    assert remaining & variables.keys() - OWN == {"LC_ALL", "LANG", "TZ", "TERM", "NO_COLOR", "COLUMNS"}


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
        ({"OPENAI_API_KEY": "k", "ALL_PROXY": "socks://u:secret@x:9"}, "ALL_PROXY: not a URL of a proxy"),
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
        f"Embeddings: text-embedding-3-small at {stand_in.url}. "
        "Answers: google/gemini-3.5-flash-lite at https://ai.gateway.lovable.dev/v1.",
    ]


def test_a_folder_that_cannot_be_written_is_named_with_a_way_out(tmp_path: Path):
    (tmp_path / "file").touch()
    error = run(tmp_path / "file" / "stack", "up")
    assert error.startswith(f"{tmp_path}/file/stack/stack.json: Not a directory; free some space, or choose")


def test_the_default_port_is_replaced_by_the_next_free_one():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert free_port_from(port) in range(port + 10, 2**16, 10)
    assert free_port_from(port) == port


def test_the_gateway_gets_the_proxies_with_an_exception_for_this_machine():
    for own, expected in (
        ("", "localhost,127.0.0.1,::1"),
        ("corp.example", "corp.example,localhost,127.0.0.1,::1"),
        ("corp.example,*", "*"),
    ):
        with shell({"NO_PROXY": own}):
            assert no_proxy_for_loopback() == {"NO_PROXY": expected, "no_proxy": expected}


def test_a_stack_ignores_settings_of_another_deployment(stack: Stack):
    variables = {
        "SUPABASE_READ_URL": "https://other.example",
        "SUPABASE_JWT_SECRET": '{"keys": []}',
        "RAG_WORKER_TOKEN": "short",
    }
    with shell(variables), closing(make_services(stack)) as services:
        assert services.settings.supabase_read_url is None
        assert services.settings.rag_worker_token is None
