"""Runs of verify on the test stack: their report, what they leave, and the inputs that they refuse."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import psycopg
import pytest

from local import ROOT
from local.stack import Stack
from local.tools import migrations
from local.verify_command import deployment_of
from tests.actors import World, vector
from tests.external_programs import completed
from tests.sql.passages import deployed_with
from tests.sql.schema_changes import changed_function, schema_change
from verify import command, recall, temporary_rows
from verify.actors import create_actors
from verify.membership_attacks import _attempt
from verify.options import add_arguments
from verify.report import Report
from verify.row_states import changed_tables, row_states
from verify.run import PartFailed, clean, preview, verify, verify_catalogue
from verify.target_deployment import Deployment, Finding, SetupFailed
from verify.temporary_rows import Memberships
from verify.victim_objects import ObjectFactory

# Few targets: the sweeps of all have tests of their own.
TARGETS = {"GET /v1/collections", "GET /v1/documents/{document_id}", "rag_list_collections", "documents"}


@pytest.fixture
def deployment(stack: Stack) -> Deployment:
    return deployment_of(stack)


@contextmanager
def connected(deployment: Deployment) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(deployment.database_url, autocommit=True) as connection:
        yield connection


def secrets_of(stack: Stack) -> list[str]:
    key = stack.signing_key
    return [
        key if isinstance(key, str) else json.dumps(key),
        stack.state.functions_secret,
        stack.state.password,
        stack.publishable_key,
    ]


def test_a_run_finds_no_difference_and_leaves_every_row_as_it_was(stack: Stack, deployment: Deployment):
    with connected(deployment) as connection:
        before = row_states(connection)
        report = verify(deployment, only=TARGETS.__contains__)
        assert changed_tables(before, row_states(connection)) == []
    assert [str(finding) for finding in report.findings] == []
    tried = {entry["target"]: entry for entry in report.targets()}
    assert tried.keys() == (TARGETS - {"documents"}) | {"table rag.documents"}
    assert all(entry["refused"] > 10 for name, entry in tried.items() if name != "table rag.documents")
    assert any(attempt.attack == "a key token with one scope" for attempt in report.attempts)
    document = json.loads(report.to_json())
    assert document["differs"] is False
    assert len(document["attempts"]) == sum(entry["tried"] for entry in tried.values())
    page = report.to_html()
    assert "No difference" in page
    assert "GET /v1/documents/{document_id}" in page
    for secret in secrets_of(stack):
        assert secret not in page + json.dumps(document)


@pytest.mark.long
def test_the_worker_may_run_meanwhile(stack: Stack, deployment: Deployment, no_jobs: None):
    """Attacks queue documents of the temporary orgs, and the worker leaves them out."""
    names = {"POST /v1/documents/text", "rag_put_documents"}
    headers = {"Authorization": f"Bearer {stack.state.worker_token}"}
    ended = Event()

    def work() -> int:
        completed = 0
        with httpx.Client(timeout=60, headers=headers) as client:
            while not ended.is_set():
                report = client.post(f"{stack.url}/functions/v1/ingest").raise_for_status().json()
                completed += report["completed"] + report["failed"] + report["read"]
        return completed

    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(work)
        try:
            report = verify(deployment, only=names.__contains__)
        finally:
            ended.set()
    assert [str(finding) for finding in report.findings] == []
    assert worker.result() == 0


def test_a_sweep_that_fails_keeps_its_findings(world: World, deployment: Deployment):
    plant = (
        "create or replace function rag.has_scope(variadic scopes text[]) returns boolean "
        "language sql stable set search_path = '' as 'select true'"
    )

    def only(name: str) -> bool:
        if name == "rag_list_deliveries":
            raise RuntimeError("the sweep ends here")
        return name == "rag_list_collections"

    with changed_function(world, "rag.has_scope", plant), pytest.raises(PartFailed) as failed:
        verify(deployment, only=only)
    report = failed.value.report
    assert (report.failure or "").endswith("RuntimeError: the sweep ends here")
    assert {finding.target for finding in report.attacks} == {"rag_list_collections"}
    assert {attempt.target for attempt in report.attempts} == {"rag_list_collections"}


TEAMS = """
create table public.teams (id uuid primary key, name text);
create table public.team_members (team_id uuid references public.teams, user_id uuid references auth.users,
  is_owner boolean);
grant select on public.team_members to authenticated;
alter table public.team_members enable row level security;
create policy own on public.team_members for select to authenticated using (user_id = auth.uid());
"""
TEAM_MEMBERS = """
-- add
insert into public.teams values (%(org_id)s, %(name)s) on conflict do nothing;
insert into public.team_members values (%(org_id)s, %(user_id)s, %(role)s = 'admin');
-- remove
delete from public.team_members where user_id = any (%(user_ids)s);
delete from public.teams where id = any (%(org_ids)s);
"""
MEMBERSHIPS = """
create or replace function rag.memberships() returns table (org_id uuid, role text)
language sql stable security {security} set search_path = '' as $$
  select team_id, case when is_owner then 'admin' else 'member' end from public.team_members
  where user_id = auth.uid() {condition}
$$;
"""


def sql_of(page: str, section: str) -> list[str]:
    """The SQL of a section of the documentation."""
    text = (ROOT / "docs" / page).read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    return [block.split("```")[0] for block in text.split("```sql\n")[1:]]


def test_the_documented_table_of_members_is_no_difference_and_one_that_admits_strangers_is(
    world: World, deployment: Deployment
):
    """With Supabase's grants, which a new table of public has from its default privileges. The catalogue of
    the second looks right: the function is declared to be the adopter's. Only attacks show what it does."""
    functions = ("rag.memberships", "rag.org_members")
    originals = [world.sql(f"select pg_get_functiondef('{name}'::regproc)")[0][0] for name in functions]
    drop = "drop table public.team_members, public.teams; drop function public.create_org()"
    restore = f"{'; '.join(originals)}; {drop}"
    statements = sql_of("own-members.md", "Memberships") + sql_of("own-members.md", "List of members")
    tables = (
        "create table public.teams (id uuid primary key, name text); "
        "alter table public.teams enable row level security; "
        "create table public.team_members (team_id uuid references public.teams, user_id uuid, "
        "is_owner boolean);"
    )
    listing = (
        "create policy listed on public.team_members for select to authenticated "
        "using (team_id = any (array(select rag.listed_org_ids())));"
    )
    (members,) = sql_of("verify.md", "Your own table of members")
    names = {"memberships", "team_members", "teams", "members", "rag_list_members", "rag_list_collections"}
    plant = tables + "".join(statements) + listing
    memberships = Memberships.from_text(members)
    with schema_change(world, plant, restore, "/team_members"):
        report = verify(deployment, memberships=memberships, only=names.__contains__)
        assert [str(finding) for finding in report.findings] == []
        assert [finding.target for finding in report.to_read] == ["function public.create_org()"]
        assert world.sql("select count(*) from public.teams") == [(0,)]
        admits_all = "or not exists (select from public.team_members where user_id = auth.uid())"
        world.sql(MEMBERSHIPS.format(security="definer", condition=admits_all))
        report = verify(deployment, memberships=memberships, only="rag_list_collections".__eq__)
    assert report.catalogue == []
    attacks = {(finding.target, finding.attack) for finding in report.findings}
    assert ("rag_list_collections", "a user without an org") in attacks


GRANTED = "grant insert, update, delete on public.team_members to authenticated, anon; "
WRITES = {
    "a user without an org adds themselves as authenticated",
    "a member of another org moves to the victim org", "a member becomes an admin",
    "a member removes an admin", "an admin of another org removes an admin",
}  # fmt: skip
OWN_POLICIES = {
    "row security off": (
        "alter table public.team_members disable row level security",
        WRITES
        | {
            "a user without an org adds themselves as anon",
            "a user without an org takes the row of a member",
        },
    ),
    "a user adds themselves and changes their own row, and everyone sees and deletes rows": (
        "create policy added on public.team_members for insert to authenticated "
        "with check (user_id = auth.uid()); "
        "create policy changed on public.team_members for update to authenticated "
        "using (user_id = auth.uid()); "
        "create policy deleted on public.team_members for delete to authenticated using (true); "
        "create policy seen on public.team_members for select to authenticated using (true)",
        WRITES,
    ),
}


def test_a_run_finds_that_users_write_an_adopters_memberships(
    world: World, deployment: Deployment, subtests: pytest.Subtests
):
    """Supabase grants these rights on each new table of public. Each policy is another hole."""
    ((original,),) = world.sql("select pg_get_functiondef('rag.memberships'::regproc)")
    restore = f"{original}; drop table public.team_members, public.teams"
    plant = TEAMS + MEMBERSHIPS.format(security="invoker", condition="") + GRANTED
    for name, (policy, attacks) in OWN_POLICIES.items():
        with subtests.test(hole=name), schema_change(world, plant + policy, restore):
            report = verify(
                deployment, memberships=Memberships.from_text(TEAM_MEMBERS), only="memberships".__eq__
            )
            assert {finding.attack for finding in report.findings} == attacks
            assert {finding.target for finding in report.findings} == {"rag.memberships()"}


ADDED_BY_ADMINS = (
    'alter policy "admins invite users to their orgs" on rag.members '
    "with check (org_id = any (array(select rag.admin_org_ids())) "
    "and (select rag.bound_collection()) is null{})"
)
CONSENT = {
    "an admin adds a user without consent",
    "an admin accepts an invitation for its user",
    "an invited user becomes an admin",
}


def test_a_run_finds_that_admins_add_users_without_consent(world: World, deployment: Deployment):
    plant = f"{ADDED_BY_ADMINS.format('')}; alter table rag.members disable trigger check_consent"
    restore = (
        f"{ADDED_BY_ADMINS.format(' and accepted_at is null')}; "
        "alter table rag.members enable trigger check_consent"
    )
    with schema_change(world, plant, restore):
        report = verify(deployment, only="memberships".__eq__)
        # The comparison of the catalogue finds the change too.
        attacks = {finding.attack for finding in report.findings if finding.target == "rag.memberships()"}
        assert attacks == CONSENT


def leave_rows(deployment: Deployment) -> None:
    """Create what a run creates, and end as a process that is killed."""
    context = create_actors(deployment)
    actors = context.__enter__()
    with httpx.Client(timeout=60) as client:
        ObjectFactory(actors, client).create()
    actors.database.close()
    with pytest.raises(psycopg.OperationalError):
        context.__exit__(None, None, None)


def test_what_a_killed_run_left_is_removed(stack: Stack, deployment: Deployment):
    with connected(deployment) as connection:
        before = row_states(connection)
        leave_rows(deployment)
        assert changed_tables(before, row_states(connection)) != []
        # The worker of the deployment has nothing to send for the temporary orgs.
        orgs = set(temporary_rows.find(connection).org_ids)
        due = connection.execute("select org_id::text from rag.due_deliveries(1000)").fetchall()
        assert not orgs & {org_id for (org_id,) in due}
        removed = clean(deployment.database_url)
        assert (len(removed.org_ids), len(removed.user_ids)) == (2, 8)
        assert changed_tables(before, row_states(connection)) == []
        assert not clean(deployment.database_url)


def test_a_second_run_is_refused(deployment: Deployment):
    with connected(deployment) as other:
        other.execute("select pg_advisory_lock(hashtextextended('rag.verify', 0))")
        with pytest.raises(SetupFailed, match="Another run of verify is active on this database"):
            verify(deployment, only=TARGETS.__contains__)
        with pytest.raises(SetupFailed, match="Another run of verify is active on this database"):
            clean(deployment.database_url)


PLANTED_TRIGGER = """
create table public.mails (address text);
create function public.mail() returns trigger language plpgsql security definer as
  'begin insert into public.mails values (coalesce(new.email, old.email)); return coalesce(new, old); end';
create trigger mail after insert or delete on auth.users for each row execute function public.mail()
"""


def test_triggers_of_users_do_not_run_for_temporary_users(stack: Stack, deployment: Deployment):
    """A trigger may send mail. Without the right to switch it off, nothing is created."""
    superuser = replace(deployment, database_url=stack.database_url("supabase_admin"))
    with connected(superuser) as connection:
        connection.execute(PLANTED_TRIGGER.encode())
        try:
            with create_actors(superuser) as actors:
                users = "select count(*) from auth.users where email = %s"
                assert actors.sql(users, actors.member.email) == [(1,)]
            with pytest.raises(SetupFailed, match=r"may not switch off the triggers of auth.users \(mail\)"):
                verify(deployment, only=TARGETS.__contains__)
            listed = preview(deployment)[-1]
            assert listed == "Triggers of auth.users that will not run for these users: mail"
            assert connection.execute("select * from public.mails").fetchall() == []
            assert not temporary_rows.find(connection)
        finally:
            connection.execute(
                "drop trigger mail on auth.users; drop function public.mail; drop table public.mails"
            )


def without_access(deployment: Deployment, stack: Stack) -> list[tuple[Deployment, str]]:
    url = deployment.database_url
    password = stack.state.password
    changes: list[tuple[dict[str, Any], str]] = [
        ({"database_url": "nothing"}, "RAG_DATABASE_URL is not the URL of a database"),
        ({"database_url": url.replace(password, "wrong")}, "it refused the password"),
        ({"database_url": "postgresql://127.0.0.1:1/x"}, "there is no connection"),
        ({"database_url": "postgresql://127.0.0.1:6543/x"}, "the port 6543 of the pooler"),
        ({"database_url": stack.database_url("authenticator")}, "Row security binds the role"),
        ({"signing_key": "x" * 40}, "does not accept tokens that this signing key signs"),
        ({"signing_key": {"alg": "ES256"}}, "The signing key cannot sign. Set RAG_SIGNING_KEY"),
        ({"functions_secret": "x" * 32}, "RAG_FUNCTIONS_SECRET is not the secret"),
        ({"anon_key": "another"}, "refuses SUPABASE_PUBLISHABLE_KEY"),
        ({"project_url": "http://127.0.0.1:1"}, "no answer from 127.0.0.1: check SUPABASE_URL"),
        ({"url": f"{deployment.url}/nothing"}, "/nothing/health returned an error. Check --url."),
    ]
    return [(replace(deployment, **each), text) for each, text in changes]


def test_a_wrong_input_is_refused_in_one_sentence_without_a_secret(
    stack: Stack, deployment: Deployment, subtests: pytest.Subtests
):
    for wrong, message in without_access(deployment, stack):
        with subtests.test(message=message):
            with pytest.raises(SetupFailed) as refusal:
                verify(wrong, only=TARGETS.__contains__)
            text = str(refusal.value)
            assert message in text
            assert not any(secret in text for secret in secrets_of(stack))
            assert "\n" not in text


def test_another_release_and_a_database_without_the_schema_are_refused(
    world: World, stack: Stack, deployment: Deployment
):
    with (
        changed_function(world, "rag.version", lambda text: text.replace("2026", "2099")),
        pytest.raises(SetupFailed, match=r"has the release 2099.* and this copy of verify is of 2026"),
    ):
        verify_catalogue(deployment.database_url)
    database = f"empty_{stack.state.database}"
    migrations.make_database(stack.postgres, database)
    try:
        with pytest.raises(SetupFailed, match="Apply the migrations first"):
            verify_catalogue(stack.database_url(database=database))
    finally:
        migrations.drop_database(stack.postgres, database)


def test_recall_is_measured_among_an_orgs_rows_and_a_search_that_misses_rows_is_found(world: World):
    org = world.org()
    world.user(org).put([vector(seed) for seed in range(30)])
    with psycopg.connect(world.stack.database_url(), autocommit=True) as connection:
        (result,) = [entry for entry in recall.measure(connection) if entry.expected]
        assert result.recall == 1
        assert recall.findings([result]) == []
        half = replace(result, retrieved=result.expected // 2)
    (finding,) = recall.findings([half])
    assert str(finding) == "rag_match: recall, orgs of less than 100 chunks: it is 0.500"


def test_a_run_acts_as_users_of_the_issuer_in_the_settings(world: World, deployment: Deployment):
    org = world.org()
    world.user(org).put([vector(1)])
    with deployed_with(world, issuer=deployment.token_issuer):
        report = verify(deployment, only="memberships".__eq__)
    assert [str(finding) for finding in report.findings] == []
    assert len([attempt for attempt in report.attempts if attempt.target == "rag.memberships()"]) == 10
    assert [entry.recall for entry in report.recall if entry.expected] == [1]


def test_a_run_compares_the_issuers_of_the_functions_and_of_the_settings(
    world: World, deployment: Deployment
):
    own, auth0 = deployment.token_issuer, "https://app.auth0.example/"
    clerk, other = "https://app.clerk.example", "https://other.example"

    def findings(issuers: dict[str, str | None] | None) -> list[tuple[str, str]]:
        report = verify(replace(deployment, third_party_issuers=issuers), only=lambda _: False)
        return [(each.attack, each.detail) for each in report.findings]

    with deployed_with(world, issuer=own, third_party_issuers={clerk: None, auth0: "app"}):
        assert findings({clerk: None, auth0: "app"}) == findings(None) == []
        assert [
            (attack, text.partition(": ")[0]) for attack, text in findings({clerk: "x", other: None})
        ] == [
            ("third_party_issuers", f"{auth0} is in rag.settings alone"),
            (
                "third_party_issuers",
                f"the audience of {clerk} is x in RAG_THIRD_PARTY_ISSUERS and None in rag.settings",
            ),
            ("third_party_issuers", f"{other} is in RAG_THIRD_PARTY_ISSUERS alone"),
        ]
    refusal = f"expect tokens of {own}, and rag.settings names another issuer"
    with deployed_with(world, issuer=f"{own}x"), pytest.raises(SetupFailed, match=refusal):
        findings({})


def test_a_refused_issuer_is_no_refused_attack(deployment: Deployment):
    refusal = "do $$ begin raise exception 'issuer' using errcode = 'PT401'; end $$"
    with connected(deployment) as connection, connection.transaction(force_rollback=True):
        with pytest.raises(SetupFailed, match="refused the claims"):
            _attempt(connection, refusal)
        _attempt(connection, "select 1 / 0")


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(arguments)


def test_the_exit_status_tells_whether_anything_differs(
    world: World, deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    arguments = options("--catalogue", "--report", str(tmp_path / "report"))

    def run() -> int:
        return command.run(arguments, deployment.database_url, lambda _: nullcontext(deployment), [])

    assert run() == command.SAME
    with schema_change(world, "grant select on rag.tiers to anon", "revoke select on rag.tiers from anon"):
        assert run() == command.DIFFERS
        assert "table rag.tiers: grants: it is" in capsys.readouterr().out
    assert json.loads((tmp_path / "report.json").read_text())["differs"] is True
    assert "table rag.tiers" in (tmp_path / "report.html").read_text()
    assert run() == command.SAME


def test_a_failed_run_has_its_own_status_and_no_traceback(
    deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    def run(report: Path, url: str) -> int:
        arguments = options("--catalogue", "--report", str(report))
        return command.run(arguments, url, lambda _: nullcontext(deployment), [])

    assert run(tmp_path / "missing" / "report", deployment.database_url) == command.FAILED
    assert f"The report cannot be written to the directory {tmp_path}/missing." in capsys.readouterr().err
    (tmp_path / "report.json").mkdir()
    assert run(tmp_path / "report", deployment.database_url) == command.FAILED
    error = capsys.readouterr().err
    assert error.startswith("error: The run failed: IsADirectoryError: ")
    assert error.count("\n") == 1


def test_a_part_that_fails_is_named_and_the_findings_before_it_are_reported(
    world: World, deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    world.user(world.org()).put([vector(seed) for seed in range(3)])
    arguments = options("--catalogue", "--report", str(tmp_path / "report"))
    plant = "grant select on rag.tiers to anon; alter function public.rag_match rename to rag_planted"
    restore = "alter function public.rag_planted rename to rag_match; revoke select on rag.tiers from anon"
    with schema_change(world, plant, restore):
        status = command.run(arguments, deployment.database_url, lambda _: nullcontext(deployment), [])
    assert status == command.FAILED
    output = capsys.readouterr().out
    assert 'incomplete: The part "recall" failed: UndefinedFunction: ' in output
    assert "table rag.tiers: grants: it is" in output
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["failure"].startswith('The part "recall" failed')
    assert any(finding["target"] == "table rag.tiers" for finding in document["findings"])
    assert "Incomplete, " in (tmp_path / "report.html").read_text()


def test_the_summary_says_which_orgs_recall_was_not_measured_for():
    report = Report(datetime.now(UTC), "1", "18")
    assert report.summary()[-1] == "recall: not measured, because no org has chunks"
    report.recall = [recall.Recall(100, 0, 0, 0, 0, 2), recall.Recall(1000, 1, 5, 50, 50, 1)]
    assert report.summary()[-2:] == [
        "recall: not measured for 2 of less than 100 chunks: no member is known",
        "recall: 1.000 for 1 org of less than 1,000 chunks, not measured for 1, of which no member is known",
    ]


def test_changed_tables_of_a_database_in_use_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    report = Report(datetime.now(UTC), "1", "18", changed_tables=["public.orders: 1 rows before, 2 after"])
    report.in_use = True
    assert command._end(options("--report", str(tmp_path / "report")), report, []) == command.SAME
    assert "changed during the run: public.orders: 1 rows before, 2 after" in capsys.readouterr().out
    assert "public.orders: 1 rows before, 2 after" in (tmp_path / "report.html").read_text()


def test_the_password_and_the_private_key_alone_are_secrets(
    deployment: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    key = json.dumps({"kty": "EC", "d": "PRIVATE-MEMBER"})
    folder = tmp_path / "PRIVATE-MEMBER, p@ssword, p%40ssword"
    arguments = options("--report", str(folder / "report"))
    url = "postgresql://postgres:p%40ssword@localhost/x"
    assert command.run(arguments, url, lambda _: nullcontext(deployment), [key]) == command.FAILED
    assert "[secret], [secret], [secret]" in capsys.readouterr().err


def test_the_report_has_no_secret_that_a_response_repeats():
    report = Report(datetime.now(UTC), "1", "18")
    report.attacks.append(
        Finding("GET /planted", "no credential", "the status is 200: key=SECRET-OF-THE-PROJECT")
    )
    for text in (report.to_json(["SECRET-OF-THE-PROJECT"]), report.to_html(["SECRET-OF-THE-PROJECT"])):
        assert "SECRET-OF-THE-PROJECT" not in text
        assert "key=[secret]" in text


@pytest.mark.long
def test_the_command_reads_its_settings_from_standard_input(stack: Stack, tmp_path: Path):
    """With the functions of this checkout, which run for the time of the command."""
    settings = {
        **stack.function_environment(),
        "RAG_DATABASE_URL": stack.database_url(),
        "SUPABASE_JWT_SECRET": stack.state.jwt_secret,
    }
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}

    def run(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command_line = [sys.executable, "-m", "verify", "--stdin", *arguments]
        return completed(command_line, input=text, env=environment, cwd=tmp_path)

    listed = run(lines, "--dry-run")
    assert (listed.returncode, listed.stderr) == (command.SAME, "")
    assert "rag.orgs: 2 rows with that tier" in listed.stdout
    without_url = run("")
    assert without_url.returncode == command.FAILED
    assert (
        without_url.stderr
        == "error: Set RAG_DATABASE_URL to the URL of the database, of the role postgres.\n"
    )
    assert not any(secret in listed.stdout for secret in secrets_of(stack))
