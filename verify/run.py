"""Run of all parts: catalogue, recall, attacks, and removal of the temporary rows."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from jose.exceptions import JOSEError

from local.errors import CommandError
from local.operations.org_data.database import require_session
from shared.clients.http_client import http_client
from verify import recall, temporary_rows
from verify.actors import RAG_MEMBERS, TOKEN_SECONDS
from verify.catalogue import catalogue_findings, functions_to_read, require_release
from verify.membership_attacks import attack_memberships
from verify.report import Report
from verify.route_sweep import open_route_sweep, sweep_routes
from verify.row_states import changed_tables, row_states
from verify.sql_sweep import open_sql_sweep, sweep_functions, sweep_tables
from verify.target_deployment import Deployment, Finding, SetupFailed
from verify.target_sweep import Sweep
from verify.temporary_rows import Memberships, TemporaryRows

Connection = psycopg.Connection[Any]


class PartFailed(SetupFailed):
    """A part of a run failed. `report` has the findings of the parts before it, and names the part."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.failure)
        self.report = report


def verify_catalogue(database_url: str, *, own_memberships: bool = False) -> Report:
    """The read-only part: the catalogue and the recall. Raises SetupFailed and PartFailed."""
    with _connect(database_url, read_only=True) as database:
        report = _begin(database)
        with _part(report, "catalogue"):
            report.catalogue = catalogue_findings(database, own_memberships=own_memberships)
            report.to_read = functions_to_read(database)
        with _part(report, "recall"):
            report.recall = recall.measure(database)
    report.end()
    return report


def verify(
    deployment: Deployment,
    *,
    memberships: Memberships = RAG_MEMBERS,
    in_use: bool = False,
    only: Callable[[str], bool] = lambda _: True,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """All parts. Attacks are limited to the routes, functions and tables whose name `only` accepts.
    `in_use`: rows that others change meanwhile are no difference.

    Raises SetupFailed if the run cannot begin, and PartFailed with the report so far if a part fails. All
    rows that the run created are removed."""
    with _connect(deployment.database_url) as database, _only_run(database):
        report = _begin(database)
        _require_access(database, deployment)
        report.removed = _remove_all(database, memberships, deployment)
        before = row_states(database)
        with _part(report, "catalogue", progress):
            report.catalogue = catalogue_findings(database, own_memberships=memberships != RAG_MEMBERS)
            report.catalogue += _issuer_findings(database, deployment)
            report.to_read = functions_to_read(database)
        with _part(report, "recall", progress):
            report.recall = recall.measure(database)
        with (
            _part(report, "attacks on routes", progress),
            open_route_sweep(deployment, memberships) as sweep,
            _attempts(report, sweep),
        ):
            report.attacks.extend(sweep_routes(sweep, only=only))
        with (
            _part(report, "attacks on SQL functions and tables", progress),
            open_sql_sweep(deployment, memberships) as sweep,
            _attempts(report, sweep),
        ):
            report.attacks.extend(sweep_functions(sweep, only))
            report.attacks.extend(sweep_tables(sweep, only))
            if only("memberships"):
                report.attacks.extend(attack_memberships(sweep, memberships))
        with _part(report, "rows"):
            report.changed_tables, report.in_use = changed_tables(before, row_states(database)), in_use
    report.end()
    return report


def clean(
    database_url: str, *, memberships: Memberships = RAG_MEMBERS, deployment: Deployment | None = None
) -> TemporaryRows:
    """Remove the rows of killed runs, and return their ids. Raises SetupFailed."""
    with _connect(database_url) as database, _only_run(database):
        require_release(database)
        return _remove_all(database, memberships, deployment)


def preview(deployment: Deployment, memberships: Memberships = RAG_MEMBERS) -> list[str]:
    """What a run would create and remove, after a check of the settings. Nothing is written. Raises
    SetupFailed."""
    with _connect(deployment.database_url, read_only=True) as database:
        _begin(database)
        _require_access(database, deployment)
        remaining = temporary_rows.find(database)
        triggers = [name for name, _ in temporary_rows.triggers_of_users(database)]
    lines = [
        "A run creates twice, for the routes and for the SQL functions, and removes at its end:",
        f"  rag.tiers: 1 row, {temporary_rows.TIER_PREFIX}…",
        "  rag.orgs: 2 rows with that tier",
        f"  auth.users: 8 rows, …@{temporary_rows.DOMAIN}, without identities or passwords",
        f"  6 memberships, by: {' '.join(memberships.add.split())}",
        "  in these orgs, as their users: documents, chunks, sessions, API keys, paused webhooks",
        "  in Storage, if RAG_STORAGE_BUCKET is set: files below the ids of these orgs",
        f"Rows of killed runs, removed first: {len(remaining.org_ids)} orgs, {len(remaining.user_ids)} users",
    ]
    if triggers:
        lines.append(f"Triggers of auth.users that will not run for these users: {', '.join(triggers)}")
    return lines


@contextmanager
def _part(report: Report, name: str, progress: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Raises PartFailed, with the report so far, for any error of the part."""
    progress(name)
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())
        if not isinstance(error, SetupFailed):
            text = f"{type(error).__name__}: {text}"
        report.failure = f'The part "{name}" failed: {text}'
        report.end()
        raise PartFailed(report) from error


def _remove_all(
    database: Connection, memberships: Memberships, deployment: Deployment | None
) -> TemporaryRows:
    rows = temporary_rows.find(database)
    if rows:
        temporary_rows.remove(database, rows, memberships, deployment)
    return rows


def _begin(database: Connection) -> Report:
    row = database.execute(
        "select rolname, rolsuper or rolbypassrls from pg_roles where rolname = current_user"
    ).fetchone()
    if row is None or not row[1]:
        raise SetupFailed(
            f"Row security binds the role {row[0] if row else ''}: use the role postgres, or another one "
            "that it does not bind."
        )
    release = require_release(database)
    (version,) = database.execute("select current_setting('server_version')").fetchone() or ("",)
    return Report(datetime.now(UTC), release, str(version))


@contextmanager
def _attempts(report: Report, sweep: Sweep) -> Iterator[None]:
    """Adds the attacks of the sweep to the report, also of one that fails."""
    try:
        yield
    finally:
        report.attempts += sweep.attempts


@contextmanager
def _connect(database_url: str, *, read_only: bool = False) -> Iterator[Connection]:
    """Raises SetupFailed without the password, which the error of psycopg might have in its text."""
    try:
        require_session(database_url, "RAG_DATABASE_URL")
    except CommandError as error:
        raise SetupFailed(str(error)) from None
    try:
        connection = psycopg.connect(database_url, autocommit=True, connect_timeout=15)
    except psycopg.OperationalError as error:
        reason = "it refused the password" if "password" in str(error) else "there is no connection"
        raise SetupFailed(
            f"The database of RAG_DATABASE_URL cannot be used: {reason}. Check the URL."
        ) from None
    with connection:
        connection.read_only = read_only
        connection.execute("set statement_timeout = 0")
        yield connection


@contextmanager
def _only_run(database: Connection) -> Iterator[None]:
    """Hold the lock of the runs on this database, which ends with the connection."""
    statement = "select pg_try_advisory_lock(hashtextextended('rag.verify', 0))"
    (is_held,) = database.execute(statement).fetchone() or (False,)
    if not is_held:
        raise SetupFailed("Another run of verify is active on this database. Wait until it ends.")
    yield


def _issuer_findings(database: Connection, deployment: Deployment) -> list[Finding]:
    """Third-party issuers that the functions and rag.settings do not both trust, for the same audience."""
    trusted = deployment.third_party_issuers
    row = database.execute("select third_party_issuers from rag.settings").fetchone()
    if row is None or trusted is None:
        return []
    (stored,) = row
    findings = []
    for name in sorted({name for name, _ in trusted.items() ^ stored.items()}):
        if name not in stored:
            detail = f"{name} is in RAG_THIRD_PARTY_ISSUERS alone: add it to rag.settings"
        elif name not in trusted:
            detail = f"{name} is in rag.settings alone: add it to RAG_THIRD_PARTY_ISSUERS, or remove it"
        else:
            detail = (
                f"the audience of {name} is {trusted[name]} in RAG_THIRD_PARTY_ISSUERS and {stored[name]} in "
                "rag.settings: make them equal"
            )
        findings.append(Finding("rag.settings", "third_party_issuers", detail))
    return findings


def _require_access(database: Connection, deployment: Deployment) -> None:
    """Raises SetupFailed if an address, the key or the secret is wrong: each attack would be refused for
    that reason."""
    (hashes,) = database.execute("select functions_secret_hashes from rag.settings").fetchone() or ([],)
    if not hashes:
        raise SetupFailed(
            "The functions secret is not set in rag.settings, so that no function can be attacked "
            "(docs/install.md, Functions secret)."
        )
    if hashlib.sha256(deployment.functions_secret.encode()).hexdigest() not in hashes:
        raise SetupFailed("RAG_FUNCTIONS_SECRET is not the secret whose hash is in rag.settings.")
    try:
        token = deployment.signer.token(TOKEN_SECONDS, sub=str(uuid4()))
    except (JOSEError, KeyError, TypeError, ValueError):
        raise SetupFailed(
            "The signing key cannot sign. Set RAG_SIGNING_KEY to a private JWK with alg and kid, or "
            "SUPABASE_JWT_SECRET."
        ) from None
    address = f"{deployment.project_url}/rest/v1/rpc/is_org_member"
    headers = {**deployment.project_headers, "Authorization": f"Bearer {token}"}
    response = _request("SUPABASE_URL", "POST", address, json={"org_id": str(uuid4())}, headers=headers)
    if response.status_code == 401 and "PGRST" in response.text:
        raise SetupFailed(
            "The project does not accept tokens that this signing key signs: use a key of the project."
        )
    if response.status_code == 401 and "untrusted_issuer" in response.text:
        raise SetupFailed(
            f"The functions expect tokens of {deployment.token_issuer}, and rag.settings names another "
            "issuer: make SUPABASE_JWT_ISSUER and the column issuer equal."
        )
    if response.status_code == 401:
        raise SetupFailed(
            "The project refuses SUPABASE_PUBLISHABLE_KEY, or without it SUPABASE_ANON_KEY: use the "
            "project's own."
        )
    if response.is_error or response.text != "false":
        raise SetupFailed(
            f"The call of is_org_member at {deployment.project_url} failed ({response.status_code}). "
            "Check SUPABASE_URL."
        )
    if _request("the functions' URL", "GET", f"{deployment.url}/health").is_error:
        raise SetupFailed(f"{deployment.url}/health returned an error. Check --url.")


def _request(name: str, method: str, address: str, **options: Any) -> httpx.Response:
    try:
        with http_client(30) as client:
            return client.request(method, address, **options)
    except (httpx.TransportError, httpx.InvalidURL):
        raise SetupFailed(f"There is no answer from {httpx.URL(address).host}: check {name}.") from None
