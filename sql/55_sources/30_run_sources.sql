-- Runs of sources. The worker claims a due source under its own role, which is the only reader of credentials, and ends
-- its time slice. Between these it lists and stores as the source's user, with a token that names the lease. A listing
-- takes as many time slices as it needs, so that sources of all orgs are served.

create function public.rag_claim_sources(max_items integer default 4, lease_seconds integer default 300)
returns table (
  org_id uuid, source_id uuid, user_id uuid, lease uuid, attempts integer, kind text, address text, endpoint text,
  region text, item_limit integer, include_noindex boolean, resume_after text, run_number integer, listed integer,
  gone integer, credentials jsonb, waiting_jobs bigint
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.check_claim(max_items, lease_seconds);
  update rag.sources
  set state = 'waiting', lease = null, attempts = 0, resume_after = null, finished_at = clock_timestamp(),
    due_at = clock_timestamp() + make_interval(secs => sources.interval_seconds), error_code = 'source_failed',
    error_message = 'The worker stopped too often during this source. It is run again after its interval.'
  where sources.state = 'running' and sources.due_at <= clock_timestamp() and sources.attempts >= rag.max_attempts();

  return query
  with due as materialized (
    select distinct on (sources.org_id) sources.org_id, sources.id, sources.due_at,
      (select (orgs.served ->> 'source')::timestamptz from rag.orgs where orgs.id = sources.org_id) as served_at
    from rag.sources
    where sources.enabled and sources.due_at <= clock_timestamp()
      and sources.org_id <> all (array(select rag.paused_org_ids()))
      and not exists (
        select
        from rag.sources as running
        where running.org_id = sources.org_id and running.state = 'running' and running.due_at > clock_timestamp())
    order by sources.org_id, sources.due_at, sources.id
  ), locked as materialized (
    select sources.org_id, sources.id
    from (
      select due.* from due order by due.served_at nulls first, due.due_at, due.id limit 4 * max_items
    ) as due
    cross join lateral (
      select sources.org_id, sources.id
      from rag.sources
      where sources.org_id = due.org_id and sources.id = due.id and sources.due_at <= clock_timestamp()
      for update skip locked
    ) as sources
    limit max_items
  ), claimed as (
    update rag.sources
    set state = 'running', lease = gen_random_uuid(), attempts = sources.attempts + 1,
      due_at = clock_timestamp() + make_interval(secs => lease_seconds),
      run_number = sources.run_number + begun.count, listed = sources.listed * (1 - begun.count),
      stored = sources.stored * (1 - begun.count), deleted = sources.deleted * (1 - begun.count),
      failed = sources.failed * (1 - begun.count), gone = sources.gone * (1 - begun.count),
      left_out = case begun.count when 0 then sources.left_out else '{}' end,
      started_at = case begun.count when 0 then sources.started_at else clock_timestamp() end,
      finished_at = case begun.count when 0 then sources.finished_at end,
      error_code = case begun.count when 0 then sources.error_code end,
      error_message = case begun.count when 0 then sources.error_message end
    from locked
    join rag.sources as present on present.org_id = locked.org_id and present.id = locked.id
    cross join lateral (select case when present.resume_after is null then 1 else 0 end) as begun (count)
    where sources.org_id = locked.org_id and sources.id = locked.id
    returning sources.*
  ), noted as (
    update rag.orgs
    set served = orgs.served || jsonb_build_object('source', clock_timestamp())
    from (
      select orgs.id from rag.orgs where orgs.id in (select claimed.org_id from claimed) for no key update skip locked
    ) as one
    where orgs.id = one.id
  )
  select claimed.org_id, claimed.id, claimed.user_id, claimed.lease, claimed.attempts, claimed.kind, claimed.address,
    claimed.endpoint, claimed.region, claimed.max_items, claimed.include_noindex, claimed.resume_after,
    claimed.run_number, claimed.listed, claimed.gone,
    coalesce(source_credentials.credentials, rag.secret_in_vault(source_credentials.credentials_id)::jsonb), (
      select count(*)
      from (
        select from rag.jobs
        where jobs.kind = 'ingestion' and jobs.org_id = claimed.org_id and jobs.state in ('waiting', 'running')
        limit 1000
      ) as job)
  from claimed
  left join rag.source_credentials
    on source_credentials.org_id = claimed.org_id and source_credentials.source_id = claimed.id;
end;
$$;

comment on function public.rag_claim_sources is
  'Lease due sources, for the worker, with their credentials: one of each org that has none running, first of the org '
  'that was served least recently. A '
  'source without resume_after begins a new listing. A source whose lease has expired is claimed again and '
  'continues after resume_after; after rag.max_attempts() claims without an end its listing fails. waiting_jobs: '
  'unfinished ingestion jobs of the org, at most 1,000.';

create function public.rag_end_source(
  org_id uuid, source_id uuid, lease uuid, counts jsonb, resume_after text default null, error_code text default null,
  error_message text default null, retry_seconds integer default null
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  -- Raises PT401 for a token of another issuer.
  perform rag.current_user_id();
  update rag.sources as ended
  set state = 'waiting', lease = null, attempts = case when counts ? 'refused' then ended.attempts else 0 end,
    resume_after = rag_end_source.resume_after,
    listed = ended.listed + coalesce((counts ->> 'listed')::integer, 0),
    stored = ended.stored + coalesce((counts ->> 'stored')::integer, 0),
    deleted = ended.deleted + coalesce((counts ->> 'deleted')::integer, 0),
    failed = ended.failed + coalesce((counts ->> 'failed')::integer, 0),
    gone = ended.gone + coalesce((counts ->> 'gone')::integer, 0),
    left_out = (
      select coalesce(jsonb_object_agg(reasons.name, reasons.count), '{}')
      from (
        select one.key as name, sum(one.value::integer) as count
        from (
          select * from jsonb_each_text(ended.left_out)
          union all
          select * from jsonb_each_text(coalesce(counts -> 'left_out', '{}'))
        ) as one
        group by one.key
      ) as reasons),
    error_code = coalesce(rag_end_source.error_code, ended.error_code),
    error_message = coalesce(rag_end_source.error_message, ended.error_message),
    finished_at = case when rag_end_source.resume_after is null then clock_timestamp() end,
    due_at = clock_timestamp() + make_interval(secs => coalesce(retry_seconds, ended.interval_seconds))
  where ended.org_id = rag_end_source.org_id and ended.id = source_id and ended.lease = rag_end_source.lease
    and ended.due_at > clock_timestamp();
  return found;
end;
$$;

comment on function public.rag_end_source is
  'End the time slice of a source. resume_after: the item after which the next one continues; null: the listing has '
  'ended. counts: those of this time slice; refused, if its only item asked to wait. retry_seconds: until the next one; null: the source''s interval. False for a '
  'worker whose lease has ended, which changes nothing.';

create function rag.lock_source()
returns rag.sources
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  source rag.sources;
begin
  select sources.* into source
  from rag.sources
  where sources.org_id = any (array(select rag.current_org_ids())) and sources.lease = (select rag.lease_of_token())
    and sources.due_at > clock_timestamp()
  for update;
  if not found then
    raise exception 'The lease has ended. Claim the item again.' using errcode = 'PT409', detail = 'lease_lost';
  end if;
  return source;
end;
$$;

comment on function rag.lock_source is 'The source of the token''s lease, locked; PT409 when the lease has ended.';

create function public.rag_list_source_items(items jsonb, lease_seconds integer default 300)
returns table (item text, version text)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_call();
  source constant rag.sources := rag.lock_source();
begin
  perform rag.check_json('items', items, 10000000);
  update rag.sources set due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where sources.org_id = source.org_id and sources.id = source.id;
  return query
  with listed as materialized (
    select * from jsonb_to_recordset(items) as fields (item text, version text)
  ), seen as (
    update rag.source_items
    set run_number = source.run_number
    from listed
    where source_items.org_id = source.org_id and source_items.source_id = source.id and source_items.item = listed.item
    returning source_items.item, source_items.version
  )
  select listed.item, seen.version
  from listed
  left join seen on seen.item = listed.item
  where listed.version is null or seen.version is distinct from listed.version;
end;
$$;

comment on function public.rag_list_source_items is
  'Note items of the source as listed, and return those to fetch, with the stored version: new items, and items '
  'without a version or with another version than the stored one. items: objects with item and version. It extends '
  'the lease.';

create function public.rag_put_source_item(
  item text, version text default null, document jsonb default null, lease_seconds integer default 300
)
returns text
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  source constant rag.sources := rag.lock_source();
  present rag.source_items;
  code text;
  twin text;
  stored uuid;
  result text := 'unchanged';
begin
  select * into present
  from rag.source_items
  where source_items.org_id = source.org_id and source_items.source_id = source.id
    and source_items.item = rag_put_source_item.item;
  if rag_put_source_item.document is null then
    update rag.source_items
    set run_number = source.run_number - 1
    where source_items.org_id = source.org_id and source_items.source_id = source.id
      and source_items.item = rag_put_source_item.item;
    return 'missing';
  end if;
  select originals.document_id into stored
  from rag.originals
  where originals.org_id = source.org_id and originals.document_id = present.document_id
    and originals.content_hash = encode(sha256(decode(rag_put_source_item.document ->> 'bytes', 'base64')), 'hex');
  if stored is null then
    begin
      stored := (
        select added.id
        from public.rag_add_document(source.collection_id, rag_put_source_item.document || jsonb_build_object(
          'external_id', case when length(rag_put_source_item.item) <= 500 then rag_put_source_item.item
            else encode(sha256(convert_to(rag_put_source_item.item, 'UTF8')), 'hex') end)) as added);
      result := 'stored';
    exception when sqlstate 'PT409' then
      get stacked diagnostics code = pg_exception_detail, twin = pg_exception_hint;
      if code <> 'duplicate_document' or coalesce(twin, '') = '' then
        raise;
      end if;
      stored := twin::uuid;
      result := 'duplicate';
      -- The content that the item had before.
      delete from rag.documents
      where documents.org_id = source.org_id and documents.id = present.document_id and not present.is_duplicate;
    end;
  end if;
  insert into rag.source_items as renewed (org_id, source_id, owner_id, item, version, document_id, is_duplicate,
    run_number)
  values (source.org_id, source.id, source.owner_id, rag_put_source_item.item, rag_put_source_item.version, stored,
    result = 'duplicate', source.run_number)
  on conflict (org_id, source_id, item) do update
  set version = excluded.version, document_id = excluded.document_id, run_number = excluded.run_number,
    is_duplicate = case result when 'unchanged' then renewed.is_duplicate else excluded.is_duplicate end;
  update rag.sources set due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where sources.org_id = source.org_id and sources.id = source.id;
  return result;
end;
$$;

comment on function public.rag_put_source_item is
  'Store an item of the source: as rag_add_document, unless its document has this content already (unchanged) or '
  'another document of the collection has it (duplicate). A null document: the item is listed and has no content '
  '(missing); rag_delete_missing_items deletes its document. It extends the lease.';

create function public.rag_delete_missing_items(max_items integer, lease_seconds integer default 300)
returns table (deleted bigint, orphaned bigint)
language plpgsql volatile security invoker set search_path = ''
set statement_timeout = '60s'
as $$
#variable_conflict use_column
declare
  is_admitted constant boolean := rag.begin_write();
  source constant rag.sources := rag.lock_source();
begin
  perform rag.check_claim(max_items, lease_seconds);
  update rag.sources set due_at = clock_timestamp() + make_interval(secs => lease_seconds)
  where sources.org_id = source.org_id and sources.id = source.id;
  return query
  with missing as materialized (
    select source_items.item, source_items.document_id, source_items.is_duplicate
    from rag.source_items
    where source_items.org_id = source.org_id and source_items.source_id = source.id
      and source_items.run_number < source.run_number
    limit max_items
  ), orphans as materialized (
    select source_items.item
    from missing
    join rag.source_items on source_items.org_id = source.org_id and source_items.source_id = source.id
      and source_items.document_id = missing.document_id and source_items.run_number = source.run_number
    where not missing.is_duplicate
  ), removed as (
    delete from rag.source_items
    using missing
    where source_items.org_id = source.org_id and source_items.source_id = source.id and source_items.item = missing.item
    returning 1
  ), gone as (
    delete from rag.documents
    using missing
    where documents.org_id = source.org_id and documents.id = missing.document_id and not missing.is_duplicate
    returning 1
  )
  select (select count(*) from removed), (select count(*) from orphans) from (select count(*) from gone) as counted;
end;
$$;

comment on function public.rag_delete_missing_items is
  'Delete documents of items that the running listing, which must be complete, did not have: at most max_items. '
  'orphaned: listed items of the same content, which have no document now and need another listing.';
