-- Statistics for an org's admins, the schema's version, and the state of the queues for health checks.

create function public.rag_stats(most integer default 500000)
returns table (
  total_users bigint, total_collections bigint, total_documents bigint, total_chunks bigint, total_entities bigint,
  total_relationships bigint, storage_used_bytes bigint, api_calls_today bigint, is_complete boolean
)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  is_admitted constant boolean := rag.begin_call();
  own constant uuid[] := array(select rag.admin_org_ids());
  fewer constant integer := least(most, 200000);
  counted bigint[];
begin
  if cardinality(own) = 0 then
    raise exception 'only an admin of the org, with a key that has the scope admin, may see this'
      using errcode = 'PT403', detail = 'admin_required';
  elsif coalesce(most, 0) not between 1 and 500000 then
    raise exception 'most must be between 1 and 500000' using errcode = 'PT400', detail = 'invalid_most';
  end if;

  -- A user of several of these orgs is one.
  select array[count(*)], count(distinct found.owner_id),
    coalesce(sum(found.total) filter (where found.day = (now() at time zone 'UTC')::date), 0)
  into counted, total_users, api_calls_today
  from (
    select calls.owner_id, calls.day, calls.total
    from rag.calls
    where calls.org_id = any (own) and (select rag.bound_collection()) is null
    limit fewer
  ) as found;

  select count(*) into total_collections
  from (select from rag.collections where collections.org_id = any (own) limit most) as found;

  select count(*) into total_documents
  from (select from rag.documents where documents.org_id = any (own) limit most) as found;

  -- Sizes are read from where values begin, and not the values.
  select counted || count(*), coalesce(sum(found.bytes), 0) into counted, storage_used_bytes
  from (
    select octet_length(documents.content) + coalesce(octet_length(originals.bytes),
      case when originals.path is not null then documents.size_bytes end, 0)::bigint as bytes
    from rag.documents
    left join rag.originals on originals.org_id = documents.org_id and originals.document_id = documents.id
    where documents.org_id = any (own)
    limit fewer
  ) as found;

  select count(*) into total_chunks
  from (select from rag.chunks where chunks.org_id = any (own) limit most) as found;

  with named as materialized (
    select mentions.org_id, mentions.entity from rag.mentions where mentions.org_id = any (own) limit fewer
  ), titled as materialized (
    select subjects.org_id, subjects.entity from rag.subjects where subjects.org_id = any (own) limit fewer
  )
  select counted || array[(select count(*) from named), (select count(*) from titled)],
    (select count(*) from (select * from named union select * from titled) as either)
  into counted, total_entities;

  with stated as materialized (
    select relations.org_id, relations.subject, relations.type, relations.object
    from rag.relations where relations.org_id = any (own) limit fewer
  )
  select counted || (select count(*) from stated), (select count(*) from (select distinct * from stated) as one)
  into counted, total_relationships;

  is_complete := fewer > all (counted) and most > all (array[total_collections, total_documents, total_chunks]);
  return next;
end;
$$;

comment on function public.rag_stats is
  'How many there are in the orgs that the caller administers. Of each table at most so many rows are counted, and '
  'of what has to be read for that fewer: it must end within eight seconds. is_complete says whether that was '
  'enough. total_users: who has ever called. Entities are distinct names, by org, relationships distinct '
  'statements. Of a key that is bound to a collection that is all it is told of: neither users nor calls. PT403 for '
  'who administers none.';

create function rag.version()
returns text
language sql immutable security invoker set search_path = ''
as $$
  select '20261124000000';
$$;

comment on function rag.version is
  'The newest migration of this database; the functions'' code states which one it needs.';

create function rag.queues(own uuid[])
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_object_agg(counted.kind, to_jsonb(counted) - 'kind')
  from (
    select queue.kind, count(*) filter (where not item.is_running) as waiting,
      count(*) filter (where item.is_running) as running,
      extract(epoch from now() - min(item.due_at) filter (where item.due_at <= now())) as oldest_seconds
    from unnest(array['documents', 'readings', 'deliveries', 'removals']) as queue (kind)
    left join (
      (select 'documents' as kind, jobs.state = 'running' as is_running, jobs.due_at
      from rag.jobs
      where jobs.state in ('waiting', 'running') and (own is null or jobs.org_id = any (own))
      limit 100000)
      union all
      (select 'readings', extractions.lease is not null, extractions.due_at
      from rag.extractions
      where extractions.level = 0 and extractions.user_id is not null and extractions.due_at is not null
        and (own is null or extractions.org_id = any (own))
      limit 100000)
      union all
      (select 'deliveries', deliveries.state = 'running',
        case when webhooks.enabled and endpoints.failing_since is null then deliveries.due_at end
      from rag.deliveries
      join rag.webhooks on webhooks.org_id = deliveries.org_id and webhooks.id = deliveries.webhook_id
      join rag.endpoints
        on endpoints.org_id = deliveries.org_id and endpoints.webhook_id = deliveries.webhook_id
      where deliveries.state in ('waiting', 'running') and (own is null or deliveries.org_id = any (own))
      limit 100000)
      union all
      -- An upload under way is not due yet.
      (select 'removals', false, removals.due_at
      from rag.removals
      where removals.due_at <= now() and (own is null or removals.org_id = any (own))
      limit 100000)
    ) as item on item.kind = queue.kind
    group by queue.kind
  ) as counted;
$$;

comment on function rag.queues is
  'What waits for the worker, of these orgs, or of all where own is null, by kind: how much, how much of it is '
  'being done, and oldest_seconds: how long the one has been due that is due longest, which may be running under a '
  'lease that has ended. Of each kind at most 100,000 are looked at: a long queue must not pass for a database that '
  'is gone. documents: to be ingested. readings: documents that nobody has read for names; those that a model is to '
  'read after the rules are found by then, and whether there is a model is not known here. deliveries: of webhooks; '
  'those to an address that does not answer wait on purpose. removals: objects of Storage. Nothing else is the '
  'worker''s: snapshots, collections and keys are changed while their caller waits.';

create function public.rag_health()
returns table (
  version text, pgvector text, postgres text, is_admin boolean, queues jsonb, functions_secret text
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
  functions_secret := (
    select case when open_to_direct_callers then 'ok' else rag.functions_secret_status() end from rag.settings);
  if is_admin or is_worker then
    version := rag.version();
    pgvector := (select extversion from pg_catalog.pg_extension where extname = 'vector');
    postgres := current_setting('server_version');
    -- Counting takes seconds, which a browser could use to occupy connections.
    if not rag.is_direct_call() then
      queues := rag.queues(case when not is_worker then own end);
    end if;
  end if;
  return next;
end;
$$;

comment on function public.rag_health is
  'State of the database, and the worker''s queues: of the orgs that the caller administers, or, for the worker, of '
  'all orgs. functions_secret, for every caller: whether the guarded functions accept this call (ok), or why not '
  '(unset, wrong). This function is not guarded, so that it can report that.';

create policy "the worker reads the settings" on rag.settings for select to rag_worker using (true);
