-- The claim of jobs, under the worker's role: fair among orgs, with a lease. The worker claims each kind of its own, so
-- that extractions do not delay documents.

create function rag.fail_exhausted_jobs()
returns void
language sql volatile security invoker set search_path = ''
as $$
  -- Documents are locked before their jobs, in every transaction.
  with exhausted as (
    select documents.org_id, documents.id
    from rag.documents
    join rag.jobs on jobs.org_id = documents.org_id and jobs.document_id = documents.id
    where jobs.kind = 'ingestion' and jobs.state = 'running' and jobs.due_at <= clock_timestamp()
      and jobs.attempts >= rag.max_attempts()
    for update of documents skip locked
  ), failed as (
    update rag.jobs
    set state = 'failed', lease = null, step = null, passages_hash = null, embeddings = null,
      finished_at = clock_timestamp(), error_code = 'processing_failed', error_message = 'Processing failed too often; upload the document again.'
    from exhausted
    where jobs.org_id = exhausted.org_id and jobs.document_id = exhausted.id and jobs.kind = 'ingestion'
      and jobs.state = 'running' and jobs.due_at <= clock_timestamp()
    returning jobs.org_id, jobs.document_id, jobs.error_code, jobs.error_message
  )
  update rag.documents
  set status = 'failed', error_code = failed.error_code, error_message = failed.error_message
  from failed
  where documents.org_id = failed.org_id and documents.id = failed.document_id and documents.status = 'processing';

  update rag.jobs
  set state = 'failed', lease = null, finished_at = clock_timestamp(), error_code = 'extraction_failed',
    error_message = 'The extraction failed too often; build the graph of the collection again.'
  from (
    select jobs.org_id, jobs.id
    from rag.jobs
    where jobs.kind = 'extraction' and jobs.state = 'running' and jobs.due_at <= clock_timestamp()
      and jobs.attempts >= rag.max_attempts()
    for update skip locked
  ) as exhausted
  where jobs.org_id = exhausted.org_id and jobs.id = exhausted.id;
$$;

comment on function rag.fail_exhausted_jobs is
  'Fail the jobs whose last lease has expired after rag.max_attempts() attempts, and the documents of ingestion jobs.';

create function rag.due_jobs(kind text, max_items integer, busy_orgs uuid[])
returns table (org_id uuid, id uuid, is_expired boolean, rank bigint)
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  return query
  with recursive queued (org_id) as (
    -- The next org with a job, by the index: there may be many jobs and few orgs.
    (select jobs.org_id
    from rag.jobs
    where jobs.kind = due_jobs.kind and jobs.state in ('waiting', 'running')
    order by jobs.org_id
    limit 1)
    union all
    select (
      select jobs.org_id
      from rag.jobs
      where jobs.kind = due_jobs.kind and jobs.state in ('waiting', 'running') and jobs.org_id > queued.org_id
      order by jobs.org_id
      limit 1)
    from queued
    where queued.org_id is not null
  ), due as (
    select job.*, served.at as served_at, min(job.due_at) over (partition by job.org_id) as since
    from queued
    cross join lateral (
      select (orgs.served ->> due_jobs.kind)::timestamptz as at
      from rag.orgs
      where orgs.id = queued.org_id
    ) as served
    cross join lateral (
      select jobs.org_id, jobs.id, jobs.due_at, jobs.state
      from rag.jobs
      where jobs.kind = due_jobs.kind and jobs.org_id = queued.org_id and jobs.state in ('waiting', 'running')
        and jobs.due_at <= clock_timestamp()
      order by jobs.due_at, jobs.id
      limit max_items
    ) as job
    where queued.org_id is not null and queued.org_id <> all (busy_orgs)
      and queued.org_id <> all (array(select rag.paused_org_ids()))
  )
  select due.org_id, due.id, due.state = 'running',
    row_number() over (order by due.served_at nulls first, due.since, due.org_id, due.due_at, due.id)
  from due;
end;
$$;

comment on function rag.due_jobs is
  'Due jobs of a kind in the order of their claim, without orgs that are paused or in busy_orgs: first those of the org that '
  'was served least recently, of each org the longest waiting first. is_expired: the job was claimed, and its lease has '
  'expired.';

create function public.rag_claim_jobs(
  kind text, max_items integer default 1, lease_seconds integer default 60, busy_orgs uuid[] default '{}'
)
returns table (
  job_id uuid, org_id uuid, document_id uuid, user_id uuid, as_admin boolean, lease uuid, attempts integer
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.check_claim(max_items, lease_seconds);
  if (rag_claim_jobs.kind in ('ingestion', 'extraction')) is not true then
    raise exception 'kind must be ingestion or extraction' using errcode = 'PT400', detail = 'invalid_claim';
  end if;
  perform rag.fail_exhausted_jobs();

  return query
  with due as materialized (
    select * from rag.due_jobs(rag_claim_jobs.kind, max_items, coalesce(busy_orgs, '{}'))
  ), locked as materialized (
    -- Of one org, and only one while others wait, so that slow documents of an org delay no other.
    select jobs.org_id, jobs.id
    from (
      select due.*
      from due
      where due.is_expired or not exists (select from due as expired where expired.is_expired)
      order by due.rank
      limit 4 * max_items
    ) as due
    cross join lateral (
      select jobs.org_id, jobs.id
      from rag.jobs
      where jobs.org_id = due.org_id and jobs.id = due.id and jobs.state in ('waiting', 'running')
        and jobs.due_at <= clock_timestamp()
      for update skip locked
    ) as jobs
    limit case when exists (select from due where due.is_expired)
      or (select count(distinct due.org_id) from due) > 1 then 1 else max_items end
  ), claimed as (
    update rag.jobs
    set state = 'running', attempts = jobs.attempts + 1, lease = gen_random_uuid(), step = null,
      started_at = clock_timestamp(), due_at = clock_timestamp() + make_interval(secs => lease_seconds)
    from locked
    where jobs.org_id = locked.org_id and jobs.id = locked.id
    returning jobs.id, jobs.org_id, jobs.document_id, jobs.user_id, jobs.owner_id, jobs.lease, jobs.attempts
  ), noted as (
    update rag.orgs
    set served = orgs.served || jsonb_build_object(rag_claim_jobs.kind, clock_timestamp())
    from (
      select orgs.id from rag.orgs where orgs.id in (select claimed.org_id from claimed) for no key update skip locked
    ) as one
    where orgs.id = one.id
  )
  -- In that order: of two documents with the same text the one that came first is the one that stays.
  select claimed.id, claimed.org_id, claimed.document_id, claimed.user_id,
    coalesce(claimed.owner_id <> claimed.user_id, false), claimed.lease, claimed.attempts
  from claimed
  join due on due.org_id = claimed.org_id and due.id = claimed.id
  order by due.rank;
end;
$$;

comment on function public.rag_claim_jobs is
  'Lease due jobs of a kind (ingestion, extraction), for the worker, in the order of rag.due_jobs: those of one org, and only '
  'one if other orgs have due jobs. busy_orgs: orgs of which the worker has jobs already. A job whose lease has '
  'expired is claimed again, alone, because it may have crashed its worker; the old lease can finish nothing. After '
  'rag.max_attempts() attempts the job fails. as_admin: the job''s user is an admin who works on another user''s '
  'document.';
