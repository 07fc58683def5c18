-- Jobs: two queues of documents, for ingestion (convert, chunk, embed and store) and for the extraction of entities
-- (70_graph). A job is written in the transaction that adds the document or its chunks. The worker claims it under a role
-- of its own, which sees jobs and nothing else; it stores the result as the user who requested the job, with a token that
-- names the lease. A finished job stays as a log. A document has one extraction, whose row is used again; most
-- documents come with their entities, and their extractions are done from the beginning.

create table rag.jobs (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  kind text not null default 'ingestion' check (kind in ('ingestion', 'extraction')),
  document_id uuid not null,
  collection_id uuid not null,
  owner_id uuid,
  user_id uuid not null,
  document jsonb check (
    jsonb_typeof(document) = 'object' and pg_column_size(document) <= 100000 and rag.is_readable(document)
  ),
  next_ordinal integer not null default 0 check (next_ordinal >= 0),
  passages_hash text check (passages_hash ~ '^[0-9a-f]{64}$'),
  embeddings extensions.halfvec[] check (cardinality(embeddings) between 1 and 10000),
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
  check ((state = 'running') = (lease is not null)),
  check ((kind = 'ingestion') = (document is not null)),
  check ((embeddings is null) = (passages_hash is null)),
  check (embeddings is null or kind = 'ingestion' and state in ('waiting', 'running')),
  check (kind = 'ingestion' or id = document_id)
);

comment on table rag.jobs is
  'Jobs of the worker: documents to ingest, documents whose entities are to be extracted, and a log of finished jobs.';
comment on column rag.jobs.id is 'Of an extraction, the id of its document: a document has one extraction.';
comment on column rag.jobs.kind is 'ingestion or extraction.';
comment on column rag.jobs.user_id is 'The user who requested the job; the worker acts as this user.';
comment on column rag.jobs.document is
  'Of an ingestion, the document''s fields as its author sent them. The completed job stores them.';
comment on column rag.jobs.next_ordinal is 'Of an extraction, the ordinal of the next chunk.';
comment on column rag.jobs.passages_hash is
  'Of an ingestion whose embedder failed: SHA-256 of the model and of all passages. The next column has the vectors of '
  'the first passages. The next attempt continues after them if it makes the same passages.';
comment on column rag.jobs.due_at is
  'Not before this. While it runs: when its lease ends and any worker may claim it again.';
comment on column rag.jobs.lease is 'Only the worker with this id may finish the job.';
comment on column rag.jobs.step is 'Of an ingestion, the current step: fetching, converting, embedding, storing.';

-- Deletion of a document, and the status of its processing.
create index jobs_by_document on rag.jobs (org_id, document_id, created_at);

-- rag_claim_jobs: the orgs with jobs of a kind, and of each org those that are due.
create index jobs_due on rag.jobs (kind, org_id, due_at, id) where state in ('waiting', 'running');

-- rag_list_jobs
create index jobs_failed on rag.jobs (org_id, created_at desc) where kind = 'ingestion' and state = 'failed';

-- rag.lock_job
create index jobs_by_lease on rag.jobs (org_id, lease) where lease is not null;

-- One ingestion of a document at a time: a new upload of the document deletes its older job.
create unique index jobs_one_of_a_document on rag.jobs (org_id, document_id)
  where kind = 'ingestion' and state in ('waiting', 'running');

call rag.admit_members('jobs');
call rag.restrict_keys('jobs', 'documents:read', 'documents:write');
call rag.bind_keys('jobs');
call rag.require_edit('jobs');

-- A job runs as the user who requests it.
create policy "jobs are for oneself" on rag.jobs
  as restrictive for insert to authenticated
  with check (user_id = (select rag.current_user_id()) and attempts = 0
    and (state = 'waiting' or kind = 'extraction' and state = 'done'));

-- No user's own token names a lease: only the worker's for one job does. An extraction is requested again by an update.
create policy "the holder of the lease continues a job" on rag.jobs
  as restrictive for update to authenticated
  using (kind = 'extraction' or lease = (select rag.lease_of_token()))
  with check (kind = 'ingestion'
    or user_id = (select rag.current_user_id()) and (lease is null or lease = (select rag.lease_of_token())));

create policy "the worker claims jobs" on rag.jobs
  for select to rag_worker using (true);

create policy "the worker leases jobs" on rag.jobs
  for update to rag_worker using (true) with check (state in ('running', 'failed'));

-- Ids and states, to give documents up and to find collections without documents.
create policy "the worker sees which documents there are" on rag.documents
  for select to rag_worker using (true);

create policy "the worker gives documents up" on rag.documents
  for update to rag_worker using (status = 'processing') with check (status = 'failed');

create function rag.enqueue_job(document rag.documents, fields jsonb)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from rag.jobs
  where jobs.org_id = document.org_id and jobs.document_id = document.id and jobs.kind = 'ingestion'
    and jobs.state in ('waiting', 'running');
  insert into rag.jobs (org_id, document_id, collection_id, owner_id, user_id, document)
  values (document.org_id, document.id, document.collection_id, document.owner_id, rag.current_user_id(), fields);
end;
$$;

comment on function rag.enqueue_job is
  'Enqueue the ingestion of a document, in place of its unfinished job. fields: the document''s fields, which the '
  'completed job stores.';

create function rag.lock_job(kind text default null, with_document boolean default true)
returns rag.jobs
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  job rag.jobs;
begin
  if with_document then
    -- The document first: every transaction that deletes or replaces a document locks it before its jobs.
    perform from rag.documents
    join rag.jobs on jobs.org_id = documents.org_id and jobs.document_id = documents.id
    where jobs.org_id = any (array(select rag.current_org_ids())) and jobs.lease = (select rag.lease_of_token())
    for no key update of documents;
  end if;
  select jobs.* into job
  from rag.jobs
  where jobs.org_id = any (array(select rag.current_org_ids())) and jobs.lease = (select rag.lease_of_token())
    and (kind is null or jobs.kind = lock_job.kind)
  for update;
  if not found then
    raise exception 'The lease has ended. Claim the item again.' using errcode = 'PT409', detail = 'lease_lost';
  end if;
  return job;
end;
$$;

comment on function rag.lock_job is
  'The job of the token''s lease, locked; kind: only one of that kind. PT409 when the lease is lost: the job was claimed '
  'again, or its document was replaced or deleted, or the user no longer sees it. with_document: the document is locked '
  'too.';
