-- What an org's administrators are told of it: how much there is, and whether the database is as it should be.

-- How many there are in the orgs that the caller administers. Of each table at most so many rows are counted;
-- is_complete says whether that was enough. total_users: who has ever called. Entities are distinct names, by
-- org, relationships distinct statements. Of a key that is bound to a collection that is all it is told of: neither
-- users nor calls. PT403 for who administers none.
create function public.rag_stats(most integer default 500000)
returns table (
  total_users bigint, total_collections bigint, total_documents bigint, total_chunks bigint, total_entities bigint,
  total_relationships bigint, storage_used_bytes bigint, api_calls_today bigint, is_complete boolean
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  own constant uuid[] := array(select rag.admin_org_ids());
  counted bigint[];
begin
  if cardinality(own) = 0 then
    raise exception 'only an admin of the org, with a key that has the scope admin, may see this'
      using errcode = 'PT403', detail = 'admin_required';
  elsif coalesce(most, 0) not between 1 and 500000 then
    raise exception 'most must be between 1 and 500000' using errcode = 'PT400', detail = 'invalid_most';
  end if;

  -- A user of several of these orgs is one.
  select count(distinct calls.owner_id),
    coalesce(sum(calls.total) filter (where calls.day = (now() at time zone 'UTC')::date), 0)
  into total_users, api_calls_today
  from rag.calls
  where calls.org_id = any (own) and (select rag.bound_collection()) is null;

  select count(*) into total_collections
  from (select from rag.collections where collections.org_id = any (own) limit most) as found;

  -- Sizes are read from where values begin, and not the values.
  select count(*), coalesce(sum(found.bytes), 0) into total_documents, storage_used_bytes
  from (
    select octet_length(documents.content) + coalesce(octet_length(originals.bytes),
      case when originals.path is not null then documents.size_bytes end, 0)::bigint as bytes
    from rag.documents
    left join rag.originals on originals.org_id = documents.org_id and originals.document_id = documents.id
    where documents.org_id = any (own)
    limit most
  ) as found;

  select count(*) into total_chunks
  from (select from rag.chunks where chunks.org_id = any (own) limit most) as found;

  with named as materialized (
    select mentions.org_id, mentions.entity from rag.mentions where mentions.org_id = any (own) limit most
  ), titled as materialized (
    select subjects.org_id, subjects.entity from rag.subjects where subjects.org_id = any (own) limit most
  )
  select array[(select count(*) from named), (select count(*) from titled)],
    (select count(*) from (select * from named union select * from titled) as either)
  into counted, total_entities;

  with stated as materialized (
    select relations.org_id, relations.subject, relations.type, relations.object
    from rag.relations where relations.org_id = any (own) limit most
  )
  select counted || (select count(*) from stated), (select count(*) from (select distinct * from stated) as one)
  into counted, total_relationships;

  is_complete := most > all (counted || array[total_collections, total_documents, total_chunks]);
  return next;
end;
$$;

-- The newest migration that this database has: the functions' code says which one it was written for.
create function rag.version()
returns text
language sql immutable security invoker set search_path = ''
as $$
  select '20261127000000';
$$;

-- What the database knows of itself, and of the documents that wait for the worker: of the orgs that the caller
-- administers, or, for the worker, of all; nothing for everybody else. oldest_seconds: how long the one has been due that
-- is due longest, which may be running under a lease that has ended.
create function public.rag_health()
returns table (
  version text, pgvector text, postgres text, is_admin boolean, waiting bigint, running bigint,
  oldest_seconds double precision
)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- The worker's role is nobody's, and knows no orgs.
  is_worker constant boolean := current_user = 'rag_worker';
  own uuid[] := '{}';
begin
  if not is_worker then
    own := array(select rag.admin_org_ids());
  end if;
  is_admin := cardinality(own) > 0;
  if is_admin or is_worker then
    version := rag.version();
    pgvector := (select extversion from pg_catalog.pg_extension where extname = 'vector');
    postgres := current_setting('server_version');
    select count(*) filter (where jobs.state = 'waiting'), count(*) filter (where jobs.state = 'running'),
      extract(epoch from now() - min(jobs.due_at) filter (where jobs.due_at <= now()))
    into waiting, running, oldest_seconds
    from rag.jobs
    where jobs.state in ('waiting', 'running') and (is_worker or jobs.org_id = any (own));
  end if;
  return next;
end;
$$;

revoke all on function public.rag_stats(integer), rag.version(), public.rag_health() from public, anon, service_role;
grant execute on function public.rag_stats(integer), rag.version(), public.rag_health() to authenticated;
-- It looks for the open /health of the functions, which know no user.
grant execute on function rag.version(), public.rag_health() to rag_worker;
