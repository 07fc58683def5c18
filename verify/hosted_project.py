"""Record of a hosted project, as one file: push, advisors, roles, limits, latency, parts, run of verify.

`python -m verify.hosted_project`, with the environment of `python -m verify`. A person runs it with the keys
of their project and commits the file, which has no secret.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
import psycopg

from local import ROOT
from local.errors import CommandError
from local.npm_tools import supabase
from local.operations.org_data.database import require_session
from shared.clients.http_client import http_client
from shared.config import read_settings
from shared.errors import ConfigurationError
from verify.command import (
    DATABASE_URL,
    DIFFERS,
    FAILED,
    SAME,
    deployment_of_environment,
    passwords,
    secrets_of_environment,
)
from verify.hosted_parts import FAILED as PART_FAILED
from verify.hosted_parts import Project, parts
from verify.report import private_members, without_secrets
from verify.run import PartFailed, verify
from verify.target_deployment import Deployment, SetupFailed

Row = dict[str, Any]
REQUESTS = 100
TOKEN_SECONDS = 600
# A role's settings may hold secrets (pgrst.jwt_secret, app.settings.*): the record has these alone.
ROLES = """
select rolname as name, rolsuper as superuser, rolbypassrls as bypasses_row_security, rolcanlogin as logs_in,
  rolconnlimit as connections, array(
    select setting from unnest(rolconfig) as setting
    where split_part(setting, '=', 1) = any (array['search_path', 'statement_timeout', 'lock_timeout',
      'idle_in_transaction_session_timeout', 'session_preload_libraries', 'log_statement',
      'pgrst.db_schemas', 'pgrst.db_pre_request', 'pgrst.db_max_rows', 'pgrst.db_aggregates_enabled'])
    order by 1) as settings
from pg_roles
where rolname in ('anon', 'authenticated', 'authenticator', 'postgres', 'rag_worker', 'service_role')
order by 1
"""
LIMITS = """
select name, setting || coalesce(unit, '') as value
from pg_settings
where name in ('server_version', 'max_connections', 'statement_timeout', 'shared_buffers', 'work_mem',
  'maintenance_work_mem', 'max_parallel_workers', 'max_wal_size', 'idle_in_transaction_session_timeout')
union all
select 'extension ' || extname, extversion from pg_extension order by 1
"""


def main(arguments: Sequence[str] | None = None, only: Callable[[str], bool] = lambda _: True) -> int:
    """Attacks are limited as those of `verify`. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m verify.hosted_project", description=__doc__)
    parser.add_argument(
        "--url", help="URL of the deployed functions; without it, those of this checkout are started"
    )
    parser.add_argument("--push", action="store_true", help="apply the migrations of this checkout first")
    parser.add_argument(
        "--record", type=Path, default=Path("hosted-project.json"), help="default %(default)s"
    )
    options = parser.parse_args(arguments)
    database_url = os.environ.get(DATABASE_URL, "")
    if not database_url:
        print(f"error: Set {DATABASE_URL} to the URL of the database, of the role postgres.", file=sys.stderr)
        return FAILED
    secrets = [*secrets_of_environment(), database_url, *passwords(database_url)]
    secrets += [member for secret in secrets for member in private_members(secret)]
    try:
        require_session(database_url, DATABASE_URL)
        entry = record(database_url, options.url, push=options.push, only=only)
        text = without_secrets(json.dumps(entry, indent=1, default=str), secrets)
        options.record.write_text(text + "\n")
    except (SetupFailed, ConfigurationError, CommandError, psycopg.Error, httpx.HTTPError, OSError) as error:
        print(without_secrets(f"error: {error}", secrets), file=sys.stderr)
        return FAILED
    print(without_secrets("\n".join(summary(entry)), secrets))
    print(f"record: {options.record}")
    if entry["verify"]["failure"]:
        return FAILED
    differs = entry["verify"]["differs"] or entry["advisors"]
    return DIFFERS if differs or _failed(entry) else SAME


def record(database_url: str, url: str | None, *, push: bool, only: Callable[[str], bool]) -> Row:
    """All parts. Raises SetupFailed, ConfigurationError, CommandError and the errors of psycopg and httpx."""
    entry: Row = {
        "measured_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}",
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "pushed": _cli("migrations", database_url, "push") if push else None,
    }
    entry["advisors"] = [
        {name: finding.get(name) for name in ("level", "name", "detail")}
        for finding in _cli("results", database_url, "advisors", "--type=all", "--level=warn")
    ]
    with psycopg.connect(database_url, autocommit=True) as database:
        entry["roles"] = _rows(database, ROLES)
        entry["limits"] = {row["name"]: row["value"] for row in _rows(database, LIMITS)}
        entry["latency_ms"] = {"database": _latency(lambda: database.execute("select 1"))}
    with deployment_of_environment(url, database_url, True) as deployment:
        entry["latency_ms"] |= _latency_of(deployment)
        with psycopg.connect(database_url, autocommit=True) as database:
            entry["parts"] = parts(Project(deployment, read_settings(), database))
        try:
            report = verify(deployment, only=only, progress=lambda part: print(f"{part} ...", flush=True))
        except PartFailed as error:
            report = error.report
    entry["verify"] = {
        "release": report.release,
        "differs": bool(report.findings),
        "failure": report.failure,
        "summary": report.summary(),
        "findings": [asdict(finding) for finding in report.findings],
        "recall": [asdict(result) | {"recall": result.recall} for result in report.recall],
    }
    return entry


def summary(entry: Row) -> Iterable[str]:
    if entry["pushed"] is not None:
        yield f"pushed: {', '.join(entry['pushed']) or 'nothing new'}"
    yield f"advisors: {len(entry['advisors'])} findings"
    for name, part in entry["parts"].items():
        yield f"{name}: {part['state']}, {part['detail']}"
    for name, latency in entry["latency_ms"].items():
        yield f"{name}: p50 {latency['p50']} ms, p95 {latency['p95']} ms"
    yield from entry["verify"]["summary"]


def _failed(entry: Row) -> bool:
    return any(part["state"] == PART_FAILED for part in entry["parts"].values())


def _cli(name: str, database_url: str, command: str, *options: str) -> list[Any]:
    """The list `name` in the output of `supabase db COMMAND` on the database. Raises CommandError if the
    command fails, or for other output."""
    arguments = ["db", command, *options, "--yes", "--output-format", "json", f"--remote={database_url}"]
    with tempfile.TemporaryDirectory(prefix="verify-") as home:
        output = supabase(Path(home), *arguments)
    return list_of(name, command, output)


def list_of(name: str, command: str, output: str) -> list[Any]:
    """Raises CommandError for output that does not begin with a JSON object with this list."""
    try:
        result = json.JSONDecoder().raw_decode(output)[0][name]
    except (ValueError, LookupError, TypeError):
        result = None
    if not isinstance(result, list):
        raise CommandError(f"supabase db {command}: the output has no list {name!r}. Run npm install.")
    return result


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout.strip()


def _rows(database: psycopg.Connection[Any], statement: str) -> list[Row]:
    cursor = database.execute(statement.encode())
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _latency_of(deployment: Deployment) -> Row:
    """Of a call of PostgREST, and of the functions' health."""
    token = deployment.signer.token(TOKEN_SECONDS, sub="00000000-0000-4000-8000-000000000000")
    headers = {"Authorization": f"Bearer {token}"}
    call = f"{deployment.project_url}/rest/v1/rpc/is_org_member"
    body = {"org_id": "00000000-0000-4000-8000-000000000000"}
    with http_client(30) as client:
        project_headers = headers | deployment.project_headers
        return {
            "postgrest": _latency(
                lambda: client.post(call, json=body, headers=project_headers).raise_for_status()
            ),
            "functions": _latency(lambda: client.get(f"{deployment.url}/health").raise_for_status()),
        }


def _latency(action: Callable[[], object]) -> Row:
    """p50 and p95 of the milliseconds of an action, one after the other, after a first one."""
    action()
    milliseconds = []
    for _ in range(REQUESTS):
        started = time.perf_counter()
        action()
        milliseconds.append((time.perf_counter() - started) * 1000)
    shares = quantiles(milliseconds, n=20)
    return {"p50": round(shares[9], 2), "p95": round(shares[18], 2), "requests": REQUESTS}


if __name__ == "__main__":
    sys.exit(main())
