"""Rehearsal of a hosted project: `verify.hosted_project` on a stand-in, for docs/hosted-rehearsal.md.

`python -m tests.hosted_rehearsal` needs pgbouncer; `--installation` and `--postgrest` add further versions of
Postgres and PostgREST. The stand-in has the roles and owners of a hosted project
(tests/hosted_project.sql), PostgREST behind a pooler in transaction mode, Vault, Realtime, a third-party
issuer, the gateway's rules for keys, and the edge function.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from local import ROOT, access_tokens
from local.child_processes import free_port, start
from local.npm_tools import postgrest_binary, version_of
from local.operations import calibrate_command
from local.postgres import VERSIONS
from local.seed_demo import settings_of
from local.stack import Stack
from shared.generation.calibration_fit import BUDGET
from tests.clients.test_edge_function import edge_function
from tests.databases import add_installation, install_pgtap
from tests.key_pairs import public, rs256
from tests.project_server import Answer, ProjectServer
from tests.stand_in_server import Reply, StandIn
from verify import command, hosted_project

PAGE = ROOT / "docs" / "hosted-rehearsal.md"
HEADING = "## Results\n"
ISSUER = "https://app.clerk.example"
# Of each kind of attack a few; the test suite has all.
TARGETS = {
    "GET /v1/collections", "GET /v1/documents/{document_id}", "POST /api/rag/search", "rag_list_collections",
    "rag_match", "rag_search", "documents", "memberships",
}  # fmt: skip
POOLER = """
[databases]
postgres = host=127.0.0.1 port={postgres} user=authenticator password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
ignore_startup_parameters = extra_float_digits
"""


class HostedProject(Stack):
    """A stack with the roles, owners and schemas of a hosted project, and a pooler before its PostgREST."""

    @staticmethod
    def pooler() -> str | None:
        return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")

    def _start_postgres(self, *, durable: bool) -> None:
        super()._start_postgres(durable=durable)
        for name in ("vault.sql", "realtime.sql", "hosted_project.sql"):
            self.postgres.script(ROOT / "tests" / name)
        install_pgtap(self.postgres.url())

    def _postgrest_environment(self) -> dict[str, str]:
        port, log = free_port(), self.folder / "logs" / "pooler.log"
        file = self.folder / "pooler.ini"
        values = {"postgres": self.state.postgres_port, "password": self.state.password, "port": port}
        file.write_text(POOLER.format(**values))
        program = self.pooler()
        assert program, "apt-get install pgbouncer"
        command = [*self.postgres.prefix, program, str(file)]
        self._record_child("pooler", start(command, {"PATH": os.defpath}, log))
        return {
            **super()._postgrest_environment(),
            "PGRST_DB_URI": f"postgresql://authenticator@127.0.0.1:{port}/postgres?sslmode=disable",
            # As PostgREST's documentation asks for, behind such a pooler.
            "PGRST_DB_PREPARED_STATEMENTS": "false",
            "PGRST_DB_CHANNEL_ENABLED": "false",
        }

    def _stop_database(self) -> None:
        if pooler := self.state.children.pop("pooler", None):
            pooler.stop()
        super()._stop_database()


class EdgeRuntime(ProjectServer):
    """The project's address: the edge function `rag`, and the stack's gateway for all else."""

    prefix = "/functions/v1/rag/"
    function = ""

    def answered(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        headers = {name: value for name, value in handler.headers.items() if name.lower() != "host"}
        answer = httpx.request(handler.command, self.function + handler.path, content=body, headers=headers)
        return answer.status_code, answer.content, {"Content-Type": answer.headers.get("Content-Type", "")}


@contextmanager
def environment_of(stack: Stack) -> Iterator[None]:
    """The stack runs with an issuer and an edge function; this process's environment has its settings."""
    with StandIn() as issuer, tempfile.TemporaryDirectory() as folder:
        issuer.replies(Reply(json={"keys": [public(rs256("clerk"))]}))
        issuers = [{"issuer": ISSUER, "jwks_url": issuer.url}]
        with pytest.MonkeyPatch.context() as shell:
            shell.setenv("RAG_THIRD_PARTY_ISSUERS", json.dumps(issuers))
            stack.up(0, durable=False)
            with EdgeRuntime(stack) as project, edge_function(stack.url, Path(folder)) as function:
                project.function = function
                environment = {
                    **stack.function_environment(),
                    "SUPABASE_URL": project.url,
                    "SUPABASE_JWT_ISSUER": access_tokens.issuer(stack.url),
                    "RAG_DATABASE_URL": stack.database_url(),
                    "RAG_SIGNING_KEY": json.dumps(stack.state.private_key),
                }
                for name, value in environment.items():
                    shell.setenv(name, value)
                yield


def rehearse(
    record: Path, version: int = 18, only: Callable[[str], bool] = TARGETS.__contains__
) -> tuple[int, dict[str, Any]]:
    """The exit status of `verify.hosted_project`, and its record."""
    with tempfile.TemporaryDirectory(prefix="rag-hosted-") as folder:
        stack = HostedProject(Path(folder), postgres_version=version)
        try:
            with environment_of(stack):
                options = Namespace(folder=None, user=None, budget=BUDGET)
                calibrate_command.run(stack.database_url(), settings_of(stack), options)
                arguments = ["--push", "--url", stack.url, "--record", str(record)]
                status = hosted_project.main(arguments, only)
        finally:
            stack.remove()
    return status, json.loads(record.read_text()) if record.exists() else {}


def results(records: Sequence[dict[str, Any]]) -> str:
    """The section of the page, with a column for each record."""
    columns = [
        [
            # Debian's has the package after the version.
            f"Postgres {record['limits']['server_version'].split()[0]}, "
            f"pgvector {record['limits']['extension vector']}, PostgREST {record['postgrest']}",
            *(f"{part['state']}: {part['detail']}" for part in record["parts"].values()),
            f"{len(record['advisors'])} findings",
            *(line.split(": ", 1)[1] for line in record["verify"]["summary"][:3]),
        ]
        for record in records
    ]
    names = ["Part", *records[0]["parts"], "advisors", "catalogue", "attacks", "rows"]
    rows = [f"| {' | '.join(row)} |" for row in zip(names, *columns, strict=True)]
    rows.insert(1, "|---" * (1 + len(columns)) + "|")
    origin = f"Written by `python -m tests.hosted_rehearsal` on {records[-1]['measured_at'][:10]}."
    return "\n".join([origin, "", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hosted_rehearsal", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all attacks, which takes minutes")
    parser.add_argument(
        "--installation", type=Path, action="append", default=[], help="the folder of another Postgres"
    )
    parser.add_argument(
        "--postgrest",
        type=Path,
        action="append",
        default=[],
        help="another PostgREST, on the oldest Postgres",
    )
    options = parser.parse_args()
    only = (lambda _: True) if options.all else TARGETS.__contains__
    if HostedProject.pooler() is None:
        sys.exit("pgbouncer is not installed: apt-get install pgbouncer")
    for folder in options.installation:
        add_installation(folder)
    versions, default = sorted(VERSIONS), postgrest_binary()
    records = []
    for version, program in [
        *((versions[0], program) for program in options.postgrest),
        *((version, default) for version in versions),
    ]:
        os.environ["RAG_LOCAL_POSTGREST"] = str(program)
        with tempfile.TemporaryDirectory() as folder:
            status, record = rehearse(Path(folder) / "record.json", version, only)
        if status != command.SAME:
            sys.exit(f"Postgres {version} with {program} differs; the page is not written")
        records.append(record | {"postgrest": version_of(program, "--version")})
    before, _, rest = PAGE.read_text().partition(HEADING)
    _, _, after = rest.partition("\n## ")
    PAGE.write_text(f"{before}{HEADING}\n{results(records)}\n\n## {after}")


if __name__ == "__main__":
    main()
