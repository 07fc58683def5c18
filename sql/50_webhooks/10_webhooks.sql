-- Webhooks: subscriptions of an org's admins to changes of collections and documents. An event is written in the
-- transaction of the change, one row for each endpoint (20_webhook_outbox.sql, 30_webhook_events.sql); the worker sends
-- it (40_claim_deliveries.sql). Events contain ids, states and names of collections, never the text of a document.

create table rag.webhooks (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  owner_id uuid check (owner_id is null),
  collection_id uuid,
  events text[] not null check (array_ndims(events) = 1 and cardinality(events) between 1 and 9
    and events <@ array['collection.created', 'collection.updated', 'collection.deleted',
      'document.processing_started', 'document.processing_completed', 'document.processing_failed',
      'document.deleted', 'quota.alert', 'quota.exceeded']),
  enabled boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id)
);

comment on table rag.webhooks is 'Subscriptions to events. Members read them, because their changes cause the events.';
comment on column rag.webhooks.owner_id is
  'Always null: webhooks belong to the org, and its admins manage them.';
comment on column rag.webhooks.collection_id is
  'Null is every collection. The webhook of a deleted collection remains, so that it gets the event of the '
  'deletion.';
comment on column rag.webhooks.enabled is
  'Off, by an admin, or by the worker after days without a response. Waiting deliveries then end.';

-- As a type, because a trigger may move the secret to Vault before the table checks its row.
create domain rag.webhook_secret as text check (value ~ '^whsec_[A-Za-z0-9+/]{43}=$');

comment on domain rag.webhook_secret is 'The signing secret of a webhook.';

create table rag.endpoints (
  org_id uuid not null,
  webhook_id uuid not null,
  owner_id uuid check (owner_id is null),
  url text not null check (length(url) <= 2000 and url ~ '^https?://[^[:space:]]+$' and rag.is_visible_text(url)),
  description text check (length(description) <= 500 and rag.is_visible_text(description)),
  secret rag.webhook_secret,
  secret_id uuid,
  old_secret rag.webhook_secret,
  old_secret_id uuid,
  old_secret_until timestamptz,
  failing_since timestamptz,
  paused_until timestamptz,
  primary key (org_id, webhook_id),
  check (num_nonnulls(secret, secret_id) = 1),
  foreign key (org_id, webhook_id) references rag.webhooks (org_id, id) on delete cascade
);

comment on table rag.endpoints is
  'Addresses and signing secrets of webhooks. A secret is returned once, when it is created; after that only the '
  'worker reads it.';
comment on column rag.endpoints.secret is 'The signing secret, in a project without Vault; the next column: its id in Vault.';
comment on column rag.endpoints.old_secret is
  'The previous secret, while both secrets sign; the next column: its id in Vault.';
comment on column rag.endpoints.failing_since is
  'The time of the first failure since the last success; the next column: the end of the pause before a new attempt.';

-- Expired old secrets.
create index endpoints_old_secrets on rag.endpoints (old_secret_until)
  where old_secret is not null or old_secret_id is not null;

call rag.admit_members('webhooks');
call rag.admit_members('endpoints');

-- A key that is bound to a collection manages no webhooks: it would choose the events that others receive.
create policy "admins make webhooks" on rag.webhooks
  as restrictive for insert to authenticated
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins change webhooks" on rag.webhooks
  as restrictive for update to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins delete webhooks" on rag.webhooks
  as restrictive for delete to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins alone see where webhooks lead" on rag.endpoints
  as restrictive for all to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "the worker sees subscriptions" on rag.webhooks
  for select to rag_worker using (true);

create policy "the worker disables failing webhooks" on rag.webhooks
  for update to rag_worker using (enabled) with check (not enabled);

create policy "the worker knows where webhooks lead" on rag.endpoints
  for select to rag_worker using (true);

create policy "the worker records the results of endpoints" on rag.endpoints
  for update to rag_worker using (true) with check (true);

create function rag.store_old_secret()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  new.old_secret := case when new.old_secret_until > now() then old.secret end;
  new.old_secret_id := case when new.old_secret_until > now() then old.secret_id end;
  return new;
end;
$$;

comment on function rag.store_old_secret is
  'Trigger that keeps the previous secret while both are valid. The admin who rotates a secret cannot read it.';

-- The admin who rotates a secret cannot read the old one.
create trigger keep_old_secret before update on rag.endpoints
  for each row when (new.secret is not null and new.secret is distinct from old.secret)
  execute function rag.store_old_secret();

-- After keep_old_secret: triggers run in the order of their names.
create trigger store_in_vault before insert or update on rag.endpoints
  for each row execute function rag.store_in_vault('secret', 'old_secret');

create trigger erase_from_vault after update or delete on rag.endpoints
  for each row execute function rag.erase_from_vault('secret', 'old_secret');
