"""The catalogue part finds each of these holes, planted one at a time in a transaction, and names it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from local.stack import Stack
from verify.catalogue import catalogue_findings
from verify.run import verify_catalogue

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]
# The catalogue is read for each hole: all holes would be one test of some seconds.
PARTS = 4
REPLACED = "create or replace function {name} language sql stable set search_path = '' as $$ {body} $$"


@dataclass(frozen=True)
class Hole:
    """A statement that opens the database, and the object and property that a finding must name."""

    name: str
    plant: str
    target: str
    attack: str


HOLES = [
    Hole(
        "row security off",
        "alter table rag.chunks disable row level security",
        "table rag.chunks",
        "row security",
    ),
    Hole(
        "row security not forced",
        "alter table rag.documents no force row level security",
        "table rag.documents",
        "row security forced",
    ),
    Hole(
        "a policy that admits everyone",
        'alter policy "members use their org\'s chunks" on rag.chunks using (true)',
        'policy "members use their org\'s chunks" on rag.chunks',
        "using",
    ),
    Hole(
        "a further permissive policy",
        "create policy planted on rag.documents for select to authenticated using (true)",
        'policy "planted" on rag.documents',
        "existence",
    ),
    Hole(
        "a policy for another role",
        'alter policy "members read their orgs" on rag.orgs to public',
        'policy "members read their orgs" on rag.orgs',
        "roles",
    ),
    Hole(
        "the policy of private documents dropped",
        "do $$ declare name text; begin select polname into strict name from pg_policy "
        "where polrelid = 'rag.documents'::regclass and polpermissive and polcmd = '*' "
        "and polroles = array['authenticated'::regrole::oid]; "
        "execute format('drop policy %I on rag.documents', name); end $$",
        "policy",
        "existence",
    ),
    Hole("a grant to anon", "grant select on rag.documents to anon", "table rag.documents", "grants"),
    Hole(
        "a grant of one column",
        "grant update (scopes) on rag.api_keys to authenticated",
        "table rag.api_keys",
        "grants on column scopes",
    ),
    Hole(
        "a guarded function that anon executes",
        "grant execute on function public.rag_list_names() to anon",
        "function public.rag_list_names()",
        "grants",
    ),
    Hole(
        "a function of the worker that users execute",
        "grant execute on function rag.due_jobs(text, integer, uuid[]) to authenticated",
        "function rag.due_jobs(text,integer,uuid[])",
        "grants",
    ),
    Hole(
        "an exposed function as its owner",
        "alter function public.rag_delete_document(uuid) security definer",
        "function public.rag_delete_document(uuid)",
        "security",
    ),
    Hole(
        "a function without search_path",
        "alter function public.rag_delete_document(uuid) reset search_path",
        "function public.rag_delete_document(uuid)",
        "settings",
    ),
    Hole(
        "a function with another owner",
        "alter function rag.current_org_ids() owner to service_role",
        "function rag.current_org_ids()",
        "owner",
    ),
    Hole(
        "a table with another owner",
        "alter table rag.settings owner to service_role",
        "table rag.settings",
        "owner",
    ),
    Hole(
        "a membership function that admits everyone",
        REPLACED.format(
            name="public.is_org_member(org_id uuid) returns boolean", body="select auth.uid() is not null"
        ),
        "function public.is_org_member(uuid)",
        "body",
    ),
    Hole(
        "scopes of keys ignored",
        REPLACED.format(name="rag.has_scope(variadic scopes text[]) returns boolean", body="select true"),
        "function rag.has_scope(text[])",
        "body",
    ),
    Hole(
        "a function that the planner may call before the policies",
        "alter function rag.is_visible_text(text) leakproof",
        "function rag.is_visible_text(text)",
        "leakproof",
    ),
    Hole(
        "a further exposed function as its owner",
        "create function public.rag_planted(document_id uuid) returns text language sql security definer "
        "set search_path = '' as 'select content from rag.documents where id = document_id'",
        "function public.rag_planted(uuid)",
        "existence",
    ),
    Hole(
        "a function of the adopter's that reads as its owner",
        "create function public.titles() returns setof text language sql security definer "
        "set search_path = '' as 'select title from rag.documents'; "
        "grant execute on function public.titles() to authenticated",
        "function public.titles()",
        "security definer",
    ),
    Hole(
        "a function of the adopter's that calls an exposed function as its owner",
        "create function public.names() returns setof text language sql security definer "
        "set search_path = '' as 'SELECT name FROM public.RAG_LIST_NAMES() AS name'; "
        "grant execute on function public.names() to authenticated",
        "function public.names()",
        "security definer",
    ),
    Hole(
        "a parent table that reads the release's rows",
        "create table public.titles (title text); alter table rag.documents inherit public.titles",
        "table rag.documents",
        "inheritance",
    ),
    Hole(
        "a search_path of a role",
        "create schema planted; alter role authenticated set search_path = planted, public",
        "role authenticated",
        "search_path",
    ),
    Hole(
        "another role for requests without a token",
        "alter role authenticator set pgrst.db_anon_role = 'service_role'",
        "PostgREST",
        "pgrst.db_anon_role",
    ),
    Hole(
        "a view that reads as its owner",
        "create view public.titles as select title from rag.documents",
        "view public.titles",
        "security_invoker",
    ),
    Hole(
        "a materialized view",
        "create materialized view public.titles as select title from rag.documents",
        "materialized view public.titles",
        "security_invoker",
    ),
    Hole(
        "a trigger that copies rows",
        "create table public.copies (row jsonb); create function public.copy() returns trigger "
        "language plpgsql as 'begin insert into public.copies values (to_jsonb(new)); return new; end'; "
        "create trigger copies after insert on rag.documents for each row execute function public.copy()",
        "trigger copies on rag.documents",
        "existence",
    ),
    Hole(
        "a foreign key between orgs",
        "alter table rag.chunks drop constraint chunks_org_id_document_id_fkey",
        "constraint chunks_org_id_document_id_fkey on rag.chunks",
        "existence",
    ),
    Hole(
        "a table of the release published to Realtime",
        "create publication planted for table rag.documents",
        "publication planted",
        "tables",
    ),
    Hole(
        "schema rag exposed",
        "alter role authenticator set pgrst.db_schemas = 'public, rag'",
        "PostgREST",
        "pgrst.db_schemas",
    ),
    Hole(
        "no pre-request function for this database",
        "do $$ begin execute format('alter role authenticator in database %I set pgrst.db_pre_request = %L', "
        "current_database(), 'public.other'); end $$",
        "PostgREST",
        "pgrst.db_pre_request",
    ),
    Hole(
        "no pre-request function",
        "alter role authenticator reset pgrst.db_pre_request",
        "PostgREST",
        "pgrst.db_pre_request",
    ),
    Hole("schema rag open to anon", "grant create on schema rag to anon", "schema rag", "grants"),
    Hole(
        "a schema of the search path that users write to",
        "grant create on schema extensions to authenticated",
        "schema extensions",
        "privileges",
    ),
    Hole(
        "default privileges",
        "alter default privileges in schema rag grant select on tables to authenticated",
        "schema rag",
        "default privileges",
    ),
    Hole(
        "a role that row security does not bind",
        "alter role authenticated bypassrls",
        "role authenticated",
        "attributes",
    ),
    Hole(
        "a role granted that row security does not bind",
        "grant service_role to authenticated",
        "role authenticated",
        "membership",
    ),
    Hole("a worker that logs in", "alter role rag_worker login", "role rag_worker", "attributes"),
    Hole(
        "no functions secret",
        "update rag.settings set functions_secret_hashes = '{}'",
        "rag.settings",
        "functions_secret_hashes",
    ),
    Hole(
        "guarded functions open to all callers",
        "update rag.settings set open_to_direct_callers = true",
        "rag.settings",
        "open_to_direct_callers",
    ),
    Hole(
        "a public bucket",
        "update storage.buckets set public = true where id = 'rag-originals'",
        "bucket rag-originals",
        "public",
    ),
    Hole(
        "a policy of Storage dropped",
        'drop policy "rag: an object is read by who reads its document" on storage.objects',
        'policy "rag: an object is read by who reads its document" on storage.objects',
        "existence",
    ),
    Hole(
        "Storage without row security",
        "alter table storage.objects disable row level security",
        "table storage.objects",
        "row security",
    ),
]


@pytest.fixture(scope="module")
def superuser(stack: Stack) -> Iterator[Connection]:
    with psycopg.connect(stack.database_url("supabase_admin")) as connection:
        yield connection


def test_a_database_of_the_release_has_no_difference(stack: Stack):
    report = verify_catalogue(stack.database_url())
    assert [str(finding) for finding in report.findings] == [], "run: make generated"


@pytest.mark.parametrize("part", range(PARTS))
def test_the_catalogue_finds_each_planted_hole(superuser: Connection, part: int, subtests: pytest.Subtests):
    for hole in HOLES[part::PARTS]:
        with subtests.test(hole=hole.name), superuser.transaction(force_rollback=True):
            superuser.execute(hole.plant.encode())
            findings = catalogue_findings(superuser)
            assert findings, hole
            assert any(
                finding.target.startswith(hole.target) and finding.attack == hole.attack
                for finding in findings
            ), findings


def test_a_hole_is_all_that_the_catalogue_reports(superuser: Connection):
    """The report names the planted hole, and nothing beside it."""
    with superuser.transaction(force_rollback=True):
        superuser.execute("alter table rag.chunks disable row level security")
        (finding,) = catalogue_findings(superuser)
    assert str(finding) == "table rag.chunks: row security: it is false, in the release true"


def test_an_adopters_membership_function_is_no_difference_if_it_is_declared(superuser: Connection):
    plant = (
        "create or replace function rag.memberships() returns table (org_id uuid, role text) language sql "
        "stable set search_path = '' as 'select null::uuid, null::text where false'"
    )
    with superuser.transaction(force_rollback=True):
        superuser.execute(plant.encode())
        assert [finding.target for finding in catalogue_findings(superuser)] == ["function rag.memberships()"]
        assert catalogue_findings(superuser, own_memberships=True) == []


def test_without_the_bucket_storage_is_no_difference(superuser: Connection):
    with superuser.transaction(force_rollback=True):
        superuser.execute("set local session_replication_role = replica")
        superuser.execute("set local storage.allow_delete_query = 'true'")
        superuser.execute("delete from storage.objects where bucket_id = 'rag-originals'")
        superuser.execute("delete from storage.buckets where id = 'rag-originals'")
        assert catalogue_findings(superuser) == []
