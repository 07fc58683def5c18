-- The claim of ingestion jobs, under the worker's role: fair among orgs, with a lease.

create function public.rag_claim_jobs(wanted integer default 1, lease_seconds integer default 60)
returns table (
  job_id uuid, org_id uuid, document_id uuid, collection_id uuid, user_id uuid, as_admin boolean, lease uuid,
  attempts integer
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  if wanted is null or wanted not between 1 and 100
    or lease_seconds is null or lease_seconds not between 5 and 3600
  then
    raise exception 'so many jobs, or so long, nobody may have' using errcode = 'PT400', detail = 'invalid_claim';
  end if;
  -- Documents are locked before their jobs, by everybody: who deletes one goes that way too.
  with dying as (
    select documents.org_id, documents.id
    from rag.documents
    join rag.jobs on jobs.org_id = documents.org_id and jobs.document_id = documents.id
    where jobs.state = 'running' and jobs.due_at <= clock_timestamp() and jobs.attempts >= 16
    for update of documents skip locked
  ), given_up as (
    update rag.jobs
    set state = 'failed', lease = null, step = null, finished_at = clock_timestamp(),
      error_code = 'processing_failed', error_message = 'Nobody could finish this document.'
    from dying
    where jobs.org_id = dying.org_id and jobs.document_id = dying.id
      and jobs.state = 'running' and jobs.due_at <= clock_timestamp()
    returning jobs.org_id, jobs.document_id, jobs.error_code, jobs.error_message
  )
  update rag.documents
  set status = 'failed', error_code = given_up.error_code, error_message = given_up.error_message
  from given_up
  where documents.org_id = given_up.org_id and documents.id = given_up.document_id
    and documents.status = 'processing';

  return query
  with recursive busy (org_id) as (
    -- The next org with a job, by the index: there may be many jobs and few orgs.
    (select jobs.org_id from rag.jobs where jobs.state in ('waiting', 'running') order by jobs.org_id limit 1)
    union all
    select (
      select jobs.org_id from rag.jobs
      where jobs.state in ('waiting', 'running') and jobs.org_id > busy.org_id
      order by jobs.org_id limit 1)
    from busy
    where busy.org_id is not null
  ), due as materialized (
    select found.org_id, found.id, found.due_at, found.state, row_number() over (
      partition by found.org_id order by found.due_at, found.id) as turn
    from busy
    cross join lateral (
      select jobs.org_id, jobs.id, jobs.due_at, jobs.state
      from rag.jobs
      where jobs.org_id = busy.org_id and jobs.state in ('waiting', 'running')
        and jobs.due_at <= clock_timestamp()
      order by jobs.due_at, jobs.id
      limit wanted
    ) as found
    where busy.org_id is not null
  ), locked as materialized (
    select jobs.org_id, jobs.id
    from (
      select due.*
      from due
      where due.state = 'running' or not exists (select from due as dead where dead.state = 'running')
      order by due.turn, due.due_at, due.id
      limit 4 * wanted
    ) as due
    cross join lateral (
      select jobs.org_id, jobs.id
      from rag.jobs
      where jobs.org_id = due.org_id and jobs.id = due.id and jobs.state in ('waiting', 'running')
        and jobs.due_at <= clock_timestamp()
      for update skip locked
    ) as jobs
    limit case when exists (select from due where due.state = 'running') then 1 else wanted end
  ), claimed as (
    update rag.jobs
    set state = 'running', attempts = jobs.attempts + 1, lease = gen_random_uuid(), step = null,
      started_at = clock_timestamp(), due_at = clock_timestamp() + make_interval(secs => lease_seconds)
    from locked
    where jobs.org_id = locked.org_id and jobs.id = locked.id
    returning jobs.*
  )
  -- In that order: of two documents with the same text the one that came first is the one that stays.
  select claimed.id, claimed.org_id, claimed.document_id, claimed.collection_id, claimed.user_id,
    coalesce(claimed.owner_id <> claimed.user_id, false), claimed.lease, claimed.attempts
  from claimed
  join due on due.org_id = claimed.org_id and due.id = claimed.id
  order by due.turn, due.due_at, due.id;
end;
$$;

comment on function public.rag_claim_jobs is
  'Lease due jobs, for the worker: the same number of every org, the longest waiting first. A job whose lease has '
  'expired is claimed again, alone, because it may have crashed its worker; the old lease can finish nothing. After '
  'sixteen attempts the job and its document fail. as_admin: the job''s user is an admin who works on another '
  'user''s document.';
