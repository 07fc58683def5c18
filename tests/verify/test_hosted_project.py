"""The record of a hosted project, with the local stack in its place."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from local import ROOT
from local.errors import CommandError
from local.seed_demo import settings_of
from local.stack import Stack
from local.verify_command import deployment_of
from shared.config import ThirdPartyIssuer
from tests import hosted_rehearsal
from tests.stand_in_server import Reply, StandIn
from tests.verify.test_run import TARGETS, secrets_of
from verify import command, hosted_project
from verify.hosted_parts import CHECKS, Project, parts

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
        database.execute(f"alter role authenticator set app.settings.jwt_secret to '{PLANTED}'")
        try:
            yield
        finally:
            database.execute("alter role authenticator reset app.settings.jwt_secret")


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
    assert {part["state"] for part in entry["parts"].values()} <= {"ok", "absent"}
    assert set(entry["latency_ms"]) == {"database", "postgrest", "functions"}
    for latency in entry["latency_ms"].values():
        assert 0 < latency["p50"] <= latency["p95"]
    assert (entry["verify"]["differs"], entry["verify"]["failure"]) == (False, None)
    assert any(line.startswith("attacks: ") for line in entry["verify"]["summary"])


@pytest.mark.long
def test_the_record_has_all_parts_and_no_secret(
    stack: Stack, environment: None, planted_secret: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "record.json"
    arguments = ["--push", "--url", stack.url, "--record", str(path)]
    assert hosted_project.main(arguments, TARGETS.__contains__) == command.SAME, capsys.readouterr().err
    check(path, stack)
    assert "pushed: nothing new" in capsys.readouterr().out


def project_of(stack: Stack, database: psycopg.Connection[Any], project_url: str = "") -> Project:
    deployment = replace(deployment_of(stack), project_url=project_url or stack.url)
    return Project(deployment, settings_of(stack), database)


def test_parts_that_a_project_lacks_are_absent(stack: Stack):
    with psycopg.connect(stack.database_url(), autocommit=True) as database:
        states = {name: part["state"] for name, part in parts(project_of(stack, database)).items()}
    assert states == dict.fromkeys(CHECKS, "absent") | {"keys": "ok"}


def test_faults_of_parts_are_found(stack: Stack):
    with (
        psycopg.connect(stack.database_url("supabase_admin"), autocommit=True) as database,
        database.transaction(force_rollback=True),
        StandIn() as project,
    ):
        project.replies(Reply(json={}))
        for name in ("vault.sql", "realtime.sql"):
            database.execute((ROOT / "tests" / name).read_bytes())
        database.execute(
            "grant usage on schema vault to authenticated; "
            "grant select on vault.decrypted_secrets to authenticated"
        )
        results = parts(project_of(stack, database, project_url=project.url))
    expected = {
        "keys": "no key: 200 instead of 401; an unknown key: 200 instead of 401; another key as bearer",
        "Vault": "Vault is readable by authenticated",
        "Realtime": "0 of 4 policies, 1 of 1 message",
        "edge function": "200 instead of 401",
    }
    assert {name: results[name]["state"] for name in expected} == dict.fromkeys(expected, "failed")
    for name, detail in expected.items():
        assert detail in results[name]["detail"]


def test_responses_of_another_server_are_faults(stack: Stack):
    """A deployment's 404 is not that of Supabase's runtime, a refusal of any text is not that of a secret
    key, and a list is no key set."""
    with psycopg.connect(stack.database_url(), autocommit=True) as database, StandIn() as server:
        server.replies(*[Reply(status=401)] * 5, Reply(json=[]), Reply(status=401), Reply(status=404))
        issuer = ThirdPartyIssuer(issuer="https://app.clerk.example", jwks_url=server.url)
        project = project_of(stack, database, project_url=server.url)
        settings = project.settings.model_copy(update={"rag_third_party_issuers": [issuer]})
        deployment = replace(project.deployment, url=server.url)
        results = parts(replace(project, settings=settings, deployment=deployment))
    assert "a secret key at the functions: it is not taken for a secret key" in results["keys"]["detail"]
    assert (results["third-party issuers"]["state"], results["edge function"]["state"]) == (
        "failed",
        "failed",
    )


def test_a_pooler_in_transaction_mode_is_refused_first(
    environment: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RAG_DATABASE_URL", "postgresql://postgres:x@127.0.0.1:6543/postgres")
    assert hosted_project.main(["--push"]) == command.FAILED
    assert capsys.readouterr().err.startswith("error: RAG_DATABASE_URL has the port 6543 of the pooler")


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


@pytest.mark.long
def test_the_rehearsal_differs_in_no_part(tmp_path: Path):
    if hosted_rehearsal.HostedProject.pooler() is None:
        pytest.skip("no pgbouncer here: apt-get install pgbouncer")
    status, entry = hosted_rehearsal.rehearse(tmp_path / "record.json")
    assert {name: part["state"] for name, part in entry["parts"].items()} == dict.fromkeys(CHECKS, "ok")
    assert status == command.SAME, entry["verify"]["findings"]


def test_the_page_of_the_rehearsal_has_all_parts_and_versions():
    text = hosted_rehearsal.PAGE.read_text()
    assert [name for name in CHECKS if f"| {name} | ok: " not in text] == []
    assert "failed: " not in text
    versions = [*(f"| Postgres {version}." for version in range(15, 19)), "PostgREST 11.", "PostgREST 12."]
    assert [version for version in versions if version not in text] == []
