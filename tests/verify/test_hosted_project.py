"""The record of a hosted project, with the local stack in its place."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from local.errors import CommandError
from local.stack import Stack
from tests.verify.test_run import TARGETS, secrets_of
from verify import command, hosted_project

PLANTED = "planted-secret-7f3x-of-a-role"
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


@pytest.fixture
def planted_secret(stack: Stack) -> Iterator[None]:
    """As older projects keep the JWT secret."""
    with psycopg.connect(stack.postgres.url(), autocommit=True) as database:
        database.execute(f"alter role authenticator set pgrst.jwt_secret to '{PLANTED}'")
        try:
            yield
        finally:
            database.execute("alter role authenticator reset pgrst.jwt_secret")


def check(record: Path, stack: Stack) -> None:
    text = record.read_text()
    for secret in (*secrets_of(stack), stack.state.jwt_secret, stack.database_url(), PLANTED):
        assert secret not in text
    entry = json.loads(text)
    assert entry["advisors"] == []
    assert {role["name"] for role in entry["roles"]} == ROLES
    assert not any(role["superuser"] for role in entry["roles"])
    assert any(
        setting.startswith("statement_timeout=") for role in entry["roles"] for setting in role["settings"]
    )
    assert int(entry["limits"]["max_connections"]) > 0
    assert "extension vector" in entry["limits"]
    assert set(entry["latency_ms"]) == {"database", "postgrest", "functions"}
    for latency in entry["latency_ms"].values():
        assert 0 < latency["p50"] <= latency["p95"]
    assert (entry["verify"]["differs"], entry["verify"]["failure"]) == (False, None)
    assert any(line.startswith("attacks: ") for line in entry["verify"]["summary"])


@pytest.mark.long
def test_the_record_has_all_parts_and_no_secret(
    stack: Stack,
    environment: None,
    planted_secret: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    path = tmp_path / "record.json"
    arguments = ["--push", "--url", stack.url, "--record", str(path)]
    assert hosted_project.main(arguments, TARGETS.__contains__) == command.SAME, capsys.readouterr().err
    check(path, stack)
    assert "pushed: nothing new" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["", "Done.", "[]", "{}", '{"migrations": null}'])
def test_other_output_of_the_cli_is_an_error(output: str):
    with pytest.raises(CommandError, match="no list 'migrations'"):
        hosted_project.list_of("migrations", "push", output)


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
