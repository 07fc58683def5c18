-- The schema's version, the state of the worker's queues and the length of the keyword index's tails, for health checks.

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
    from unnest(array['documents', 'extractions', 'deliveries', 'removals', 'sources']) as queue (kind)
    left join (
      (select 'documents' as kind, jobs.state = 'running' as is_running, jobs.due_at
      from rag.jobs
      where jobs.kind = 'ingestion' and jobs.state in ('waiting', 'running') and (own is null or jobs.org_id = any (own))
        and jobs.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
      union all
      (select 'extractions', jobs.state = 'running', jobs.due_at
      from rag.jobs
      where jobs.kind = 'extraction' and jobs.state in ('waiting', 'running') and (own is null or jobs.org_id = any (own))
        and jobs.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
      union all
      (select 'deliveries', deliveries.state = 'running',
        case when webhooks.enabled and endpoints.failing_since is null then deliveries.due_at end
      from rag.deliveries
      join rag.webhooks on webhooks.org_id = deliveries.org_id and webhooks.id = deliveries.webhook_id
      join rag.endpoints
        on endpoints.org_id = deliveries.org_id and endpoints.webhook_id = deliveries.webhook_id
      where deliveries.state in ('waiting', 'running') and (own is null or deliveries.org_id = any (own))
        and deliveries.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
      union all
      -- An upload under way is not due yet.
      (select 'removals', false, object_removals.due_at
      from rag.object_removals
      where object_removals.due_at <= now() and (own is null or object_removals.org_id = any (own))
        and object_removals.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
      union all
      (select 'sources', sources.state = 'running', sources.due_at
      from rag.sources
      where sources.enabled and (sources.state = 'running' or sources.due_at <= now())
        and (own is null or sources.org_id = any (own))
        and sources.org_id <> all (array(select rag.paused_org_ids()))
      limit 100000)
    ) as item on item.kind = queue.kind
    group by queue.kind
  ) as counted;
$$;

comment on function rag.queues is
  'The queues of the worker, for these orgs, or for all orgs if own is null, without paused orgs: the number of waiting '
  'and of running items, and oldest_seconds: how long the oldest item has been due, which includes an item with an '
  'expired lease. At most 100,000 rows of a queue are counted, so that the function returns within the time-out of a health check. '
  'documents: to be ingested. extractions: documents whose names are not extracted yet. deliveries: of webhooks; '
  'those to a URL that does not respond are not due. removals: objects to be removed from Storage. sources: those '
  'that are due.';

create function rag.keyword_tails(own uuid[])
returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('documents', coalesce(sum(tail.documents), 0), 'chunks', coalesce(sum(tail.chunks), 0),
    'longest_documents', coalesce(max(tail.documents), 0), 'longest_chunks', coalesce(max(tail.chunks), 0))
  from (
    select count(*) as documents, sum(waiting.chunks) as chunks
    from (
      select document_terms.org_id, document_terms.class, document_terms.chunks
      from rag.document_terms
      where document_terms.segment is null and document_terms.org_id = any (own)
      limit 100000
    ) as waiting
    group by waiting.org_id, waiting.class
  ) as tail;
$$;

comment on function rag.keyword_tails is
  'The tails of the keyword index of these orgs: the numbers of documents and chunks in all of them and in the longest. At most '
  '100,000 documents are counted, as in rag.queues.';

create function public.rag_health()
returns table (
  version text, pgvector text, postgres text, is_admin boolean, queues jsonb, functions_secret text, orgs integer,
  writes text, newest_function jsonb, keyword_tails jsonb
)
language plpgsql stable security invoker set search_path = ''
as $$
declare
  -- The worker's role belongs to no user and to no org.
  is_worker constant boolean := current_user = 'rag_worker';
  own uuid[] := '{}';
begin
  if not is_worker then
    own := array(select rag.admin_org_ids());
    orgs := (select count(distinct current_org_ids) from rag.current_org_ids());
  else
    -- PT401 for an issuer that is not trusted.
    perform rag.current_user_id();
  end if;
  is_admin := cardinality(own) > 0;
  writes := case when pg_is_in_recovery() then 'standby'
    when current_setting('default_transaction_read_only')::boolean then 'off_by_default' else 'ok' end;
  functions_secret := (
    select case when open_to_direct_callers then 'ok' else rag.functions_secret_status() end from rag.settings);
  newest_function := (
    select jsonb_build_object('name', proname, 'arguments', coalesce(proargnames[:pronargs], '{}'))
    from pg_catalog.pg_proc
    where pronamespace = 'public'::regnamespace and proname like 'rag\_%'
      -- PostgREST's cache has no procedures, trigger functions or functions with unnamed arguments. Outputs come last in
      -- each function of this schema.
      and prokind = 'f' and prorettype <> 'trigger'::regtype
      and (pronargs = 0 or '' <> all (proargnames[:pronargs])
        and coalesce(proargmodes[:pronargs] <@ '{i,b,v}'::"char"[], true))
    order by oid desc limit 1);
  if is_admin or is_worker then
    version := rag.version();
    pgvector := (select extversion from pg_catalog.pg_extension where extname = 'vector');
    postgres := current_setting('server_version');
    -- Counting takes seconds, which a browser could use to occupy connections.
    if not rag.is_direct_call() then
      queues := rag.queues(case when not is_worker then own end);
      if is_admin then
        keyword_tails := rag.keyword_tails(own);
      end if;
    end if;
  end if;
  return next;
end;
$$;

comment on function public.rag_health is
  'State of the database, and the worker''s queues: of the orgs that the caller administers, or, for the worker, of '
  'all orgs. keyword_tails: the keyword index''s tails, of the orgs that the caller administers. functions_secret, for every '
  'caller: whether the guarded functions accept this call (ok), or why not (unset, wrong). orgs: the number of the caller''s orgs. writes, for every caller: ok; standby: the database takes none; '
  'off_by_default: only in transactions that ask for them, as PostgREST''s do. newest_function, for every caller: the exposed function '
  'that was created last, which an older schema cache of PostgREST lacks. This function is not guarded, so that it can report the secret.';
