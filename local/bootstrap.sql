-- What hosted Supabase has and a bare Postgres lacks, strictness included. Run as the superuser on every
-- database of the local stack, before any migration; never a migration itself. Safe to run again.
-- The password of every role that logs in comes from PGPASSWORD.
\getenv password PGPASSWORD

-- Roles are cluster-wide: made with the first database, found by the others. ------------------------
select not exists (select from pg_roles where rolname = 'authenticator') as fresh_cluster \gset
\if :fresh_cluster
  -- Hosted postgres is no superuser, but no row security binds it.
  create role postgres login createdb createrole replication bypassrls password :'password';
  create role anon nologin noinherit;
  create role authenticated nologin noinherit;
  create role service_role nologin noinherit bypassrls;
  create role authenticator login noinherit password :'password';
  grant anon, authenticated, service_role to authenticator;
  grant anon, authenticated, service_role, authenticator to postgres with admin option;
  alter role anon set statement_timeout = '3s';
  alter role authenticated set statement_timeout = '8s';
  alter role authenticator set statement_timeout = '8s';
\endif

-- PostgREST reads this setting at its start, after the migrations (docs/install.md).
select not exists (
  select from pg_db_role_setting
  where setrole = 'authenticator'::regrole and 'pgrst.db_pre_request=rag.check_request' = any (setconfig)
) as without_pre_request \gset
\if :without_pre_request
  alter role authenticator set pgrst.db_pre_request = 'rag.check_request';
\endif

select format('alter database %I owner to postgres', current_database()) \gexec

-- Extensions: pgvector is not marked trusted, so only a superuser may create it; the migration's
-- "if not exists" then finds it in place. -------------------------------------------------------------
create schema if not exists extensions authorization postgres;
create extension if not exists vector with schema extensions;
grant usage on schema extensions to anon, authenticated, service_role;

-- Hosted projects grant new objects of public to the API roles; a migration has to revoke. --------------
grant usage on schema public to anon, authenticated, service_role;
grant all on schema public to postgres;
alter default privileges for role postgres in schema public
  grant execute on functions to anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on tables to anon, authenticated, service_role;

-- auth: the claims that PostgREST sets for the transaction, and the users. ------------------------------
create schema if not exists auth;
grant usage on schema auth to anon, authenticated, service_role, postgres;

create table if not exists auth.users (
  id uuid primary key default gen_random_uuid(),
  email text unique,
  created_at timestamptz not null default now()
);
grant select, insert, update, delete, references, trigger on auth.users to postgres;

create or replace function auth.jwt() returns jsonb language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')
  )::jsonb;
$$;

create or replace function auth.uid() returns uuid language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
  )::uuid;
$$;

create or replace function auth.role() returns text language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.role', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
  );
$$;

-- storage: the two tables of Supabase Storage whose row security decides what its server does for a caller. -----------
create schema if not exists storage;
grant usage on schema storage to anon, authenticated, service_role, postgres;

create table if not exists storage.buckets (
  id text primary key,
  name text not null unique,
  owner uuid,
  owner_id text,
  public boolean default false,
  file_size_limit bigint,
  allowed_mime_types text[],
  created_at timestamptz default now(),
  updated_at timestamptz default now()
);

create table if not exists storage.objects (
  id uuid primary key default gen_random_uuid(),
  bucket_id text references storage.buckets (id),
  name text,
  owner uuid,
  owner_id text,
  version text,
  metadata jsonb,
  user_metadata jsonb,
  created_at timestamptz default now(),
  updated_at timestamptz default now(),
  last_accessed_at timestamptz default now()
);
create unique index if not exists bucketid_objname on storage.objects (bucket_id, name);

-- Hosted, they are supabase_storage_admin's, and postgres may write their policies all the same; here it owns them.
alter table storage.buckets owner to postgres;
alter table storage.objects owner to postgres;
alter table storage.buckets enable row level security;
alter table storage.objects enable row level security;
grant all on storage.buckets, storage.objects to anon, authenticated, service_role;
