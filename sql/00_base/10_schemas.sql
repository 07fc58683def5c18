-- Schemas, extensions and the worker's role. `rag` holds tables and internal functions; PostgREST never exposes it. The
-- exposed functions are in `public`, named rag_*, so that they do not collide with those of an existing project. They
-- run as their caller, so row security applies everywhere.
--
-- pgvector lives in `extensions`, where hosted Supabase keeps it. Functions here set an empty search_path
-- and therefore spell its operators out: operator(extensions.<=>).

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
