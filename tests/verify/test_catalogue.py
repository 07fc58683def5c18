"""The catalogue part finds each of these holes, planted in a transaction, and names it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.errors import DuplicateFunction, DuplicateObject, DuplicateSchema, DuplicateTable

from local.stack import Stack
from verify.catalogue import catalogue_findings, functions_to_read
from verify.run import verify_catalogue

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]
EXCLUDING = (DuplicateFunction, DuplicateObject, DuplicateSchema, DuplicateTable)
REPLACED = "create or replace function {name} language sql stable set search_path = '' as $$ {body} $$"


@dataclass(frozen=True)
class Hole:
    """A statement that opens the database, and the object and property that a finding must name."""

    name: str
    plant: str
    target: str
    attack: str


HOLES = [
    Hole("row security off", "alter table rag.chunks disable row level security", "table rag.chunks",
         "row security"),
    Hole("row security not forced", "alter table rag.documents no force row level security",
         "table rag.documents", "row security forced"),
    Hole("a policy that admits everyone",
         'alter policy "members use their org\'s chunks" on rag.chunks using (true)',
         'policy "members use their org\'s chunks" on rag.chunks', "using"),
    Hole("a further permissive policy",
         "create policy planted on rag.documents for select to authenticated using (true)",
         'policy "planted" on rag.documents', "existence"),
    Hole("a policy for another role",
         'alter policy "members read their orgs, and invited users the org" on rag.orgs to public',
         'policy "members read their orgs, and invited users the org" on rag.orgs', "roles"),
    Hole("the policy of private documents dropped",
         "do $$ declare name text; begin select polname into strict name from pg_policy "
         "where polrelid = 'rag.documents'::regclass and polpermissive and polcmd = '*' "
         "and polroles = array['authenticated'::regrole::oid]; "
         "execute format('drop policy %I on rag.documents', name); end $$",
         'policy "members use their org\'s documents" on rag.documents', "existence"),
    Hole("a grant to anon", "grant select on rag.documents to anon", "table rag.documents", "grants"),
    Hole("a grant of one column", "grant update (scopes) on rag.api_keys to authenticated",
         "table rag.api_keys", "grants on column scopes"),
    Hole("a function of the worker that users execute",
         "grant execute on function rag.due_jobs(text, integer, uuid[]) to authenticated",
         "function rag.due_jobs(text,integer,uuid[])", "grants"),
    Hole("an exposed function as its owner",
         "alter function public.rag_delete_document(uuid) security definer",
         "function public.rag_delete_document(uuid)", "security"),
    Hole("a function without search_path",
         "alter function public.rag_delete_document(uuid) reset search_path",
         "function public.rag_delete_document(uuid)", "settings"),
    Hole("a function with another owner", "alter function rag.current_org_ids() owner to service_role",
         "function rag.current_org_ids()", "owner"),
    Hole("a membership function that admits everyone", REPLACED.format(
         name="public.is_org_member(org_id uuid) returns boolean", body="select auth.uid() is not null" ),
         "function public.is_org_member(uuid)", "body"),
    Hole("scopes of keys ignored",
         REPLACED.format(name="rag.has_scope(variadic scopes text[]) returns boolean", body="select true"),
         "function rag.has_scope(text[])", "body"),
    Hole("a function that the planner may call before the policies",
         "alter function rag.is_visible_text(text) leakproof", "function rag.is_visible_text(text)",
         "leakproof"),
    Hole("a further exposed function as its owner",
         "create function public.rag_planted(document_id uuid) returns text language sql security definer "
         "set search_path = '' as 'select content from rag.documents where id = document_id'",
         "function public.rag_planted(uuid)", "existence"),
    Hole("a function of the adopter's that reads as its owner",
         "create function public.titles() returns setof text language sql security definer "
         "set search_path = '' as 'select title from rag.documents'; "
         "grant execute on function public.titles() to authenticated", "function public.titles()",
         "security definer"),
    Hole("a function of the adopter's that calls an exposed function as its owner",
         "create function public.names() returns setof text language sql security definer "
         "set search_path = '' as 'SELECT name FROM public.RAG_LIST_NAMES() AS name'; "
         "grant execute on function public.names() to authenticated", "function public.names()",
         "security definer"),
    Hole("a function of the adopter's that changes the tier of an org that exists",
         "create function public.set_tier(org uuid, tier text) returns void language sql security definer "
         "set search_path = '' as 'insert into rag.orgs (id, name, tier) values (org, tier, tier) "
         "on conflict (id) do update set tier = excluded.tier'; "
         "grant execute on function public.set_tier(uuid, text) to authenticated",
         "function public.set_tier(uuid,text)", "security definer"),
    Hole("a parent table that reads the release's rows",
         "create table public.titles (title text); alter table rag.documents inherit public.titles",
         "table rag.documents", "inheritance"),
    Hole("a search_path of a role",
         "create schema planted; alter role authenticated set search_path = planted, public",
         "role authenticated", "search_path"),
    Hole("another role for requests without a token",
         "alter role authenticator set pgrst.db_anon_role = 'service_role'", "PostgREST",
         "pgrst.db_anon_role"),
    Hole("a view that reads as its owner", "create view public.titles as select title from rag.documents",
         "view public.titles", "security_invoker"),
    Hole("a trigger that copies rows",
         "create table public.copies (row jsonb); create function public.copy() returns trigger "
         "language plpgsql as 'begin insert into public.copies values (to_jsonb(new)); return new; end'; "
         "create trigger copies after insert on rag.documents for each row execute function public.copy()",
         "trigger copies on rag.documents", "existence"),
    Hole("a foreign key between orgs",
         "alter table rag.chunks drop constraint chunks_org_id_document_id_fkey",
         "constraint chunks_org_id_document_id_fkey on rag.chunks", "existence"),
    Hole("a table of the release published to Realtime", "create publication planted for table rag.documents",
         "publication planted", "tables"),
    Hole("schema rag exposed", "alter role authenticator set pgrst.db_schemas = 'public, rag'", "PostgREST",
         "pgrst.db_schemas"),
    Hole("no pre-request function for this database",
         "do $$ begin execute format('alter role authenticator in database %I set pgrst.db_pre_request = "
         "%L', current_database(), 'public.other'); end $$", "PostgREST", "pgrst.db_pre_request"),
    Hole("no pre-request function", "alter role authenticator reset pgrst.db_pre_request", "PostgREST",
         "pgrst.db_pre_request"),
    Hole("schema rag open to anon", "grant create on schema rag to anon", "schema rag", "grants"),
    Hole("a schema of the search path that users write to",
         "grant create on schema extensions to authenticated", "schema extensions", "privileges"),
    Hole("default privileges",
         "alter default privileges in schema rag grant select on tables to authenticated", "schema rag",
         "default privileges"),
    Hole("a role that row security does not bind", "alter role authenticated bypassrls", "role authenticated",
         "attributes"),
    Hole("a role granted that row security does not bind", "grant service_role to authenticated",
         "role authenticated", "membership"),
    Hole("no functions secret", "update rag.settings set functions_secret_hashes = '{}'", "rag.settings",
         "functions_secret_hashes"),
    Hole("guarded functions open to all callers", "update rag.settings set open_to_direct_callers = true",
         "rag.settings", "open_to_direct_callers"),
    Hole("a trigger of an own table that reads as its owner",
         "create table public.orders (id uuid, chunks text); create function public.copy() returns trigger "
         "language plpgsql security definer set search_path = '' as "
         "'begin new.chunks = (select string_agg(content, null) from rag.chunks); return new; end'; "
         "create trigger copy before insert on public.orders for each row execute function public.copy(); "
         "revoke all on function public.copy() from public, anon, authenticated", "function public.copy()",
         "security definer"),
    Hole("a trigger of users that adds members",
         "create function public.handle_new_user() returns trigger language plpgsql security definer as "
         "'begin insert into rag.members select id, new.id from rag.orgs; return new; end'; "
         "create trigger handle_new_user after insert on auth.users for each row "
         "execute function public.handle_new_user(); "
         "revoke all on function public.handle_new_user() from public, anon, authenticated",
         "function public.handle_new_user()", "security definer"),
    Hole("a trigger in place of the writes to a view",
         "create view public.joins with (security_invoker) as select null::uuid as org_id; "
         "create function public.enter() returns trigger language plpgsql security definer as "
         "'begin insert into rag.members values (new.org_id, auth.uid()); return new; end'; "
         "create trigger enter instead of insert on public.joins for each row "
         "execute function public.enter(); "
         "revoke all on function public.enter() from public, anon, authenticated", "function public.enter()",
         "security definer"),
    Hole("a trigger as its caller that a cascade runs as the owner",
         "create table public.teams (id uuid primary key); create table public.orders "
         "(team_id uuid references public.teams on delete cascade); create function public.copy() "
         "returns trigger language plpgsql as 'begin delete from rag.members; return old; end'; "
         "create trigger copy before delete on public.orders for each row execute function public.copy()",
         "function public.copy()", "trigger of a cascade"),
    Hole("a function that builds the name of a table",
         "create function public.rows(name text) returns setof text language plpgsql security definer as "
         "$$ begin return query execute format('select t::text from %I.documents t', 'r' || name); end $$",
         "function public.rows(text)", "security definer"),
    Hole("a function that runs a text without EXECUTE",
         "create function public.rows(name text) returns xml language sql security definer as "
         "$$ select query_to_xml('table ra' || name, true, true, '') $$", "function public.rows(text)",
         "security definer"),
    Hole("a function with an escaped name",
         "create function public.rows() returns setof text language sql security definer as "
         """$$ select content from U&"r\\0061g".chunks $$""", "function public.rows()", "security definer"),
    Hole("a function that calls one that reads",
         "create schema private; create function private.read() returns setof text language sql as "
         "'select content from rag.chunks'; revoke all on function private.read() from public; "
         "create function public.rows() returns setof text language sql security definer as "
         "'select * from private.read()'", "function public.rows()", "security definer"),
    Hole("a function that reads a view of the caller's rows as its owner",
         "create view public.titles with (security_invoker) as select title from rag.documents; "
         "create function public.rows() returns setof text language sql security definer as "
         "'select title from public.titles'", "function public.rows()", "security definer"),
    Hole("a function that writes to a table whose trigger reads",
         "create table public.orders (chunks text); create function public.copy() returns trigger "
         "language plpgsql as 'begin new.chunks = (select max(content) from rag.chunks); return new; end'; "
         "create trigger copy before insert on public.orders for each row execute function public.copy(); "
         "create function public.order() returns void language sql security definer as "
         "'insert into public.orders default values'", 'function public."order"()', "security definer"),
    Hole("a function that sets any setting for its caller",
         "create function public.set_config(name text, value text) returns text language sql as "
         "'select pg_catalog.set_config(name, value, false)'", "function public.set_config(text,text)",
         "claims"),
    Hole("a function that takes the user from its caller",
         "create function public.act_as(user_id uuid) returns void language plpgsql as $$ begin perform "
         "set_config('request.jwt.claims', json_build_object('sub', user_id)::text, true); end $$",
         "function public.act_as(uuid)", "claims"),
    Hole("a function that runs its caller's text",
         "create function public.exec_sql(query text) returns void language plpgsql as "
         "'begin execute query; end'", "function public.exec_sql(text)", "claims"),
    Hole("a materialized view of a view",
         "create view public.titles with (security_invoker) as select title from rag.documents; "
         "create materialized view public.stored as select * from public.titles",
         "materialized view public.stored", "security_invoker"),
    Hole("a materialized view of a function",
         "create function public.read() returns setof text language sql as 'select content from rag.chunks'; "
         "create materialized view public.stored as select * from public.read()",
         "materialized view public.stored", "functions"),
    Hole("a rule that copies rows",
         "create table public.orders (title text); create table public.copies (title text); "
         "create rule copy as on insert to public.orders do also "
         "insert into public.copies select title from rag.documents", "rule of public.orders",
         "security_invoker"),
    Hole("a user who is named by a header",
         "create or replace function auth.uid() returns uuid language sql stable as "
         "$$ select coalesce(nullif(current_setting('request.headers', true), '')::jsonb ->> 'x-user', "
         "current_setting('request.jwt.claims', true)::jsonb ->> 'sub')::uuid $$", "function auth.uid()",
         "body"),
    Hole("claims without those of a key",
         "create or replace function auth.jwt() returns jsonb language sql stable as "
         "$$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb - 'rag' $$",
         "function auth.jwt()", "body"),
    Hole("claims that the function itself sets",
         "alter function auth.uid() set request.jwt.claim.sub = '00000000-0000-0000-0000-000000000001'",
         "function auth.uid()", "body"),
    Hole("a function among Supabase's own that reads",
         "create function storage.rows() returns setof text language sql security definer as "
         "'select content from rag.chunks'", "function storage.rows()", "security definer"),
    Hole("the same user in all sessions of a role",
         "alter role authenticated set request.jwt.claim.sub = '00000000-0000-0000-0000-000000000001'",
         "role authenticated", "request.jwt.claim.sub"),
    Hole("sessions without triggers", "alter role authenticator set session_replication_role = replica",
         "role authenticator", "session_replication_role"),
    Hole("plans of queries", "alter role authenticator set pgrst.db_plan_enabled = 'true'", "PostgREST",
         "pgrst.db_plan_enabled"),
    Hole("tokens signed with another secret", "alter role authenticator set pgrst.jwt_secret = 'x'",
         "PostgREST", "pgrst.jwt_secret"),
    Hole("a role that users' metadata names",
         "alter role authenticator set pgrst.jwt_role_claim_key = '.user_metadata.role'", "PostgREST",
         "pgrst.jwt_role_claim_key"),
    Hole("the same user in all sessions of the database",
         "do $$ begin execute format('alter database %I set request.jwt.claim.sub = %L', "
         "current_database(), '00000000-0000-0000-0000-000000000001'); end $$", "database",
         "request.jwt.claim.sub"),
    Hole("a second functions secret",
         "update rag.settings set functions_secret_hashes = functions_secret_hashes || repeat('0', 64)",
         "rag.settings", "functions_secret_hashes"),
    Hole("a function that reads the statistics of columns",
         "create function public.rows() returns setof text language sql security definer as $$ select "
         "most_common_vals::text from pg_stats $$", "function public.rows()", "security definer"),
    Hole("an aggregate whose function users may not execute",
         "create function public.add(text, integer) returns text language sql security definer as "
         "'select max(content) from rag.chunks'; revoke all on function public.add(text, integer) "
         "from public, anon, authenticated; create aggregate public.all_texts(integer) (sfunc = "
         "public.add, stype = text)", "function public.add(text,integer)", "security definer"),
    Hole("a function that runs as the worker",
         "create function public.due() returns setof text language sql set role = rag_worker as "
         "'select address from rag.sources'", "function public.due()", "claims"),
    Hole("a function that changes to the worker's role",
         "create function public.due() returns void language plpgsql as $$ begin perform "
         "set_config('role', 'rag_worker', true); end $$", "function public.due()", "claims"),
    Hole("a function that sets the worker's role",
         "create function public.due() returns void language plpgsql as 'begin set local role "
         "rag_worker; end'", "function public.due()", "claims"),
    Hole("a table whose rows are also rows of the release's",
         "create table public.archive () inherits (rag.documents)", "table public.archive", "inheritance"),
    Hole("a user that each login sets",
         "create function public.at_login() returns event_trigger language plpgsql as $$ begin "
         "perform set_config('request.jwt.claim.sub', '00000000-0000-0000-0000-000000000001', false); "
         "end $$; create event trigger at_login on login execute function public.at_login()",
         "function public.at_login()", "claims"),
    Hole("an event trigger that grants the release's tables",
         "create function public.share() returns event_trigger language plpgsql as 'begin grant "
         "select on all tables in schema rag to anon; end'; create event trigger share on "
         "ddl_command_end when tag in ('CREATE TABLE') execute function public.share()",
         "function public.share()", "event trigger"),
    Hole("a bucket that users may change",
         'drop policy "rag: no user changes the bucket of originals" on storage.buckets',
         'policy "rag: no user changes the bucket of originals" on storage.buckets', "existence"),
    Hole("a view of Storage's objects", "create view public.files as select * from storage.objects",
         "view public.files", "security_invoker"),
    Hole("a function that makes any bucket public",
         "create function public.share(bucket text) returns void language sql security definer as "
         "'update storage.buckets set public = true where id = bucket'", "function public.share(text)",
         "security definer"),
    Hole("a function that shows any secret",
         "create schema vault; create table vault.secrets (name text, secret text); "
         "create function public.secret(named text) returns text language sql security definer as "
         "'select secret from vault.secrets where name = named'", "function public.secret(text)",
         "security definer"),
    Hole("a function that deletes any user",
         "create function public.remove(user_id uuid) returns void language sql security definer as "
         "'delete from auth.users where id = user_id'", "function public.remove(uuid)", "security definer"),
    Hole("a view of users with Supabase's default privileges",
         "set local role postgres; create view public.users as select id, email from auth.users; reset role",
         "view public.users", "security_invoker"),
    Hole("a function of the adopter's that the planner may call before the policies",
         "create function public.peek(text) returns boolean language plpgsql leakproof as $$ begin "
         "raise '%', $1; end $$", "function public.peek(text)", "leakproof"),
    Hole("a function that calls one in the notation of a column",
         "create table public.orders (id integer); create function public.chunks(public.orders) "
         "returns text language sql as 'select max(content) from rag.chunks'; create function "
         "public.rows() returns setof text language sql security definer as $$ select o.chunks from "
         "public.orders o $$", "function public.rows()", "security definer"),
    Hole("a function that reads a view of an exposed function",
         "create view public.titles with (security_invoker) as select public.rag_list_names()::text "
         "as title; create function public.rows() returns setof text language sql security definer as "
         "$$ select title from public.titles $$", "function public.rows()", "security definer"),
    Hole("a function with a cast that reads",
         "create type public.peek as (content text); create function public.peek(integer) returns "
         "public.peek language sql as 'select row(max(content))::public.peek from rag.chunks'; create "
         "cast (integer as public.peek) with function public.peek(integer); create function "
         "public.rows() returns setof text language sql security definer as $$ select "
         "(1::public.peek).content $$", "function public.rows()", "security definer"),
    Hole("a function with an operator that reads",
         "create function public.read(integer, integer) returns text language sql as 'select "
         "max(content) from rag.chunks'; create operator public.@@@ (leftarg = integer, rightarg = "
         "integer, function = public.read); create function public.rows() returns setof text language "
         "sql security definer as $$ select 1 operator(public.@@@) 2 $$", "function public.rows()",
         "security definer"),
    Hole("a function with a column default that reads",
         "create function public.read() returns text language sql as 'select max(content) from "
         "rag.chunks'; create table public.orders (id integer, chunk text default public.read()); "
         "create function public.rows() returns setof text language sql security definer as $$ insert "
         "into public.orders values (1) returning chunk $$", "function public.rows()", "security definer"),
    Hole("a function with a domain that reads",
         "create function public.is_known(uuid) returns boolean language sql as 'select exists "
         "(select from rag.documents where id = $1)'; create domain public.known_id as uuid check "
         "(public.is_known(value)); create function public.is_document(id uuid) returns boolean "
         "language plpgsql security definer as 'begin perform id::public.known_id; return true; end'",
         "function public.is_document(uuid)", "security definer"),
    Hole("a function that shows a secret setting",
         "alter role authenticator set app.jwt_secret = 'x'; create function public.setting(name "
         "text) returns text language sql as 'select current_setting(name)'", "function public.setting(text)",
         "settings"),
    Hole("a role of its own that sets claims", "create role planted login in role authenticated",
         "role planted", "membership"),
    Hole("a public bucket", "update storage.buckets set public = true where id = 'rag-originals'",
         "bucket rag-originals", "public"),
    Hole("Storage without row security", "alter table storage.objects disable row level security",
         "table storage.objects", "row security"),
    *(
        Hole(f"a statement of the caller: {statement}",
             "create function public.planted(q text) returns setof text language plpgsql as "
             f"$f$ declare t text = q; begin {statement} end $f$", "function public.planted(text)", "claims")
        for statement in (
            "return query execute 'select name from rag.orgs where ' || q;",
            "execute format('select %s', q) into t; return next t;",
            "execute format('select %L, %s', q, q) into t; return next t;",
            "for t in execute t loop return next t; end loop;",
            "select t into t; return query execute t;",
            "return query select word from ts_stat(q);",
        )
    ),
    Hole("a function of Postgres' own under another name",
         "create function public.planted(text, text, boolean) returns text language internal as "
         "'set_config_by_name'", "function public.planted(text,text,boolean)", "claims"),
    *(
        Hole(f"rows that leave by {name}",
             "create function public.planted_copy(t text) returns boolean language plpgsql immutable as "
             f"'begin return true; end'; {plant}", target, "functions")
        for name, plant, target in (
            ("an index", "create index planted on rag.messages (public.planted_copy(content))",
             "index rag.planted"),
            ("its condition", "create index planted on rag.messages (id) where public.planted_copy(content)",
             "index rag.planted"),
            ("statistics",
             "create statistics rag.planted on (public.planted_copy(content)) from rag.documents",
             "statistics object rag.planted"),
        )
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def superuser(stack: Stack) -> Iterator[Connection]:
    with psycopg.connect(stack.database_url("supabase_admin")) as connection:
        yield connection


def test_a_database_of_the_release_has_no_difference(stack: Stack):
    report = verify_catalogue(stack.database_url())
    assert [str(finding) for finding in report.findings] == [], "run: make generated"


def test_the_catalogue_finds_each_planted_hole(superuser: Connection):
    """A round plants all holes that exclude none of the others: by a name that both use, or by a finding that
    either would make."""
    waiting = HOLES
    if superuser.info.server_version < 170000:
        # Postgres 17 introduced this event.
        waiting = [hole for hole in HOLES if "on login" not in hole.plant]
    while waiting:
        with superuser.transaction(force_rollback=True):
            planted: list[Hole] = []
            for hole in waiting:
                if all((hole.target, hole.attack) != (other.target, other.attack) for other in planted):
                    with suppress(*EXCLUDING), superuser.transaction():
                        superuser.execute(hole.plant.encode())
                        planted.append(hole)
            findings = catalogue_findings(superuser)
        missed = [
            hole.name
            for hole in planted
            if not any(
                finding.target.startswith(hole.target) and finding.attack == hole.attack
                for finding in findings
            )
        ]
        assert missed == [], findings
        assert planted
        waiting = [hole for hole in waiting if hole not in planted]


def test_a_hole_is_all_that_the_catalogue_reports(superuser: Connection):
    with superuser.transaction(force_rollback=True):
        superuser.execute("alter table rag.chunks disable row level security")
        (finding,) = catalogue_findings(superuser)
    assert str(finding) == "table rag.chunks: row security: it is false, in the release true"


# What projects of Supabase have: functions of the platform (supabase/postgres, migrations), and the usual
# ones of an adopter, with the trigger of docs/own-members.md that adds the org of a team.
USUAL = """
create function public.count_of(kind text, part text) returns bigint language plpgsql as $f$
declare n bigint; begin
  execute format('select count(*) from public.%I where kind = %L', kind, part) into n;
  execute 'select count(*) from public.' || quote_ident(kind) || ' where kind = $1' into n using part;
  execute 'select 1' into n; execute $q$ select 'a' || 'b' $q$ into part; return n; end $f$;
create schema pgbouncer; create schema realtime; create schema supabase_functions;
create schema vault authorization postgres;
create role supabase_functions_admin createrole;
create function pgbouncer.get_auth(usename text) returns text language plpgsql security definer as
  'begin return (select passwd from pg_shadow limit 1); end';
create function realtime.send(payload jsonb, topic text) returns void language plpgsql security definer as
  $$ begin execute format('set local realtime.topic to %L', topic); end $$;
create function realtime.apply_rls(claims jsonb) returns void language plpgsql as
  $$ begin perform set_config('request.jwt.claims', claims::text, true); end $$;
create function supabase_functions.http_request() returns trigger language plpgsql security definer as
  'begin execute tg_argv[0]; return new; end';
alter function supabase_functions.http_request() owner to supabase_functions_admin;
alter role authenticator set session_preload_libraries = 'supautils', 'safeupdate';
alter role authenticator set statement_timeout = '8s';
alter role authenticator set lock_timeout = '8s';
alter role authenticator set pgrst.db_schemas = 'public, graphql_public, api';
alter role authenticator set pgrst.db_max_rows = '1000';
alter role authenticator set pgrst.db_aggregates_enabled = 'true';
alter role authenticator set pgrst.db_extra_search_path = 'public, extensions';
alter role authenticated set idle_in_transaction_session_timeout = '10s';
alter role authenticated set pgaudit.log = 'write';
do $$ begin
  execute format('alter database %I set app.settings.jwt_secret = %L', current_database(), 'x');
  execute format('alter database %I set timezone = utc', current_database());
  execute format('alter database %I set random_page_cost = 1.1', current_database());
end $$;
set local role postgres;
create table public.profiles (id uuid primary key, email text);
create table public.teams (id uuid primary key, name text);
create table public.team_members (
  team_id uuid references public.teams on delete cascade, user_id uuid, role text);
create function public.handle_new_user() returns trigger language plpgsql security definer as
  'begin insert into public.profiles values (new.id, new.email); return new; end';
create trigger handle_new_user after insert on auth.users
  for each row execute function public.handle_new_user();
create function public.create_org() returns trigger language plpgsql security definer as
  'begin insert into rag.orgs (id, name) values (new.id, new.name); return new; end';
create trigger create_org after insert on public.teams for each row execute function public.create_org();
create function public.is_team_member(team uuid) returns boolean language sql security definer as
  'select exists (select from public.team_members where team_id = team and user_id = auth.uid())';
create function public.create_team(name text) returns uuid language sql security definer as
  $$ with team as (insert into public.teams values (gen_random_uuid(), name) returning id)
  insert into public.team_members select id, auth.uid() from team returning team_id $$;
create function public.touch() returns trigger language plpgsql as 'begin return new; end';
create trigger touch before update on public.team_members for each row execute function public.touch();
create function public.search(word text) returns setof json language plpgsql set search_path = '' as
  $$ begin perform set_config('app.word', word, true);
  return query execute format('select to_json(t) from public.%I t', word); end $$;
create function public.set_role(person uuid, new_role text) returns void language sql as
  'update public.team_members set role = new_role where user_id = person';
create function public.delete_account() returns void language sql security definer as
  'delete from auth.users where id = (select auth.uid())';
create function public.delete_user() returns trigger language plpgsql security definer as
  'begin delete from auth.users where id = old.id; return old; end';
create trigger delete_user after delete on public.profiles for each row execute function public.delete_user();
create table vault.secrets (name text, secret text);
create function public.notify() returns text language sql security definer as
  $$ select secret from vault.secrets where name = 'hook' $$;
create function public.avatars() returns setof text language sql security definer as
  $$ select name from storage.objects where bucket_id = 'avatars' $$;
create view public.avatar_files as select name from storage.objects where bucket_id = 'avatars';
create policy "users manage buckets" on storage.buckets for all to authenticated using (true);
create view public.members as
  select users.email, team_id from auth.users join public.team_members on user_id = users.id;
create function public.add(integer, integer) returns integer language sql as 'select $1 + $2';
create aggregate public.total(integer) (sfunc = public.add, stype = integer, initcond = '0');
create domain public.email as text check (value ~ '@');
create function public.team_size() returns bigint language sql security definer as
  'select public.total(1) from public.team_members';
create function public.enable_row_security() returns event_trigger language plpgsql security definer as
  $$ begin execute format('alter table %s enable row level security', 'public.teams'); end $$;
create function public.nearest(question extensions.vector) returns setof jsonb language sql as
  $$ select to_jsonb(r) from public.rag_match(question, 5, '{}') r $$;
reset role;
create event trigger enable_row_security on ddl_command_end when tag in ('CREATE TABLE')
  execute function public.enable_row_security();
"""


def test_what_a_project_usually_has_is_no_difference(superuser: Connection):
    """Definer functions that run past row security are listed, and a person reads them."""
    with superuser.transaction(force_rollback=True):
        superuser.execute(USUAL.encode())
        assert [str(finding) for finding in catalogue_findings(superuser)] == []
        assert {finding.target for finding in functions_to_read(superuser)} == {
            "function public.avatars()",
            "function public.create_org()",
            "function public.create_team(text)",
            "function public.delete_account()",
            "function public.delete_user()",
            "function public.enable_row_security()",
            "function public.handle_new_user()",
            "function public.is_team_member(uuid)",
            "function public.notify()",
            "function public.team_size()",
        }


@pytest.mark.parametrize(
    "body",
    [
        "nullif(current_setting('request.jwt.claim.sub', true), '')::uuid;",
        "coalesce(current_setting('request.jwt.claim.sub', true), "
        "(current_setting('request.jwt.claims', true)::jsonb ->> 'sub'))::uuid",
        "nullif(coalesce(current_setting('request.jwt.claim.sub', true), "
        "(current_setting('request.jwt.claims', true)::jsonb ->> 'sub')), '')::uuid",
        "coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''), "
        "(nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'))::uuid",
    ],
)
def test_the_versions_of_supabase_auth_are_no_difference(superuser: Connection, body: str):
    """Of its migrations 00, 20211124214934, 20211202183645 and 20220224000811."""
    with superuser.transaction(force_rollback=True):
        superuser.execute(
            "create or replace function auth.uid() returns uuid language sql stable as "
            f"$$\n select {body}\n$$".encode()
        )
        assert catalogue_findings(superuser) == []


def test_an_adopters_membership_function_is_no_difference_if_it_is_declared(superuser: Connection):
    plant = (
        "create or replace function rag.memberships() returns table (org_id uuid, role text) language sql "
        "stable set search_path = '' as 'select null::uuid, null::text where false'"
    )
    with superuser.transaction(force_rollback=True):
        superuser.execute(plant.encode())
        assert [finding.target for finding in catalogue_findings(superuser)] == ["function rag.memberships()"]
        assert catalogue_findings(superuser, own_memberships=True) == []


def test_an_adopters_auth_uid_is_a_difference_if_third_party_issuers_are_listed(superuser: Connection):
    plant = (
        "create or replace function rag.memberships() returns table (org_id uuid, role text) language sql "
        "stable set search_path = '' as 'select null::uuid, null::text where auth.uid() is null'; "
        "create or replace function rag.org_members(org_ids uuid[]) returns table "
        "(org_id uuid, user_id uuid, role text, name text, created_at timestamptz) language sql stable set "
        "search_path = '' as 'select null::uuid, \"auth\".uid(), null::text, null::text, null::timestamptz'"
    )
    with superuser.transaction(force_rollback=True):
        superuser.execute(plant.encode())
        assert catalogue_findings(superuser, own_memberships=True) == []
        superuser.execute(
            "update rag.settings set issuer = 'https://ref.supabase.co/auth/v1', "
            """third_party_issuers = '{"https://app.clerk.example": null}'"""
        )
        findings = catalogue_findings(superuser, own_memberships=True)
    targets = ["function rag.memberships()", "function rag.org_members(uuid[])"]
    assert [(finding.target, finding.attack) for finding in findings] == [(t, "auth.uid()") for t in targets]


def test_without_the_bucket_storage_is_no_difference(superuser: Connection):
    with superuser.transaction(force_rollback=True):
        superuser.execute("set local session_replication_role = replica")
        superuser.execute("set local storage.allow_delete_query = 'true'")
        superuser.execute("delete from storage.objects where bucket_id = 'rag-originals'")
        superuser.execute("delete from storage.buckets where id = 'rag-originals'")
        assert catalogue_findings(superuser) == []
