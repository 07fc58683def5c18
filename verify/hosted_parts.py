"""Parts of a Supabase project that the product uses: keys, Vault, Realtime and others.

Each part is `ok`, `absent` (the project does not have it, and nothing needs it) or `failed`, with a sentence.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from local import ROOT
from local.errors import CommandError
from local.postgres import installation, reason_of
from shared.access.jwks import keys_of
from shared.access.jwt_verifier import ELEVATED_KEY
from shared.clients.http_client import http_client
from shared.config import Settings
from verify.target_deployment import Deployment

OK, ABSENT, FAILED = "ok", "absent", "failed"
TOKEN_SECONDS = 600
# Policies of sql/90_operations/70_realtime.sql.
REALTIME_POLICIES = 4
PGTAP_FILES = sorted((ROOT / "supabase" / "tests").glob("*.sql"))


@dataclass(frozen=True)
class Project:
    deployment: Deployment
    settings: Settings
    database: psycopg.Connection[Any]


def parts(project: Project) -> dict[str, dict[str, str]]:
    """The state and the sentence of each part, by its name."""
    results = {}
    for name, check in CHECKS.items():
        try:
            state, detail = check(project)
        except Exception as error:
            state, detail = FAILED, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        results[name] = {"state": state, "detail": detail}
    return results


def _keys(project: Project) -> tuple[str, str]:
    """Whether the project's gateway and the functions refuse all keys but the project's own."""
    deployment = project.deployment
    call = f"{deployment.project_url}/rest/v1/rpc/is_org_member"
    key, user = deployment.anon_key, f"Bearer {_token(deployment)}"
    search = f"{deployment.url}/api/rag/search"
    elevated = {"Authorization": "Bearer sb_secret_unknown"}
    attempts = {
        # Finds a gateway that refuses every request.
        "the project's key with a user's token": (call, {"apikey": key, "Authorization": user}, 200),
        "no key": (call, {"Authorization": user}, 401),
        "an unknown key": (call, {"apikey": "sb_publishable_unknown", "Authorization": user}, 401),
        "another key as bearer": (call, {"apikey": key} | elevated, 401),
        "a secret key at the functions": (search, elevated, 401),
    }
    faults = []
    with http_client(30) as client:
        for name, (address, headers, expected) in attempts.items():
            response = client.post(address, json={"org_id": str(uuid4())}, headers=headers)
            if response.status_code != expected:
                faults.append(f"{name}: {response.status_code} instead of {expected}")
            # The functions refuse any text that is no token, and a secret key with a message of its own.
            elif address == search and ELEVATED_KEY not in response.text:
                faults.append(f"{name}: it is not taken for a secret key")
    kind = "publishable" if key.startswith("sb_publishable_") else "legacy anon"
    return (FAILED, "; ".join(faults)) if faults else (OK, f"{len(attempts)} requests, {kind} key")


def _issuers(project: Project) -> tuple[str, str]:
    """Whether each third-party issuer publishes a key of its algorithms. `verify` compares them with
    rag.settings."""
    issuers = project.settings.rag_third_party_issuers
    without_key = []
    with http_client(30) as client:
        for each in issuers:
            keys = keys_of(client.get(str(each.jwks_url)).raise_for_status().content)
            if not any(algorithm in each.algorithms for algorithm, _ in keys.values()):
                without_key.append(each.issuer)
    if without_key:
        return FAILED, f"no key of the algorithms is published by {', '.join(without_key)}"
    return (OK, f"{len(issuers)} with keys") if issuers else (ABSENT, "RAG_THIRD_PARTY_ISSUERS is not set")


def _vault(project: Project) -> tuple[str, str]:
    """A secret goes to Vault and back, in a transaction that is rolled back."""
    with _rolled_back(project.database) as database:
        if _value(database, "select to_regprocedure('vault.create_secret(text,text,text,uuid)')") is None:
            return ABSENT, "secrets are in tables of schema rag"
        secret_id = _value(database, "select vault.create_secret('rehearsal', 'rag.rehearsal')")
        readable = _value(database, "select rag.secret_in_vault(%s)", secret_id) == "rehearsal"
        users = (
            "select string_agg(rolname, ', ') from pg_roles "
            "where rolname in ('anon', 'authenticated', 'rag_worker')"
            " and has_schema_privilege(rolname, 'vault', 'usage')"
            " and has_table_privilege(rolname, 'vault.decrypted_secrets', 'select')"
        )
        readers = _value(database, users)
    if not readable:
        return FAILED, "the worker's function does not read a secret from Vault"
    return (FAILED, f"Vault is readable by {readers}") if readers else (OK, "a secret was stored and read")


def _realtime(project: Project) -> tuple[str, str]:
    """A message is sent in a transaction that is rolled back; the policies exist."""
    with _rolled_back(project.database) as database:
        if _value(database, "select to_regclass('realtime.messages')") is None:
            return ABSENT, "no messages are sent"
        policies = _value(
            database,
            "select count(*) from pg_policies where schemaname = 'realtime' and tablename = 'messages' "
            "and policyname like 'rag: %%'",
        )
        topic = f"rag:{uuid4()}"
        database.execute("select realtime.send('{}'::jsonb, 'job', %s, true)", [topic])
        messages = _value(database, "select count(*) from realtime.messages where topic = %s", topic)
    if policies != REALTIME_POLICIES or messages != 1:
        return FAILED, f"{policies} of {REALTIME_POLICIES} policies, {messages} of 1 message was stored"
    return OK, f"{policies} policies, a message was stored"


def _edge_function(project: Project) -> tuple[str, str]:
    """The functions refuse a request without a token in the same words through the edge function `rag`."""
    deployment = project.deployment
    with http_client(60) as client:
        direct = client.post(f"{deployment.url}/api/rag/answer", json={})
        address = f"{deployment.project_url}/functions/v1/rag/answer"
        response = client.post(address, json={}, headers={"apikey": deployment.anon_key})
    # Of Supabase's runtime. A deployment at another address than RAG_URL has a 404 of its own.
    if response.status_code == 404 and re.match(r'\{\s*"code":\s*"NOT_FOUND"', response.text):
        return ABSENT, "the edge function rag is not deployed"
    if (response.status_code, response.text) != (direct.status_code, direct.text):
        return FAILED, f"{response.status_code} instead of {direct.status_code}: {response.text[:200]}"
    return OK, "it forwards to the deployment"


def _pgtap(project: Project) -> tuple[str, str]:
    """supabase/tests by psql. Each file rolls its transaction back; the extension stays if it was there."""
    database = project.database
    is_missing = _value(database, "select to_regprocedure('extensions.plan(integer)')") is None
    if is_missing and not _value(database, "select true from pg_available_extensions where name = 'pgtap'"):
        return ABSENT, "the extension pgtap is not available"
    if is_missing:
        database.execute("create extension pgtap with schema extensions")
    try:
        reports = {file.name: psql(project.deployment.database_url, file) for file in PGTAP_FILES}
    finally:
        if is_missing:
            database.execute("drop extension pgtap")
    failures = [f"{name}: {line}" for name, report in reports.items() for line in tap_failures(report)]
    number = sum(map(assertions, reports.values()))
    return (FAILED, "; ".join(failures)[:500]) if failures else (OK, f"{number} assertions")


def tap_failures(report: str) -> list[str]:
    """The lines of a TAP report that fail, and one for results that the plan does not have."""
    lines = report.splitlines()
    plans = [int(line[3:]) for line in lines if re.fullmatch(r"1\.\.[0-9]+", line)]
    number = len([line for line in lines if re.match(r"(not )?ok [0-9]+", line)])
    mismatch = [] if plans == [number] else [f"{number} results, plans: {plans}"]
    return [line for line in lines if line.startswith(("not ok", "#"))] + mismatch


def assertions(report: str) -> int:
    """The number of assertions that passed."""
    return len(re.findall(r"^ok [0-9]+", report, re.MULTILINE))


def psql(database_url: str, file: Path) -> str:
    """The output of the statements of a file, without notices. Raises CommandError for the first error."""
    program = shutil.which("psql") or installation(18) / "bin" / "psql"
    options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]
    options += ["--set", "ON_ERROR_STOP=1", "--set", "VERBOSITY=terse"]
    # The list of processes shows arguments, so the password is a variable.
    parameters = psycopg.conninfo.conninfo_to_dict(database_url)
    password = parameters.pop("password", None)
    database = psycopg.conninfo.make_conninfo("", **parameters)
    process = subprocess.run(
        [program, *options, "--dbname", database, "--file", file],
        env=os.environ | ({"PGPASSWORD": str(password)} if password else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        raise CommandError(f"{file.name}: {reason_of(process.stderr)}")
    return process.stdout


def _calibration(project: Project) -> tuple[str, str]:
    """Whether confidence is fitted to the deployment's embedding model, alone or with a reranker."""
    calibrations = _value(
        project.database,
        "select string_agg(entry.key || coalesce(' (' || (entry.value ->> 'source') || ')', ''), ', ') "
        "from rag.settings, jsonb_each(calibrations) as entry "
        "where entry.key = embedding_model or starts_with(entry.key, embedding_model || ' + ')",
    )
    if calibrations is None:
        return ABSENT, "not in rag.settings: answers are medium at most, until the worker fits one"
    return OK, f"fitted to {calibrations}"


CHECKS: dict[str, Callable[[Project], tuple[str, str]]] = {
    "keys": _keys,
    "third-party issuers": _issuers,
    "Vault": _vault,
    "Realtime": _realtime,
    "edge function": _edge_function,
    "pgTAP": _pgtap,
    "calibration": _calibration,
}


def _token(deployment: Deployment) -> str:
    return deployment.signer.token(TOKEN_SECONDS, sub=str(uuid4()))


def _value(database: psycopg.Connection[Any], statement: str, *parameters: Any) -> Any:
    row = database.execute(statement.encode(), parameters or None).fetchone()
    return row[0] if row else None


@contextmanager
def _rolled_back(database: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    with database.transaction(force_rollback=True):
        yield database
