"""The pgTAP tests of supabase/tests, on Postgres 17 and on the requested version.

An adopter runs them by `supabase test db`, in a container; psql runs them here. pgTAP, which is SQL only, and
Postgres 17 are those of the npm package PGlite: one session, so this shows neither concurrency
nor PostgREST.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from local import ROOT
from local.child_processes import free_port
from local.declared_schema import declared_schema
from local.errors import CommandError
from local.npm_tools import npm_program
from local.stack import Stack
from local.tools.migrations import drop_database
from tests.databases import install_pgtap, own_database
from verify.catalogue import catalogue_findings
from verify.hosted_parts import PGTAP_FILES, assertions, psql, tap_failures


@pytest.fixture(scope="module")
def postgres_17() -> Iterator[str]:
    """The URL of a Postgres 17 with what hosted projects have, the schema and pgTAP."""
    port = free_port()
    url = f"postgresql://supabase_admin:password@127.0.0.1:{port}/postgres?sslmode=disable"
    command: list[str | Path] = [npm_program("node"), ROOT / "tests" / "pglite_server.mjs", str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stdout.readline() == "ready\n"
        psql(url, ROOT / "local" / "bootstrap.sql")
        with psycopg.connect(url) as connection:
            connection.execute("create extension pgtap with schema extensions")
            connection.execute("set role postgres")
            connection.execute(declared_schema().encode())
            connection.execute("update rag.settings set functions_secret_hashes = array[repeat('0', 64)]")
            connection.execute("reset role")
        yield url


@pytest.fixture(scope="module")
def with_pgtap(stack: Stack) -> Iterator[str]:
    """The URL of a database of the stack's Postgres with pgTAP and an issuer in the settings, for the role of
    a hosted project."""
    database = own_database(stack, "pgtap")
    install_pgtap(stack.database_url("supabase_admin", database))
    url = stack.database_url(database=database)
    with psycopg.connect(url) as connection:
        connection.execute("update rag.settings set issuer = 'https://ref.supabase.co/auth/v1'")
    yield url
    drop_database(stack.postgres, database)


def test_postgres_17_has_the_catalogue_of_the_release(postgres_17: str):
    with psycopg.connect(postgres_17) as connection:
        assert connection.execute("show server_version_num").fetchone() == ("170005",)
        assert [str(finding) for finding in catalogue_findings(connection)] == [], "run: make generated"


@pytest.mark.parametrize("server", ["postgres_17", "with_pgtap"])
def test_the_pgtap_tests_pass(server: str, request: pytest.FixtureRequest, subtests: pytest.Subtests):
    url, passed = request.getfixturevalue(server), 0
    for file in PGTAP_FILES:
        with subtests.test(file=file.name):
            output = psql(url, file)
            assert tap_failures(output) == []
            passed += assertions(output)
    assert passed >= 150


def test_the_pgtap_tests_find_a_hole(with_pgtap: str):
    """In a copy: the tables are found open by the tests of their privileges and of the two orgs."""
    with psycopg.connect(with_pgtap) as connection:
        connection.execute("alter table rag.documents no force row level security")
        connection.execute("create policy planted on rag.documents for select to authenticated using (true)")
    try:
        privileges, orgs = (psql(with_pgtap, file) for file in PGTAP_FILES[:2])
    finally:
        with psycopg.connect(with_pgtap) as connection:
            connection.execute("drop policy planted on rag.documents")
            connection.execute("alter table rag.documents force row level security")
    assert any("row security of rag.documents" in line for line in tap_failures(privileges))
    assert any("Bob sees the documents of his org" in line for line in tap_failures(orgs))


@pytest.mark.parametrize(
    ("plan", "statements", "expected"),
    [
        # A notice is no failure.
        (1, "do $$ begin raise notice 'planted'; end $$; select ok(true)", []),
        (3, "select ok(true)", ["1 results, plans: [3]"]),
    ],
)
def test_failures_of_a_report(
    with_pgtap: str, tmp_path: Path, plan: int, statements: str, expected: list[str]
):
    file = tmp_path / "test.sql"
    file.write_text(
        f"begin; set local search_path = public, extensions; select plan({plan}); "
        f"{statements}; select * from finish(); rollback;"
    )
    failures = tap_failures(psql(with_pgtap, file))
    assert [line for line in failures if not line.startswith("#")] == expected
    assert bool(failures) == bool(expected)


def test_an_error_is_no_report(with_pgtap: str, tmp_path: Path):
    file = tmp_path / "test.sql"
    file.write_text("select 1 / 0")
    with pytest.raises(CommandError, match=r"test.sql: .*division by zero"):
        psql(with_pgtap, file)


def test_psql_gets_all_parameters_of_the_url(with_pgtap: str, tmp_path: Path):
    file = tmp_path / "test.sql"
    file.write_text("select current_setting('work_mem')")
    assert psql(f"{with_pgtap}&options=-cwork_mem%3D5MB", file) == "5MB\n"
