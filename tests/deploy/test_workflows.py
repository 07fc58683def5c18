"""The GitHub workflows: what they run is what exists here, and brings a database where it should be.

GitHub itself is not here; `make check` lints them with zizmor, which needs no network.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import yaml

from local import ROOT, declared_schema
from local.stack import Stack
from local.tools import migrations
from shared.api.health import VERSION
from tests.external_programs import completed

FOLDER = ROOT / ".github" / "workflows"
SECRETS = {"SUPABASE_ACCESS_TOKEN", "SUPABASE_DB_PASSWORD", "SUPABASE_PROJECT_REF"}


def workflow(name: str) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load((FOLDER / f"{name}.yml").read_text())
    # YAML 1.1 takes the key `on` for a truth.
    return {"on" if key is True else key: value for key, value in read.items()}


CHECK, DEPLOY, NIGHTLY = workflow("check"), workflow("deploy-database"), workflow("nightly")
AUDIT, RELEASE = workflow("audit"), workflow("release")


@pytest.fixture
def project(stack: Stack) -> Iterator[str]:
    """The address of a database that has what a hosted project has, and nothing of ours."""
    name = f"{stack.state.database}_deployed"
    migrations.make_database(stack.postgres, name)
    yield stack.database_url(database=name)
    migrations.drop_database(stack.postgres, name)


def has_schema(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("select from pg_namespace where nspname = 'rag'").fetchone() is not None


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_a_release_publishes_what_the_check_passed_and_attests_each_file():
    jobs = RELEASE["jobs"]
    assert RELEASE["on"] == {"push": {"tags": ["v*"]}}
    assert jobs["check"]["uses"] == "./.github/workflows/check.yml"
    assert (jobs["packages"]["needs"], jobs["image"]["needs"]) == ("check", "packages")
    attested = jobs["packages"]["steps"][-2]["with"]["subject-path"].split()
    assert commands(jobs["packages"])[-1].endswith(" ".join(attested))


def test_all_packages_have_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    packages = [
        json.loads((ROOT / folder / "package.json").read_text()) for folder in (".", "sdk/typescript")
    ]
    assert [VERSION, *(package["version"] for package in packages)] == [project] * 3
    assert f'__version__ = "{project}"' in (ROOT / "sdk/python/src/mnemosyne/version.py").read_text()


def test_the_database_is_deployed_after_the_check_and_with_the_environment_s_secrets():
    assert set(DEPLOY["on"]) == {"workflow_dispatch", "push"}
    assert DEPLOY["on"]["push"] == {"branches": ["main"], "paths": ["supabase/migrations/**"]}
    assert DEPLOY["jobs"]["check"]["uses"] == "./.github/workflows/check.yml"
    job = DEPLOY["jobs"]["push"]
    assert (job["needs"], job["environment"]) == ("check", "production")
    # They are called from one another: the same group would wait for itself.
    assert DEPLOY["concurrency"]["group"] != CHECK["concurrency"]["group"]
    output = (FOLDER / "deploy-database.yml").read_text()
    assert set(re.findall(r"secrets\.(\w+)", output)) == SECRETS
    for step in job["steps"]:
        # No installer sees them.
        assert ("SUPABASE_ACCESS_TOKEN" in step.get("env", {})) == ("npx" in step.get("run", ""))


@pytest.mark.long
def test_the_deploy_commands_apply_the_migrations_after_a_dry_run(stack: Stack, project: str):
    dry, wet = (
        step["run"] for step in DEPLOY["jobs"]["push"]["steps"] if "supabase db push" in step.get("run", "")
    )
    made = []
    for command in (dry, wet, wet):
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(stack.folder), "SUPABASE_TELEMETRY_DISABLED": "1",
            "SUPABASE_PROJECT_REF": project,
        }  # fmt: skip
        process = completed(["bash", "-euo", "pipefail", "-c", command], env=environment, input="")
        assert process.returncode == 0, process.stdout + process.stderr
        made.append(has_schema(project))
        if command == dry:
            assert all(
                path.name in process.stdout + process.stderr
                for path in declared_schema.MIGRATIONS.glob("*.sql")
            )
    assert made == [False, True, True]
