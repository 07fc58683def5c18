"""Command `verify`: the deployment of the environment, and the files of the report."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from urllib.parse import quote

import httpx
import psycopg

from local import ROOT
from local.child_processes import free_port, is_responding, start, wait_until_ready
from local.errors import CommandError
from shared.access.jwt_verifier import AUDIENCE
from shared.config import OTHER_NAMES, Settings, read_settings
from shared.errors import ConfigurationError, RagError
from verify.actors import RAG_MEMBERS
from verify.options import add_arguments
from verify.report import Report, private_members, without_secrets
from verify.run import PartFailed, clean, preview, verify, verify_catalogue
from verify.target_deployment import Deployment, SetupFailed
from verify.temporary_rows import Memberships, TemporaryRows

DATABASE_URL = "RAG_DATABASE_URL"
# Exit statuses.
SAME, DIFFERS, FAILED = 0, 1, 2
MAX_FINDINGS_PRINTED = 20

# The deployment; with True, its functions are served too.
Target = Callable[[bool], AbstractContextManager[Deployment]]


def run(options: argparse.Namespace, database_url: str, target: Target, secrets: Iterable[str]) -> int:
    """Run the chosen part. Returns the exit status."""
    secrets = [*secrets, database_url, *passwords(database_url)]
    secrets += [member for secret in secrets for member in private_members(secret)]
    try:
        try:
            return _run(options, database_url, target, secrets)
        except PartFailed as error:
            return _end(options, error.report, secrets)
    except (SetupFailed, ConfigurationError, CommandError, RagError) as error:
        message = str(error)
    except (psycopg.Error, httpx.HTTPError, OSError) as error:
        message = f"The run failed: {type(error).__name__}: {' '.join(str(error).split())}"
    print(without_secrets(f"error: {message}", secrets), file=sys.stderr)
    return FAILED


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m verify",
        description="Proves on a deployment's own database that its orgs are kept apart. Settings and "
        f"secrets are those of the functions, from the environment, and {DATABASE_URL}.",
    )
    add_arguments(parser)
    parser.add_argument(
        "--url", help="deployed functions; without it, those of this checkout run for the time"
    )
    parser.add_argument(
        "--stdin", action="store_true", help="also read settings from standard input, as lines NAME=value"
    )
    options = parser.parse_args(arguments)
    if options.stdin:
        lines = (line.strip().partition("=") for line in sys.stdin)
        os.environ.update({name: value for name, _, value in lines if name and not name.startswith("#")})
    database_url = os.environ.get(DATABASE_URL, "")
    if not database_url:
        print(f"error: Set {DATABASE_URL} to the URL of the database, of the role postgres.", file=sys.stderr)
        return FAILED
    return run(
        options,
        database_url,
        partial(deployment_of_environment, options.url, database_url),
        secrets_of_environment(),
    )


def passwords(database_url: str) -> list[str]:
    """The password of the URL, also in the form of a URL."""
    try:
        password = psycopg.conninfo.conninfo_to_dict(database_url).get("password")
    except psycopg.ProgrammingError:
        return []
    return [str(password), quote(str(password), safe="")] if password else []


def secrets_of_environment() -> list[str]:
    """The values of all secret settings that the environment has."""
    fields = Settings.model_fields.items()
    names = [name.upper() for name, field in fields if "SecretStr" in str(field.annotation)]
    names += [OTHER_NAMES[name] for name in names if name in OTHER_NAMES]
    return [os.environ[name] for name in names if os.environ.get(name)]


def _run(options: argparse.Namespace, database_url: str, target: Target, secrets: Sequence[str]) -> int:
    folder = options.report.parent
    if not (options.dry_run or options.clean or (folder.is_dir() and os.access(folder, os.W_OK))):
        raise SetupFailed(f"The report cannot be written to the directory {folder}. Set --report.")
    memberships = Memberships.from_text(_read(options.members)) if options.members else RAG_MEMBERS
    if options.catalogue:
        return _end(options, verify_catalogue(database_url, own_memberships=bool(options.members)), secrets)
    with target(not options.clean) as deployment:
        if options.dry_run:
            print("\n".join(preview(deployment, memberships)))
            return SAME
        if options.clean:
            print(_removed(clean(database_url, memberships=memberships, deployment=deployment)))
            return SAME
        report = verify(
            deployment, memberships=memberships, in_use=options.in_use,
            progress=lambda part: print(f"{part} ...", flush=True),
        )  # fmt: skip
    return _end(options, report, secrets)


def _end(options: argparse.Namespace, report: Report, secrets: Sequence[str]) -> int:
    """Write the files and print the summary."""
    files = {".json": report.to_json(secrets), ".html": report.to_html(secrets)}
    for suffix, text in files.items():
        options.report.with_name(options.report.name + suffix).write_text(text)
    findings = report.findings
    lines = [*report.summary(), *map(str, findings[:MAX_FINDINGS_PRINTED])]
    lines += [f"to read: {finding}" for finding in report.to_read[:MAX_FINDINGS_PRINTED]]
    if report.in_use:
        lines += [f"changed during the run: {text}" for text in report.changed_tables]
    if report.removed:
        lines.insert(0, _removed(report.removed))
    if len(findings) > MAX_FINDINGS_PRINTED:
        lines.append(f"and {len(findings) - MAX_FINDINGS_PRINTED} more")
    incomplete = "incomplete, " if report.failure else ""
    lines.append(f"{incomplete}{len(findings) or 'no'} differences; report: {options.report}.html and .json")
    print(without_secrets("\n".join(lines), secrets))
    if report.failure:
        return FAILED
    return DIFFERS if findings else SAME


def _removed(rows: TemporaryRows) -> str:
    return f"removed of killed runs: {len(rows.org_ids)} orgs, {len(rows.user_ids)} users"


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise SetupFailed(f"{path} cannot be read: {error.strerror}.") from None


@contextmanager
def deployment_of_environment(
    url: str | None, database_url: str, with_functions: bool
) -> Iterator[Deployment]:
    """The deployment of the environment's settings. Raises ConfigurationError and SetupFailed."""
    settings = read_settings()
    key = settings.rag_signing_key or settings.supabase_jwt_secret
    if key is None or settings.rag_functions_secret is None:
        name = "RAG_FUNCTIONS_SECRET" if key else "RAG_SIGNING_KEY (or SUPABASE_JWT_SECRET)"
        raise SetupFailed(
            f"Set {name}: the attacks need it. The part --catalogue needs {DATABASE_URL} alone."
        )
    with _functions(url) if with_functions else nullcontext("") as address:
        yield Deployment(
            url=address,
            project_url=settings.supabase_url,
            anon_key=settings.supabase_anon_key.get_secret_value(),
            database_url=database_url,
            signing_key=json.loads(key.get_secret_value())
            if settings.rag_signing_key
            else key.get_secret_value(),
            functions_secret=settings.rag_functions_secret.get_secret_value(),
            audience=AUDIENCE,
            issuer=settings.issuer,
            third_party_issuers={each.issuer: each.audience for each in settings.rag_third_party_issuers},
        )


@contextmanager
def _functions(url: str | None) -> Iterator[str]:
    """The address of the functions: `url`, or that of a process that serves them until the end. Snapshots
    that attacks store go to a temporary folder."""
    if url:
        yield url.rstrip("/")
        return
    names = [name.upper() for name in Settings.model_fields if name.upper() in os.environ]
    with tempfile.TemporaryDirectory(prefix="verify-") as folder:
        environment = {
            **{name: os.environ[name] for name in names},
            "RAG_SNAPSHOT_URL": f"file://{folder}/snapshots",
            "PYTHONPATH": str(ROOT),
        }
        port, log = free_port(), Path(folder) / "functions.log"
        command = [sys.executable, "-m", "uvicorn", "functions.server:create", "--factory"]
        command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
        command += ["--http", "shared.api.request_head_limit:HttpProtocol", "--timeout-keep-alive", "75"]
        server = start(command, environment, log)
        try:
            wait_until_ready(
                partial(is_responding, f"http://127.0.0.1:{port}/health"), server, log, seconds=120
            )
            yield f"http://127.0.0.1:{port}"
        finally:
            server.stop()
