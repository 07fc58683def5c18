-- Two schemas share the work. `rag` holds tables and internals and is never exposed by PostgREST;
-- the whole exposed surface is a handful of functions in `public`, named rag_* so that they stay polite
-- inside somebody's existing project. They run as their caller, so row security decides everywhere.
--
-- pgvector lives in `extensions`, where hosted Supabase keeps it. Functions here set an empty search_path
-- and therefore spell its operators out: operator(extensions.<=>).

create schema if not exists extensions;
create extension if not exists vector with schema extensions;

create schema rag;
revoke all on schema rag from public;
grant usage on schema rag to authenticated;

-- The worker's role, without a login: PostgREST assumes it for a token that names it. Roles are cluster-wide.
do $$
begin
  create role rag_worker nologin noinherit;
exception when duplicate_object then null;
end;
$$;
grant rag_worker to authenticator;
grant usage on schema rag to rag_worker;

-- Whether a text holds only what its reader sees, besides tab and line feed: no control characters, no
-- zero-width or bidirectional controls, no tags. The functions clean texts before they store them; tables
-- check, because a member may also call the exposed functions directly.
create function rag.shows_only(content text)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select content !~ ('[\u0001-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e'
    || '\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]');
$$;

-- Whether this may be somebody's metadata: an object that readers in other languages can represent, neither
-- larger nor deeper than they like, nor with numbers longer than they know.
create function rag.is_metadata(value jsonb)
returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select jsonb_typeof(value) = 'object'
    and pg_column_size(value) <= 65536
    and not jsonb_path_exists(value, '$.**{32}')
    and value::text !~ '[0-9]{250}';
$$;

revoke all on function rag.shows_only(text), rag.is_metadata(jsonb) from public, anon, service_role;
grant execute on function rag.shows_only(text), rag.is_metadata(jsonb) to authenticated;
