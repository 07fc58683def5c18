"""supabase/migrations makes what sql/ declares: by the CLI's own diff, and by a catalogue that sees what
the diff does not. And the CLI does with both what an adopter will do with them.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from local import ROOT, declared_schema
from local.errors import CommandError
from local.npm_tools import supabase
from local.stack import Stack
from local.tools import migrations
from tests.databases import clone, own_database

CATALOGUE = Path(__file__).with_name("catalogue.sql").read_text()
# Schemas with grants, relations, functions and policies, without those of pgvector and the CLI.
OBJECTS = """
  with others as (
    select oid, nspname, nspacl from pg_namespace
    where nspname !~ '^pg_' and nspname not in ('information_schema', 'extensions', 'supabase_migrations')
  )
  select nspname || coalesce(nspacl::text, '') from others
  union all select oid::regclass::text from pg_class where relnamespace in (select oid from others)
  union all select oid::regprocedure::text from pg_proc where pronamespace in (select oid from others)
  union all select polname from pg_policy
  order by 1
"""
MIGRATIONS = sorted(path.name for path in declared_schema.MIGRATIONS.glob("*.sql"))


def catalogue(connection: psycopg.Connection[Any]) -> set[str]:
    """One line for everything in the database that is ours."""
    # The names of types and functions print with their schema when no schema is searched.
    connection.execute("set local search_path = ''")
    return {line for (line,) in connection.execute(CATALOGUE.encode())}


def catalogue_of(stack: Stack, database: str) -> set[str]:
    with psycopg.connect(stack.database_url(database=database)) as connection:
        return catalogue(connection)


def cli(stack: Stack, *arguments: str, database: str) -> dict[str, Any]:
    """What the CLI reports of a command on that database, as JSON; text for people follows it."""
    remote = f"--remote={stack.database_url(database=database)}"
    output = supabase(stack.folder, *arguments, "--yes", "--output-format", "json", remote)
    report, _ = json.JSONDecoder().raw_decode(output)
    assert isinstance(report, dict)
    return report


@pytest.fixture
def new_database(stack: Stack) -> Iterator[Callable[[str], str]]:
    """Makes databases that have what a hosted project has, and nothing of ours."""
    yield from _databases(stack, lambda name: migrations.make_database(stack.postgres, name))


@pytest.fixture
def cloned(stack: Stack) -> Iterator[Callable[[str], str]]:
    """Makes databases by the migrations, as the test run's template was made."""
    yield from _databases(stack, lambda name: clone(stack, name))


def _databases(stack: Stack, make_database: Callable[[str], None]) -> Iterator[Callable[[str], str]]:
    made = []

    def make(name: str) -> str:
        database = f"{name}_{stack.state.database}"
        make_database(database)
        made.append(database)
        return database

    yield make
    for database in made:
        migrations.drop_database(stack.postgres, database)


@pytest.fixture(scope="module")
def declared(stack: Stack) -> Iterator[str]:
    """A database made by sql/."""
    database = f"declared_{stack.state.database}"
    migrations.make_database(stack.postgres, database)
    migrations.apply_declared(stack.postgres, database)
    yield database
    migrations.drop_database(stack.postgres, database)


@pytest.fixture(scope="module")
def migrated(stack: Stack) -> Iterator[str]:
    """A database made by supabase/migrations."""
    # The template is made by the same command.
    database = own_database(stack, "migrated")
    with psycopg.connect(stack.database_url(database=database)) as connection:
        # The template has settings of the tests.
        connection.execute(
            "update rag.settings set other_embedding_models = default, graph_milliseconds = default"
        )
    yield database
    migrations.drop_database(stack.postgres, database)


def test_the_cli_finds_no_difference_between_sql_and_the_migrations(
    stack: Stack, declared: str, migrated: str
):
    assert migrations.difference(stack, migrated, declared) == ""
    assert migrations.difference(stack, declared, migrated) == ""


def test_the_cli_would_find_a_difference(stack: Stack, declared: str, cloned: Callable[[str], str]):
    """An empty diff means something only while a diff can be full."""
    other = cloned("differing")
    with psycopg.connect(stack.database_url(database=other)) as connection:
        connection.execute("alter table rag.chunks drop constraint chunks_check")
    assert "chunks_check" in migrations.difference(stack, other, declared)


def test_sql_and_the_migrations_make_equal_catalogues(stack: Stack, declared: str, migrated: str):
    by_sql, by_migrations = catalogue_of(stack, declared), catalogue_of(stack, migrated)
    assert sorted(by_sql - by_migrations) == []
    assert sorted(by_migrations - by_sql) == []


def test_the_running_stack_is_what_sql_declares(stack: Stack, declared: str):
    """The stack may differ in its settings alone: `up` writes down which model it embeds with."""
    with psycopg.connect(stack.database_url()) as connection:
        differing = catalogue_of(stack, declared) ^ catalogue(connection)
    assert [line for line in sorted(differing) if not line.startswith("row of rag.settings")] == []


def test_the_catalogue_covers_every_kind_of_object(stack: Stack, declared: str):
    lines = catalogue_of(stack, declared)
    for beginning in (
        "schema rag",
        "relation rag.chunks",
        "column rag.chunks.embedding",
        "column rag.filters.model",
        "constraint chunks_pkey",
        "index rag.chunks_by_embedding_1536",
        'policy "members use their org\'s chunks"',
        "function rag.memberships()",
        "function public.rag_match(",
        "type rag.filters",
        "row of rag.settings",
    ):
        assert any(line.startswith(beginning) for line in lines), beginning


CHANGES = [
    ("alter table rag.chunks alter column embedding set storage external", "column rag.chunks.embedding"),
    ("alter table rag.chunks alter column content set compression pglz", "column rag.chunks.content"),
    ("alter table rag.chunks alter column lang set statistics 500", "column rag.chunks.lang"),
    (
        "alter table rag.documents alter column source_type set default 'web'",
        "column rag.documents.source_type",
    ),
    ("alter table rag.documents alter column uri set not null", "column rag.documents.uri"),
    ("alter table rag.documents add column extra text", "column rag.documents.extra"),
    ("grant select (title) on rag.documents to anon", "column rag.documents.title"),
    ("alter table rag.chunks drop constraint chunks_check", "constraint chunks_check"),
    ("drop index rag.chunks_by_scope", "index rag.chunks_by_scope"),
    ("create statistics rag.extra on org_id, lang from rag.chunks", "statistics rag.extra"),
    (
        'drop policy "members use their org\'s chunks" on rag.chunks',
        'policy "members use their org\'s chunks"',
    ),
    (
        'alter policy "members use their org\'s chunks" on rag.chunks using (true)',
        'policy "members use their org\'s chunks"',
    ),
    (
        'alter policy "members read their orgs" on rag.orgs to public',
        'policy "members read their orgs"',
    ),
    ("alter table rag.chunks no force row level security", "relation rag.chunks"),
    ("alter table rag.chunks disable row level security", "relation rag.chunks"),
    ("grant select on rag.documents to anon", "relation rag.documents"),
    ("alter table rag.settings owner to service_role", "relation rag.settings"),
    ("grant usage on schema rag to anon", "schema rag"),
    (
        "grant execute on function public.rag_delete_document(uuid) to anon",
        "function public.rag_delete_document",
    ),
    (
        "alter function public.rag_delete_document(uuid) security definer",
        "function public.rag_delete_document",
    ),
    (
        "alter function public.rag_delete_document(uuid) reset search_path",
        "function public.rag_delete_document",
    ),
    ("alter function rag.current_org_ids() volatile", "function rag.current_org_ids()"),
    (
        "create or replace function public.is_org_member(org_id uuid) returns boolean "
        "language sql stable security invoker set search_path = '' as 'select true'",
        "function public.is_org_member",
    ),
    (
        "create or replace function rag.memberships() returns table (org_id uuid, role text) "
        "language sql stable security invoker set search_path = '' "
        "begin atomic select members.org_id, members.role from rag.members; end",
        "function rag.memberships()",
    ),
    (
        "create function rag.touch() returns trigger language plpgsql as 'begin return new; end'; "
        "create trigger touched before update on rag.documents for each row execute function rag.touch()",
        "trigger on rag.documents",
    ),
    ("alter type rag.filters add attribute author text", "column rag.filters.author"),
    ("create text search configuration rag.plain (copy = simple)", "text search configuration rag.plain"),
    ("update rag.settings set exact_rows = 1", "row of rag.settings"),
]


def test_the_catalogue_detects_a_change(stack: Stack, declared: str, subtests: pytest.Subtests):
    before = catalogue_of(stack, declared)
    with psycopg.connect(stack.database_url("supabase_admin", declared)) as connection:
        for change, noticed in CHANGES:
            with subtests.test(change=change):
                try:
                    connection.execute(change.encode())
                    after = catalogue(connection)
                finally:
                    connection.rollback()
                assert any(line.startswith(noticed) for line in before ^ after), before ^ after
    assert catalogue_of(stack, declared) == before


def test_db_push_applies_once_on_an_empty_database(stack: Stack, new_database: Callable[[str], str]):
    database = new_database("pushed")
    first = cli(stack, "db", "push", database=database)
    assert (first["migrations"], first["seeds"]) == (MIGRATIONS, [])
    second = cli(stack, "db", "push", database=database)
    assert (second["upToDate"], second["migrations"]) == (True, [])


def test_migration_up_applies_once_on_an_empty_database(stack: Stack, new_database: Callable[[str], str]):
    database = new_database("raised")
    first = cli(stack, "migration", "up", database=database)
    assert [Path(path).name for path in first["applied"]] == MIGRATIONS
    assert cli(stack, "migration", "up", database=database)["applied"] == []


def test_a_push_into_a_project_with_tables_keeps_them(stack: Stack, new_database: Callable[[str], str]):
    database = new_database("lived_in")
    with psycopg.connect(stack.database_url(database=database)) as connection:
        connection.execute(
            "create table public.documents (id int primary key, body text); "
            "insert into public.documents values (1, 'theirs'); create table public.chunks (id int)"
        )
    cli(stack, "db", "push", database=database)
    with psycopg.connect(stack.database_url(database=database)) as connection:
        assert connection.execute("select * from public.documents").fetchall() == [(1, "theirs")]
        assert connection.execute("select count(*) from rag.documents").fetchall() == [(0,)]


def test_a_project_with_migrations_pushes_copies_and_removes_the_schema(
    stack: Stack, new_database: Callable[[str], str], tmp_path: Path
):
    """As docs/install.md says: the CLI refuses to push from a folder without the project's history."""
    database, folder = new_database("adopting"), tmp_path / "supabase" / "migrations"
    folder.mkdir(parents=True)
    (tmp_path / "supabase" / "config.toml").write_text('project_id = "theirs"')
    for version in ("20250101000000", "29990101000000"):
        (folder / f"{version}_theirs.sql").write_text(f"create table public.theirs_{version} (id int)")
    theirs = ("--workdir", str(tmp_path), "db", "push")
    cli(stack, *theirs, database=database)
    with psycopg.connect(stack.database_url(database=database)) as connection:
        before = connection.execute(OBJECTS).fetchall()
    with pytest.raises(CommandError, match="Remote migration versions not found"):
        cli(stack, "db", "push", database=database)

    for name in MIGRATIONS:
        (folder / name).write_bytes((declared_schema.MIGRATIONS / name).read_bytes())
    with pytest.raises(CommandError, match="--include-all"):
        cli(stack, *theirs, database=database)
    pushed = cli(stack, *theirs, "--include-all", database=database)
    assert pushed["migrations"] == MIGRATIONS

    remote = f"--remote={stack.database_url(database=database)}"
    supabase(stack.folder, "db", "query", "--yes", "--file", str(ROOT / "supabase" / "remove.sql"), remote)
    with psycopg.connect(stack.database_url(database=database)) as connection:
        assert connection.execute(OBJECTS).fetchall() == before


@pytest.mark.parametrize(
    "state", ["drop schema storage cascade", "alter table storage.objects owner to supabase_admin"]
)
def test_a_project_with_inaccessible_storage_gets_everything_else(
    stack: Stack, new_database: Callable[[str], str], state: str
):
    database = new_database("storeless")
    with psycopg.connect(stack.database_url("supabase_admin", database)) as connection:
        connection.execute(state.encode())
    cli(stack, "db", "push", database=database)
    with psycopg.connect(stack.database_url(database=database)) as connection:
        assert connection.execute("select count(*) from rag.object_removals").fetchall() == [(0,)]
        if not state.startswith("drop"):
            # Neither the bucket without its policies, nor some of these.
            assert connection.execute("select count(*) from storage.buckets").fetchall() == [(0,)]
            of_storage = "select count(*) from pg_policy where polrelid = 'storage.objects'::regclass"
            assert connection.execute(of_storage).fetchall() == [(0,)]


def test_the_advisors_report_nothing(stack: Stack, migrated: str):
    assert cli(stack, "db", "advisors", database=migrated)["results"] == []
    # Nor below a warning, but for indexes that cannot have been used in a database without rows.
    report = cli(stack, "db", "advisors", "--type=all", "--level=info", database=migrated)
    assert [finding for finding in report["results"] if finding["name"] != "unused_index"] == []


def test_the_advisors_would_report_something(stack: Stack, cloned: Callable[[str], str]):
    """They exit with 0 whatever they find, so silence has to be known for silence."""
    database = cloned("advised")
    with psycopg.connect(stack.database_url(database=database)) as connection:
        connection.execute("create table public.open_to_all (id int primary key)")
    report = cli(stack, "db", "advisors", "--type=all", "--level=info", database=database)
    assert any("open_to_all" in json.dumps(finding) for finding in report["results"])


def test_the_seed_applies_twice(stack: Stack, new_database: Callable[[str], str]):
    """Through the CLI, which skips a seed that it has seen, and by hand, which does not."""
    database = new_database("seeded")

    def demo() -> tuple[Any, ...]:
        with psycopg.connect(stack.database_url(database=database)) as connection:
            row = connection.execute(
                "select (select count(*) from auth.users), (select count(*) from rag.orgs), "
                "(select count(*) from rag.members)"
            ).fetchone()
        assert row is not None
        return row

    report = cli(stack, "db", "push", "--include-seed", database=database)
    assert report["seeds"] == ["supabase/seed.sql"]
    seeded = demo()
    assert seeded == (6, 2, 6)
    with psycopg.connect(stack.database_url(database=database)) as connection:
        connection.execute((ROOT / "supabase" / "seed.sql").read_bytes())
    assert demo() == seeded


def test_the_migration_is_generated_from_sql() -> None:
    assert declared_schema.MIGRATION.read_text() == declared_schema.declared_schema(), "run: make generated"


def test_there_is_nothing_to_draft_without_a_change_in_sql(stack: Stack) -> None:
    before = set(declared_schema.MIGRATIONS.iterdir())
    with pytest.raises(CommandError, match="nothing to draft"):
        migrations.draft(stack, "nothing")
    assert set(declared_schema.MIGRATIONS.iterdir()) == before
