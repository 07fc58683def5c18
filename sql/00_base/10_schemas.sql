-- Schemas, extensions and the worker's role. `rag` holds tables and internal functions; PostgREST never exposes it. The
-- exposed functions are in `public`, named rag_*, so that they do not collide with those of an existing project. They
-- run as their caller, so row security applies everywhere.
--
-- pgvector lives in `extensions`, where hosted Supabase keeps it. Functions here set an empty search_path
-- and therefore spell its operators out: operator(extensions.<=>).

-- First, so that a refusal leaves the database as it was.
do $$
declare
  vector record;
begin
  if current_setting('server_version_num')::integer < 150000 then
    raise exception 'Postgres 15 or newer is needed, and this server is %.', current_setting('server_version')
      using hint = 'Upgrade the project in its Settings, Infrastructure, then apply the migration again.';
  end if;
  select coalesce(extension.extversion, available.default_version) as version, extension.extnamespace::regnamespace as home
  into vector
  from pg_available_extensions as available
  left join pg_extension as extension on extension.extname = available.name
  where available.name = 'vector';
  if not coalesce(string_to_array(substring(vector.version from '^[0-9.]+'), '.')::integer[] >= '{0,8}', false) then
    raise exception 'pgvector 0.8 or newer is needed, and this database has %.', coalesce(vector.version, 'none')
      using hint = 'Run: alter extension vector update. If the version stays, upgrade the project in its Settings, '
        'Infrastructure, or install pgvector on your server.';
  elsif vector.home <> coalesce(to_regnamespace('extensions'), 0) then
    raise exception 'pgvector is in the schema %, and must be in the schema extensions.', vector.home
      using hint = 'Run: create schema if not exists extensions; alter extension vector set schema extensions. '
        'Functions of yours that name the former schema need the new one.';
  end if;
end;
$$;

create schema if not exists extensions;
create extension if not exists vector with schema extensions;

create schema rag;
revoke all on schema rag from public;
-- PostgREST calls rag.check_request as the role of each request. The grants of schema rag are in 99_grants.sql.
grant usage on schema rag to public;

-- The worker's role, without a login: PostgREST assumes it for a token that names it. Roles are cluster-wide.
do $$
begin
  create role rag_worker nologin noinherit;
exception when duplicate_object then null;
end;
$$;
grant rag_worker to authenticator;
