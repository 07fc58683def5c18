"""The pgTAP tests of supabase/tests, on Postgres 17 and on the requested version.

An adopter runs them by `supabase test db`, in a container; psql runs them here. pgTAP, which is SQL only, and
Postgres 17 are those of the npm package PGlite: one session, so this shows neither concurrency
nor PostgREST.
"""

import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from local import ROOT
from local.child_processes import free_port
from local.declared_schema import declared_schema
from local.npm_tools import npm_program
from local.stack import Stack
from local.tools.migrations import drop_database
from tests.databases import own_database
from verify.catalogue import catalogue_findings

FILES = sorted((ROOT / "supabase" / "tests").glob("*.sql"))
PGTAP = ROOT / "node_modules" / "@electric-sql" / "pglite" / "dist" / "pgtap.tar.gz"


@pytest.fixture(scope="module")
def postgres_17(stack: Stack) -> Iterator[str]:
    """The URL of a Postgres 17 with what hosted projects have, the schema and pgTAP."""
    port = free_port()
    url = f"postgresql://supabase_admin@127.0.0.1:{port}/postgres?sslmode=disable"
    command: list[str | Path] = [npm_program("node"), ROOT / "tests" / "pglite_server.mjs", str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stdout.readline() == "ready\n"
        psql(stack, url, ROOT / "local" / "bootstrap.sql")
        with psycopg.connect(url) as connection:
            connection.execute("create extension pgtap with schema extensions")
            connection.execute("set role postgres")
            connection.execute(declared_schema().encode())
            connection.execute("update rag.settings set functions_secret_hashes = array[repeat('0', 64)]")
            connection.execute("reset role")
        yield url


@pytest.fixture(scope="module")
def with_pgtap(stack: Stack) -> Iterator[str]:
    """The URL of a database of the stack's Postgres with pgTAP, for the role of a hosted project."""
    database = own_database(stack, "pgtap")
    with tarfile.open(PGTAP) as archive:
        (member,) = (member for member in archive if re.search(r"/pgtap--[0-9.]+\.sql$", member.name))
        file = archive.extractfile(member)
        assert file
        script = file.read()
    url = stack.database_url("supabase_admin", database)
    with psycopg.connect(url) as connection:
        connection.execute("set search_path = extensions")
        connection.execute(script)
    yield stack.database_url(database=database)
    drop_database(stack.postgres, database)


def psql(stack: Stack, url: str, script: Path) -> str:
    (program, *options, _), environment = stack.postgres.psql()
    command = [program, *options, "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]
    process = subprocess.run(
        [*command, "--file", script, url],
        env={**environment, "PGOPTIONS": "-c client_min_messages=warning"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def failures(output: str) -> list[str]:
    """The lines of a TAP report that fail, or that it lacks."""
    lines = output.splitlines()
    planned = [int(line[3:]) for line in lines if re.fullmatch(r"1\.\.[0-9]+", line)]
    results = [line for line in lines if re.match(r"(not )?ok [0-9]+", line)]
    assert planned == [len(results)], output
    return [line for line in lines if line.startswith(("not ok", "#"))]


def assertions(output: str) -> int:
    return len(re.findall(r"^ok [0-9]+", output, re.MULTILINE))


def test_postgres_17_has_the_catalogue_of_the_release(postgres_17: str):
    with psycopg.connect(postgres_17) as connection:
        assert connection.execute("show server_version_num").fetchone() == ("170005",)
        assert [str(finding) for finding in catalogue_findings(connection)] == [], "run: make generated"


@pytest.mark.parametrize("server", ["postgres_17", "with_pgtap"])
def test_the_pgtap_tests_pass(
    server: str, stack: Stack, request: pytest.FixtureRequest, subtests: pytest.Subtests
):
    url, passed = request.getfixturevalue(server), 0
    for file in FILES:
        with subtests.test(file=file.name):
            output = psql(stack, url, file)
            assert failures(output) == []
            passed += assertions(output)
    assert passed >= 150


def test_the_pgtap_tests_pass_with_an_issuer_in_the_settings(stack: Stack, with_pgtap: str):
    with psycopg.connect(with_pgtap) as connection:
        connection.execute("update rag.settings set issuer = 'https://ref.supabase.co/auth/v1'")
    try:
        assert [failures(psql(stack, with_pgtap, file)) for file in FILES] == [[] for _ in FILES]
    finally:
        with psycopg.connect(with_pgtap) as connection:
            connection.execute("update rag.settings set issuer = null")


def test_the_pgtap_tests_find_a_hole(stack: Stack, with_pgtap: str):
    """In a copy: the tables are found open by the tests of their privileges and of the two orgs."""
    with psycopg.connect(with_pgtap) as connection:
        connection.execute("alter table rag.documents no force row level security")
        connection.execute("create policy planted on rag.documents for select to authenticated using (true)")
    try:
        privileges, orgs = (psql(stack, with_pgtap, file) for file in FILES[:2])
    finally:
        with psycopg.connect(with_pgtap) as connection:
            connection.execute("drop policy planted on rag.documents")
            connection.execute("alter table rag.documents force row level security")
    assert any("row security of rag.documents" in line for line in failures(privileges))
    assert any("Bob sees the documents of his org" in line for line in failures(orgs))
