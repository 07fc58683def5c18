"""supabase/migrations makes what sql/ declares: by pg_dump, which sees what the CLI's diff does not. And the
CLI does with both what an adopter will do with them.
"""

import json
import subprocess
import tomllib
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
from tests.verify.test_run import sql_of

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


def dump_of(stack: Stack, database: str) -> set[str]:
    """The lines of pg_dump without their order: columns that a migration adds are the last ones."""
    (psql, *_), environment = stack.postgres.psql()
    options = ["--schema-only", "--exclude-schema=supabase_migrations", "--dbname"]
    command = [str(Path(psql).with_name("pg_dump")), *options, stack.database_url("supabase_admin", database)]
    dump = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines = {line.rstrip(",") for line in dump.stdout.splitlines()}
    # Each dump has another key.
    return {line for line in lines if not line.startswith(("\\restrict", "\\unrestrict"))}


def cli(stack: Stack, *arguments: str, database: str) -> dict[str, Any]:
    """What the CLI reports of a command on that database, as JSON; text for people follows it."""
    remote = f"--remote={stack.database_url(database=database)}"
    output = supabase(stack.folder, *arguments, "--yes", "--output-format", "json", remote)
    report, _ = json.JSONDecoder().raw_decode(output)
    assert isinstance(report, dict)
    return report


def rows(stack: Stack, database: str, statement: str, user: str = "postgres") -> list[tuple[Any, ...]]:
    """The rows of a statement in that database, committed."""
    with psycopg.connect(stack.database_url(user, database)) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


# For lints of Supabase's dashboard that this CLI lacks: functions that run as their owner, public buckets,
# and what GraphQL would show without a user's token.
OTHER_LINTS = """
  select oid::regprocedure::text
  from pg_proc
  where pronamespace = 'public'::regnamespace and prosecdef
    and (has_function_privilege('anon', oid, 'execute')
      or has_function_privilege('authenticated', oid, 'execute'))
  union all select id from storage.buckets where public
  union all
  select oid::regclass::text
  from pg_class
  where relnamespace in ('rag'::regnamespace, 'public'::regnamespace) and relkind in ('r', 'v', 'm', 'f', 'p')
    and has_any_column_privilege('anon', oid, 'select')
  order by 1
"""
# An adopter's own table of members, as docs/own-members.md assumes it, and a bucket.
OWN_TABLES = """
  create table public.teams (id uuid primary key default gen_random_uuid(), name text not null);
  create table public.team_members (
    team_id uuid references public.teams on delete cascade,
    user_id uuid references auth.users on delete cascade,
    is_owner boolean not null default false, primary key (team_id, user_id));
  create index on public.team_members (user_id);
  alter table public.teams enable row level security;
  create policy "members read their teams" on public.teams for select to authenticated
    using (public.is_org_member(id));
  insert into storage.buckets (id, name) values ('avatars', 'avatars');
  create policy "users read avatars" on storage.objects for select to authenticated
    using (bucket_id = 'avatars');
"""
# What the advisors and each of the other lints report.
PLANTED = """
  create table public.open_to_all (id int primary key);
  create function public.planted() returns int
    language sql security definer set search_path = '' as 'select 1';
  update storage.buckets set public = true where id = 'avatars';
  grant select (name) on rag.orgs to anon;
"""


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
    # The template has settings of the tests.
    columns = ("reads_per_user", "reads_per_org", "writes_per_user", "writes_per_org")
    limits = ", ".join(f"{name} = default" for name in columns)
    own = f"other_embedding_models = default, graph_milliseconds = default, {limits}"
    rows(stack, database, f"update rag.settings set {own}")
    yield database
    migrations.drop_database(stack.postgres, database)


def test_sql_and_the_migrations_make_equal_databases(stack: Stack, declared: str, migrated: str):
    assert sorted(dump_of(stack, declared) ^ dump_of(stack, migrated)) == []
    settings = "select * from rag.settings"
    assert rows(stack, declared, settings) == rows(stack, migrated, settings)


# What neither the CLI's diff nor verify/catalogue.sql sees, by a text of the dump.
CHANGES = {
    "embedding SET STORAGE": "alter table rag.chunks alter column embedding set storage external",
    "SET COMPRESSION pglz": "alter table rag.chunks alter column content set compression pglz",
    "SET STATISTICS 500": "alter table rag.chunks alter column lang set statistics 500",
    "chunks_by_scope": "drop index rag.chunks_by_scope",
    "rag.extra": "create statistics rag.extra on org_id, lang from rag.chunks",
    "rag.plain": "create text search configuration rag.plain (copy = simple)",
}


def test_a_dump_shows_each_change(stack: Stack, migrated: str, cloned: Callable[[str], str]):
    database = cloned("changed")
    rows(stack, database, "; ".join(CHANGES.values()), "supabase_admin")
    differences = sorted(dump_of(stack, database) ^ dump_of(stack, migrated))
    assert [text for text in CHANGES if not any(text in line for line in differences)] == []


def test_a_push_into_a_project_with_tables_keeps_them(stack: Stack, new_database: Callable[[str], str]):
    """It tells PostgREST to read the schema. A seed applies by the CLI, and by hand after it."""
    database = new_database("lived_in")
    rows(stack, database, "create table public.documents (id int primary key, body text)")
    rows(stack, database, "insert into public.documents values (1, 'theirs')")
    rows(stack, database, "create table public.chunks (id int)")
    with psycopg.connect(stack.database_url(database=database), autocommit=True) as connection:
        connection.execute("listen pgrst")
        first = cli(stack, "db", "push", database=database)
        (notice,) = connection.notifies(timeout=60, stop_after=1)
    assert notice.payload == "reload schema"
    assert (first["migrations"], first["seeds"]) == (MIGRATIONS, [])
    second = cli(stack, "db", "push", "--include-seed", database=database)
    assert (second["migrations"], second["seeds"]) == ([], ["supabase/seed.sql"])
    rows(stack, database, (ROOT / "supabase" / "seed.sql").read_text())
    for table, count in (("auth.users", 6), ("rag.orgs", 2), ("rag.members", 6)):
        assert rows(stack, database, f"select count(*) from {table}") == [(count,)]
    third = cli(stack, "db", "push", database=database)
    assert (third["upToDate"], third["migrations"]) == (True, [])
    assert rows(stack, database, "select * from public.documents") == [(1, "theirs")]
    assert rows(stack, database, "select count(*) from rag.documents") == [(0,)]


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
    before = rows(stack, database, OBJECTS)
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
    assert rows(stack, database, OBJECTS) == before


def test_an_upgrade_keeps_replaced_memberships(stack: Stack, cloned: Callable[[str], str]):
    """A draft that would undo an adopter's function is refused; other migrations keep the function."""
    database = cloned("upgraded")
    statements = sql_of("own-members.md", "Memberships") + sql_of("own-members.md", "List of members")
    rows(stack, database, "; ".join([OWN_TABLES, *statements]))
    bodies = (
        "select md5(prosrc) from pg_proc where pronamespace = 'rag'::regnamespace"
        " and proname in ('memberships', 'org_members') order by proname"
    )
    own = rows(stack, database, bodies)
    other = cloned("released")
    changes = migrations.difference(stack, database, other)
    with pytest.raises(CommandError, match="would undo an adopter's rag"):
        migrations.require_replaced_functions_unchanged(changes)

    rows(stack, other, "alter table rag.settings add column planted integer not null default 1")
    added = migrations.difference(stack, cloned("before"), other)
    migrations.require_replaced_functions_unchanged(added)
    rows(stack, database, added)
    assert rows(stack, database, bodies) == own
    assert rows(stack, database, "select planted from rag.settings") == [(1,)]


def test_no_later_migration_replaces_what_adopters_replace():
    for path in declared_schema.MIGRATIONS.glob("*.sql"):
        if path != declared_schema.MIGRATION:
            migrations.require_replaced_functions_unchanged(path.read_text())


def test_a_removal_by_a_migration_leaves_a_reset_working(
    stack: Stack, new_database: Callable[[str], str], tmp_path: Path
):
    """As docs/upgrade.md says: a new database runs all migrations of the project in order."""
    folder = tmp_path / "supabase" / "migrations"
    folder.mkdir(parents=True)
    (tmp_path / "supabase" / "config.toml").write_text('project_id = "theirs"')
    statements = sql_of("own-members.md", "Memberships") + sql_of("own-members.md", "List of members")
    own_objects = (
        "drop trigger create_org on public.teams; drop function public.create_org();"
        'drop policy "members read their teams" on public.teams;'
    )
    (folder / "20250101000000_first.sql").write_text("create table public.first (id int)")
    for name in MIGRATIONS:
        (folder / name).write_bytes((declared_schema.MIGRATIONS / name).read_bytes())
    (folder / "29980101000000_theirs.sql").write_text("; ".join([OWN_TABLES, *statements]))
    removal = own_objects + (ROOT / "supabase" / "remove.sql").read_text()
    (folder / "29990101000000_remove_rag.sql").write_text(removal)
    database = new_database("reset")
    report = cli(stack, "--workdir", str(tmp_path), "db", "push", database=database)
    assert len(report["migrations"]) == 3 + len(MIGRATIONS)
    assert rows(stack, database, "select to_regnamespace('rag') is null") == [(True,)]
    left = "select tablename::text from pg_tables where schemaname = 'public' order by 1"
    assert rows(stack, database, left) == [("first",), ("team_members",), ("teams",)]


@pytest.mark.parametrize(
    "state", ["drop schema storage cascade", "alter table storage.objects owner to supabase_admin"]
)
def test_a_project_with_inaccessible_storage_gets_everything_else(
    stack: Stack, new_database: Callable[[str], str], state: str
):
    database = new_database("storeless")
    rows(stack, database, state, "supabase_admin")
    cli(stack, "db", "push", database=database)
    assert rows(stack, database, "select count(*) from rag.object_removals") == [(0,)]
    if not state.startswith("drop"):
        # Neither the bucket without its policies, nor some of these.
        assert rows(stack, database, "select count(*) from storage.buckets") == [(0,)]
        of_storage = "select count(*) from pg_policy where polrelid = 'storage.objects'::regclass"
        assert rows(stack, database, of_storage) == [(0,)]


# Each makes the migration's first statement refuse the database, with the way out.
REFUSED = {
    "pgvector 0.8 or newer is needed, and this database has 0.7.4": (
        "update pg_extension set extversion = '0.7.4' where extname = 'vector'",
        "alter extension vector update",
    ),
    "pgvector is in the schema public": (
        "alter extension vector set schema public", "alter extension vector set schema extensions"
    ),
    # As this server would be with a later bound.
    "Postgres 15 or newer is needed": ("select 1", "Upgrade the project in its Settings"),
}  # fmt: skip


def test_the_migration_refuses_another_pgvector_and_an_older_postgres(
    stack: Stack, new_database: Callable[[str], str], subtests: pytest.Subtests
):
    database, schema = new_database("refused"), declared_schema.declared_schema()
    assert schema.count("< 150000") == 1
    for message, (change, way_out) in REFUSED.items():
        with (
            subtests.test(message=message),
            psycopg.connect(stack.database_url("supabase_admin", database)) as c,
        ):
            c.execute(change.encode())
            bound = "990000" if message.startswith("Postgres") else "150000"
            with pytest.raises(psycopg.errors.RaiseException, match=message) as refusal:
                c.execute(schema.replace("< 150000", f"< {bound}").encode())
            assert way_out in str(refusal.value.diag.message_hint)


def findings(stack: Stack, database: str) -> list[str]:
    """What the advisors and the other lints report, but for indexes that no query has used yet."""
    report = cli(stack, "db", "advisors", "--type=all", "--level=info", database=database)
    advisors = [json.dumps(finding) for finding in report["results"] if finding["name"] != "unused_index"]
    return advisors + [name for (name,) in rows(stack, database, OTHER_LINTS)]


def test_the_advisors_report_nothing(stack: Stack, migrated: str):
    assert findings(stack, migrated) == []


def test_the_advisors_report_nothing_beside_an_adopters_own_members(
    stack: Stack, cloned: Callable[[str], str]
):
    database = cloned("adopted")
    statements = sql_of("own-members.md", "Memberships") + sql_of("own-members.md", "List of members")
    rows(stack, database, "; ".join([OWN_TABLES, *statements]))
    # Supabase grants tables of public to anon.
    assert findings(stack, database) == ["team_members", "teams"]
    # The CLI exits with 0 whatever it finds, so silence has to be known for silence.
    rows(stack, database, PLANTED)
    advisors, *others = findings(stack, database)
    assert "open_to_all" in advisors
    assert others == ["avatars", "open_to_all", "planted()", "rag.orgs", "team_members", "teams"]


def test_the_cli_reads_the_declared_schema_in_its_order():
    """As the CLI expands schema_paths: each pattern sorted, from the folder of its configuration."""
    configuration = tomllib.loads((ROOT / "supabase" / "config.toml").read_text())
    paths = [
        path
        for pattern in configuration["db"]["migrations"]["schema_paths"]
        for path in sorted((ROOT / "sql").glob(pattern.removeprefix("../sql/")))
    ]
    declared = "\n".join(path.read_text() for path in paths)
    assert declared == declared_schema.declared_schema()


def test_the_migration_is_generated_from_sql() -> None:
    assert declared_schema.MIGRATION.read_text() == declared_schema.declared_schema(), "run: make generated"


@pytest.mark.long
def test_there_is_nothing_to_draft_without_a_change_in_sql(stack: Stack) -> None:
    before = set(declared_schema.MIGRATIONS.iterdir())
    with pytest.raises(CommandError, match="nothing to draft"):
        migrations.draft(stack, "nothing")
    assert set(declared_schema.MIGRATIONS.iterdir()) == before
