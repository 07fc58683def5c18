"""The record of a hosted project, with the local stack in its place."""

import json
from pathlib import Path

import pytest

from local.stack import Stack
from tests.verify.test_run import TARGETS, secrets_of
from verify import command, hosted_project

ROLES = {"anon", "authenticated", "authenticator", "postgres", "rag_worker", "service_role"}


@pytest.fixture
def environment(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the owner of the project sets it."""
    settings = {
        **stack.function_environment(),
        "RAG_DATABASE_URL": stack.database_url(),
        "SUPABASE_JWT_SECRET": stack.state.jwt_secret,
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def check(record: Path, stack: Stack) -> None:
    text = record.read_text()
    for secret in (*secrets_of(stack), stack.state.jwt_secret, stack.database_url()):
        assert secret not in text
    entry = json.loads(text)
    assert entry["advisors"] == []
    assert {role["name"] for role in entry["roles"]} == ROLES
    assert not any(role["superuser"] for role in entry["roles"])
    assert int(entry["limits"]["max_connections"]) > 0
    assert "extension vector" in entry["limits"]
    assert set(entry["latency_ms"]) == {"database", "postgrest", "functions"}
    for latency in entry["latency_ms"].values():
        assert 0 < latency["p50"] <= latency["p95"]
    assert (entry["verify"]["differs"], entry["verify"]["failure"]) == (False, None)
    assert any(line.startswith("attacks: ") for line in entry["verify"]["summary"])


def test_the_record_has_all_parts_and_no_secret(
    stack: Stack, environment: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "record.json"
    arguments = ["--push", "--url", stack.url, "--record", str(path)]
    assert hosted_project.main(arguments, TARGETS.__contains__) == command.SAME, capsys.readouterr().err
    check(path, stack)
    assert "pushed: nothing new" in capsys.readouterr().out


@pytest.mark.long
def test_the_whole_script_runs_with_functions_of_its_own(stack: Stack, environment: None, tmp_path: Path):
    path = tmp_path / "record.json"
    assert hosted_project.main(["--record", str(path)]) == command.SAME
    check(path, stack)


def test_a_failure_is_one_line_without_a_secret(
    stack: Stack,
    environment: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    path = tmp_path / "record.json"
    monkeypatch.setenv("RAG_DATABASE_URL", stack.database_url().replace(stack.state.password, "wrong-7f3x"))
    assert hosted_project.main(["--record", str(path)]) == command.FAILED
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert "wrong-7f3x" not in error
    monkeypatch.delenv("RAG_DATABASE_URL")
    assert hosted_project.main([]) == command.FAILED
    assert "Set RAG_DATABASE_URL" in capsys.readouterr().err
    assert not path.exists()
