-- Ingestion jobs: a queue of documents to convert, chunk, embed and store. A job is written in the transaction that
-- adds the document. The worker claims it under a role of its own, which sees jobs and nothing else; it stores the
-- result as the user who added the document, with a token that names the job and its lease. A finished job stays as a
-- log.

create table rag.jobs (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  user_id uuid not null,
  document jsonb not null check (
    jsonb_typeof(document) = 'object' and pg_column_size(document) <= 100000 and rag.has_readable_numbers(document)
  ),
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed')),
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  lease uuid,
  step text check (step ~ '^[a-z]{1,40}$'),
  error_code text check (error_code ~ '^[a-z_]{1,40}$'),
  error_message text check (length(error_message) <= 500 and rag.is_visible_text(error_message)),
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  primary key (org_id, id),
  foreign key (org_id, document_id) references rag.documents (org_id, id) on delete cascade,
  check ((state = 'running') = (lease is not null))
);

comment on table rag.jobs is
  'Ingestion jobs: a queue of documents to convert, chunk, embed and store, and a log of finished jobs.';
comment on column rag.jobs.user_id is 'In whose name it is done: who brought the document.';
comment on column rag.jobs.document is
  'What was said of the document when it was brought, and becomes true of it with the job''s end.';
comment on column rag.jobs.due_at is
  'Not before this. While it runs: when its lease ends, and anybody may claim it again.';
comment on column rag.jobs.lease is 'Who holds this may finish it, and nobody else.';
comment on column rag.jobs.step is 'What it is at: fetching, converting, embedding, storing.';

-- Deleting a document, and showing what becomes of it.
create index jobs_by_document on rag.jobs (org_id, document_id, created_at);

-- rag_claim_jobs: of each org the jobs that are due.
create index jobs_due on rag.jobs (org_id, due_at) where state in ('waiting', 'running');

-- One at a time: a document that is brought anew has its older job taken away.
create unique index jobs_one_of_a_document on rag.jobs (org_id, document_id)
  where state in ('waiting', 'running');

alter table rag.jobs enable row level security;
alter table rag.jobs force row level security;

create policy "members use their org's jobs" on rag.jobs
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

-- Work is done in the name of who asks for it, and of nobody else.
create policy "jobs are for oneself" on rag.jobs
  as restrictive for insert to authenticated
  with check (user_id = (select auth.uid()) and state = 'waiting' and attempts = 0);

-- No user's own token names a lease: only the worker's for one job does.
create policy "whoever holds the lease goes on with a job" on rag.jobs
  as restrictive for update to authenticated
  using (lease = (select rag.lease_of_token())) with check (true);

create policy "a key reads and writes with the scopes for it" on rag.jobs
  as restrictive for all to authenticated
  using ((select rag.has_scope('documents:read', 'documents:write')))
  with check ((select rag.has_scope('documents:write')));

create policy "a key deletes with documents:write" on rag.jobs
  as restrictive for delete to authenticated
  using ((select rag.has_scope('documents:write')));

create policy "a bound key stays in its collection" on rag.jobs
  as restrictive for all to authenticated
  using ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
  with check ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()));

create policy "the worker claims jobs" on rag.jobs
  for select to rag_worker using (true);

create policy "the worker leases jobs" on rag.jobs
  for update to rag_worker using (true) with check (state in ('running', 'failed'));

-- Ids and states, to give documents up and to find collections without documents.
create policy "the worker sees which documents there are" on rag.documents
  for select to rag_worker using (true);

create policy "the worker gives documents up" on rag.documents
  for update to rag_worker using (status = 'processing') with check (status = 'failed');

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
