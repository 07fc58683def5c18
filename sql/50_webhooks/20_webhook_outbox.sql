-- Deliveries: the outbox of webhooks, with the result of each event's last attempt.

create table rag.deliveries (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  webhook_id uuid not null,
  collection_id uuid,
  owner_id uuid,
  event_id uuid not null,
  event text not null check (event in ('collection.created', 'collection.updated', 'collection.deleted',
    'document.processing_started', 'document.processing_completed', 'document.processing_failed',
    'document.deleted', 'quota.alert', 'quota.exceeded')),
  object jsonb not null check (jsonb_typeof(object) = 'object' and pg_column_size(object) <= 10000),
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed')),
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  lease uuid,
  response_status integer check (response_status between 100 and 999),
  error text check (error ~ '^[a-z_]{1,40}$'),
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (org_id, id),
  foreign key (org_id, webhook_id) references rag.webhooks (org_id, id) on delete cascade,
  check ((state = 'running') = (lease is not null))
);

comment on table rag.deliveries is 'The outbox of webhooks, and the results of its deliveries.';
comment on column rag.deliveries.collection_id is 'Null for events of a quota.';
comment on column rag.deliveries.owner_id is 'The owner of the document that the event is about.';
comment on column rag.deliveries.event_id is 'The id of the event, equal for all its addresses.';
comment on column rag.deliveries.due_at is
  'Not before this. While it is being sent: when its lease ends and any worker may send it again.';
comment on column rag.deliveries.response_status is
  'The response to the last attempt, if there was one, and why the attempt failed.';

-- rag_list_deliveries, newest first; deleting a webhook.
create index deliveries_by_webhook on rag.deliveries (org_id, webhook_id, created_at);

-- rag_claim_deliveries: the webhooks with deliveries, and the due ones of each.
create index deliveries_due on rag.deliveries (org_id, webhook_id, due_at) where state in ('waiting', 'running');

-- rag.clear_deliveries: finished deliveries that are too old to show.
create index deliveries_finished on rag.deliveries (finished_at) where finished_at is not null;

call rag.admit_members('deliveries');

-- The user who causes an event writes its deliveries, without seeing them.
create policy "who changes something has it told" on rag.deliveries
  as restrictive for insert to authenticated
  with check ((event in ('quota.alert', 'quota.exceeded')
      or (select rag.has_scope('documents:write', 'collections:manage'))
      and ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection())))
    and state = 'waiting' and attempts = 0);

create policy "admins see deliveries" on rag.deliveries
  as restrictive for select to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins have it told again" on rag.deliveries
  as restrictive for update to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (state = 'waiting' and attempts = 0);

create policy "the worker sends deliveries" on rag.deliveries
  for all to rag_worker using (true) with check (true);
