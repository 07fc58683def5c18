-- Webhooks: what happens to collections and documents, told to addresses that an org's admins name: sql/30, 31, 33,
-- 51 and 52, which are new, and the function's name in 40.

alter table rag.request_counts
  drop constraint request_counts_function_check,
  add constraint request_counts_function_check check (
    function in ('rag-search', 'rag-answer', 'api-keys', 'collections', 'documents', 'webhooks'));

-- Who outside is told when collections and documents change. An org's admins name an address and the events; what
-- happens is written down in the transaction in which it happens, one row for each address (31_deliveries.sql,
-- 33_tell.sql), and the worker sends it (51_deliver.sql). What is told is ids, states and the names of collections,
-- never what a document says.

-- What is listened for. Members read it, since it is their changes that are told; where it goes they do not.
create table rag.webhooks (
  org_id uuid not null references rag.orgs (id) on delete cascade,
  id uuid not null default gen_random_uuid(),
  -- Nobody's own: an org's admins, who see all of its documents, keep them together.
  owner_id uuid check (owner_id is null),
  -- Null is every collection. Of one that has gone the webhook is left, to be told so.
  collection_id uuid,
  events text[] not null check (array_ndims(events) = 1 and cardinality(events) between 1 and 7
    and events <@ array['collection.created', 'collection.updated', 'collection.deleted',
      'document.processing_started', 'document.processing_completed', 'document.processing_failed',
      'document.deleted']),
  -- Off, by an admin, or by the worker when nobody has answered there for days. What waits then ends.
  enabled boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, id)
);

-- Where it goes, and what it is signed with. The secret is shown to who makes it, once; only the worker reads it.
create table rag.endpoints (
  org_id uuid not null,
  webhook_id uuid not null,
  owner_id uuid check (owner_id is null),
  url text not null check (length(url) <= 2000 and url ~ '^https?://[^[:space:]]+$' and rag.shows_only(url)),
  description text check (length(description) <= 500 and rag.shows_only(description)),
  secret text not null check (secret ~ '^whsec_[A-Za-z0-9+/]{43}=$'),
  -- The one before, for as long as both sign.
  old_secret text check (old_secret ~ '^whsec_[A-Za-z0-9+/]{43}=$'),
  old_secret_until timestamptz,
  -- Since when nothing has arrived there, and how long it is left alone for that.
  failing_since timestamptz,
  rests_until timestamptz,
  primary key (org_id, webhook_id),
  foreign key (org_id, webhook_id) references rag.webhooks (org_id, id) on delete cascade
);

-- Old secrets whose time is over.
create index endpoints_old_secrets on rag.endpoints (old_secret_until) where old_secret is not null;

alter table rag.webhooks enable row level security;
alter table rag.webhooks force row level security;
alter table rag.endpoints enable row level security;
alter table rag.endpoints force row level security;

create policy "members use their org's webhooks" on rag.webhooks
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

create policy "members use their org's endpoints" on rag.endpoints
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

-- A key that is bound to a collection keeps no webhooks: it would choose what others are told.
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

create policy "the worker sees what is listened for" on rag.webhooks
  for select to rag_worker using (true);

create policy "the worker turns off what nobody hears" on rag.webhooks
  for update to rag_worker using (enabled) with check (not enabled);

create policy "the worker knows where webhooks lead" on rag.endpoints
  for select to rag_worker using (true);

create policy "the worker notes whether anybody answers" on rag.endpoints
  for update to rag_worker using (true) with check (true);

create function rag.keep_old_secret()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  new.old_secret := case when new.old_secret_until > now() then old.secret end;
  return new;
end;
$$;

-- Who has it renewed cannot read it.
create trigger keep_old_secret before update on rag.endpoints
  for each row when (new.secret <> old.secret) execute function rag.keep_old_secret();

revoke all on function rag.keep_old_secret() from public, anon, service_role;
grant execute on function rag.keep_old_secret() to authenticated;

grant select, insert, delete on rag.webhooks to authenticated;
grant update (events, enabled, updated_at) on rag.webhooks to authenticated;
grant select (org_id, webhook_id, owner_id, url, description, failing_since, rests_until)
  on rag.endpoints to authenticated;
grant insert (org_id, webhook_id, url, description, secret) on rag.endpoints to authenticated;
grant update (url, description, secret, old_secret_until, failing_since, rests_until)
  on rag.endpoints to authenticated;
grant select on rag.webhooks, rag.endpoints to rag_worker;
grant update (enabled, updated_at) on rag.webhooks to rag_worker;
grant update (old_secret, failing_since, rests_until) on rag.endpoints to rag_worker;

-- The outbox of webhooks: what is to be sent, and what became of it.
create table rag.deliveries (
  org_id uuid not null,
  id uuid not null default gen_random_uuid(),
  webhook_id uuid not null,
  collection_id uuid not null,
  -- Of the document that it tells of.
  owner_id uuid,
  -- The same for every address that is told.
  event_id uuid not null,
  event text not null check (event in ('collection.created', 'collection.updated', 'collection.deleted',
    'document.processing_started', 'document.processing_completed', 'document.processing_failed',
    'document.deleted')),
  object jsonb not null check (jsonb_typeof(object) = 'object' and pg_column_size(object) <= 10000),
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed')),
  attempts integer not null default 0,
  -- Not before this. While it is being sent: when its lease ends, and anybody may send it again.
  due_at timestamptz not null default now(),
  lease uuid,
  -- What the last attempt was answered, if anybody answered, and why it was not enough.
  response_status integer check (response_status between 100 and 999),
  error text check (error ~ '^[a-z_]{1,40}$'),
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  primary key (org_id, id),
  foreign key (org_id, webhook_id) references rag.webhooks (org_id, id) on delete cascade,
  check ((state = 'running') = (lease is not null))
);

-- rag_list_deliveries, newest first; deleting a webhook.
create index deliveries_by_webhook on rag.deliveries (org_id, webhook_id, created_at);

-- rag_claim_deliveries: whose there are, and of each what is due.
create index deliveries_due on rag.deliveries (org_id, webhook_id, due_at) where state in ('waiting', 'running');

-- And what is so old that nobody asks for it.
create index deliveries_finished on rag.deliveries (finished_at) where finished_at is not null;

alter table rag.deliveries enable row level security;
alter table rag.deliveries force row level security;

create policy "members use their org's deliveries" on rag.deliveries
  for all to authenticated
  using (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))))
  with check (org_id = any (array(select rag.current_org_ids()))
    and (owner_id is null or owner_id = (select auth.uid())
      or org_id = any (array(select rag.admin_org_ids()))));

-- Whoever changes something has it told, and need not see it told.
create policy "who changes something has it told" on rag.deliveries
  as restrictive for insert to authenticated
  with check ((select rag.has_scope('documents:write', 'collections:manage'))
    and ((select rag.bound_collection()) is null or collection_id = (select rag.bound_collection()))
    and state = 'waiting' and attempts = 0);

create policy "admins see what was told" on rag.deliveries
  as restrictive for select to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null);

create policy "admins have it told again" on rag.deliveries
  as restrictive for update to authenticated
  using (org_id = any (array(select rag.admin_org_ids())) and (select rag.bound_collection()) is null)
  with check (state = 'waiting' and attempts = 0);

create policy "the worker sends deliveries" on rag.deliveries
  for all to rag_worker using (true) with check (true);

grant select on rag.deliveries to authenticated;
grant insert (org_id, webhook_id, collection_id, owner_id, event_id, event, object)
  on rag.deliveries to authenticated;
grant update (state, attempts, due_at, response_status, error, finished_at) on rag.deliveries to authenticated;
grant select, delete on rag.deliveries to rag_worker;
grant insert (org_id, webhook_id, collection_id, owner_id, event_id, event, object) on rag.deliveries to rag_worker;
grant update (state, attempts, due_at, lease, response_status, error, finished_at)
  on rag.deliveries to rag_worker;

-- What happens to collections and documents is told by who makes it happen, in the same transaction: neither is
-- there without the other. At its end, when a document's chunks can be counted and it is plain what went with what.

-- Whether anybody listens for that.
create function rag.is_awaited(org_id uuid, collection_id uuid, event text)
returns boolean
language sql stable security invoker set search_path = ''
as $$
  select exists (
    select from rag.webhooks
    where webhooks.org_id = is_awaited.org_id and enabled and event = any (events)
      and (webhooks.collection_id is null or webhooks.collection_id = is_awaited.collection_id));
$$;

-- To everybody who does. A webhook that is deleted meanwhile is told nothing, and whoever changes something is not
-- kept from it.
create function rag.tell(org_id uuid, collection_id uuid, owner_id uuid, event text, object jsonb)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  event_id constant uuid := gen_random_uuid();
begin
  loop
    begin
      insert into rag.deliveries (org_id, webhook_id, collection_id, owner_id, event_id, event, object)
      select tell.org_id, webhooks.id, tell.collection_id, tell.owner_id, event_id, tell.event, object
      from rag.webhooks
      where webhooks.org_id = tell.org_id and enabled and tell.event = any (events)
        and (webhooks.collection_id is null or webhooks.collection_id = tell.collection_id);
      return;
    exception when foreign_key_violation then
      -- It has gone by now: the next look does not see it.
      null;
    end;
  end loop;
end;
$$;

create function rag.tell_of_collection()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  collection constant rag.collections := coalesce(new, old);
  event constant text := case tg_op
    when 'INSERT' then 'collection.created' when 'UPDATE' then 'collection.updated'
    else 'collection.deleted' end;
begin
  if rag.is_awaited(collection.org_id, collection.id, event) then
    perform rag.tell(collection.org_id, collection.id, collection.owner_id, event,
      jsonb_build_object('id', collection.id, 'name', collection.name));
  end if;
  return null;
end;
$$;

create function rag.tell_of_document()
returns trigger
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  document constant rag.documents := coalesce(new, old);
  event constant text := case
    when tg_op = 'DELETE' then 'document.deleted'
    when document.status = 'processing' then 'document.processing_started'
    else 'document.processing_' || document.status end;
  object jsonb := jsonb_build_object(
    'id', document.id, 'collection_id', document.collection_id, 'status', document.status);
begin
  if not rag.is_awaited(document.org_id, document.collection_id, event) then
    return null;
  elsif event = 'document.processing_completed' then
    object := object || jsonb_build_object('chunk_count', (
      select count(*) from rag.chunks
      where chunks.org_id = document.org_id and chunks.document_id = document.id));
  elsif event = 'document.processing_failed' then
    object := object || jsonb_build_object(
      'error_code', document.error_code, 'error_message', document.error_message);
  elsif event = 'document.deleted' and not exists (
    select from rag.collections
    where collections.org_id = document.org_id and collections.id = document.collection_id)
  then
    -- It went with its collection, of which is told.
    return null;
  end if;
  perform rag.tell(document.org_id, document.collection_id, document.owner_id, event, object);
  return null;
end;
$$;

create constraint trigger tell_of_collection
  after insert or update or delete on rag.collections
  deferrable initially deferred for each row execute function rag.tell_of_collection();

create constraint trigger tell_of_document
  after insert or update of status or delete on rag.documents
  deferrable initially deferred for each row execute function rag.tell_of_document();

revoke all on function rag.is_awaited(uuid, uuid, text), rag.tell(uuid, uuid, uuid, text, jsonb),
  rag.tell_of_collection(), rag.tell_of_document() from public, anon, service_role;
-- The worker gives documents up, of which is told too.
grant execute on function rag.is_awaited(uuid, uuid, text), rag.tell(uuid, uuid, uuid, text, jsonb)
  to authenticated, rag_worker;
grant execute on function rag.tell_of_collection(), rag.tell_of_document() to authenticated;

-- What the worker does with the outbox of webhooks: it claims what is due, sends it, and says what came of it. All of
-- it under the worker's own role, in no user's name.

-- What nobody needs any more: deliveries that ended a month ago, what waits for webhooks that are off, old secrets.
create function rag.clear_deliveries()
returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from rag.deliveries
  using (
    select ended.org_id, ended.id
    from rag.deliveries as ended
    where ended.finished_at < now() - interval '30 days'
    limit 1000
    for update skip locked
  ) as forgotten
  where deliveries.org_id = forgotten.org_id and deliveries.id = forgotten.id;

  update rag.deliveries
  set state = 'failed', error = 'webhook_disabled', finished_at = clock_timestamp()
  from (
    select waiting.org_id, waiting.id
    from rag.webhooks
    cross join lateral (
      select deliveries.org_id, deliveries.id
      from rag.deliveries
      where deliveries.org_id = webhooks.org_id and deliveries.webhook_id = webhooks.id
        and deliveries.state = 'waiting'
      limit 1000
      for update skip locked
    ) as waiting
    where not webhooks.enabled
    limit 1000
  ) as unheard
  where deliveries.org_id = unheard.org_id and deliveries.id = unheard.id;

  update rag.endpoints set old_secret = null where old_secret is not null and old_secret_until <= now();
$$;

-- What is due, in the order in which it is sent: of each org as many as of any other, within it of each address as
-- many as of any other, those first that wait longest. Of an address where nothing has arrived of late one, to try it
-- with.
create function rag.due_deliveries(wanted integer)
returns table (org_id uuid, id uuid, place bigint)
language sql stable security invoker set search_path = ''
as $$
  with recursive busy (org_id, webhook_id) as (
    -- The next address with something to send, by the index: there may be much for few.
    (select first.org_id, first.webhook_id
      from rag.deliveries as first
      where first.state in ('waiting', 'running')
      order by first.org_id, first.webhook_id
      limit 1)
    union all
    select next.org_id, next.webhook_id
    from busy
    cross join lateral (
      select deliveries.org_id, deliveries.webhook_id
      from rag.deliveries
      where deliveries.state in ('waiting', 'running')
        and (deliveries.org_id, deliveries.webhook_id) > (busy.org_id, busy.webhook_id)
      order by deliveries.org_id, deliveries.webhook_id
      limit 1
    ) as next
  ), due as (
    select found.*, row_number() over (partition by found.org_id, found.webhook_id order by found.due_at) as turn
    from busy
    join rag.webhooks on webhooks.org_id = busy.org_id and webhooks.id = busy.webhook_id and webhooks.enabled
    join rag.endpoints on endpoints.org_id = busy.org_id and endpoints.webhook_id = busy.webhook_id
    cross join lateral (
      select deliveries.org_id, deliveries.webhook_id, deliveries.id, deliveries.due_at
      from rag.deliveries
      where deliveries.org_id = busy.org_id and deliveries.webhook_id = busy.webhook_id
        and deliveries.state in ('waiting', 'running') and deliveries.due_at <= now()
      -- By nothing else: the index has no more, and what happens at once is due at once.
      order by deliveries.due_at
      limit case when endpoints.failing_since is null then wanted else 1 end
    ) as found
    where coalesce(endpoints.rests_until, '-infinity') <= now()
  ), of_orgs as (
    select due.*, row_number() over (partition by due.org_id order by due.turn, due.due_at) as org_turn
    from due
  )
  select of_orgs.org_id, of_orgs.id, row_number() over (order by of_orgs.org_turn, of_orgs.due_at)
  from of_orgs;
$$;

-- Deliveries that are due, leased, with where they go and what they are signed with. One that nobody ever ended, in
-- sixteen attempts, ends here.
create function public.rag_claim_deliveries(wanted integer default 16, lease_seconds integer default 60)
returns table (
  org_id uuid, delivery_id uuid, lease uuid, attempts integer, event_id uuid, event text, object jsonb,
  created_at timestamptz, url text, secret text, old_secret text
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  if wanted is null or wanted not between 1 and 100
    or lease_seconds is null or lease_seconds not between 5 and 3600
  then
    raise exception 'so many deliveries, or so long, nobody may have'
      using errcode = 'PT400', detail = 'invalid_claim';
  end if;
  perform rag.clear_deliveries();

  return query
  with locked as materialized (
    select deliveries.org_id, deliveries.id
    from (select due.* from rag.due_deliveries(wanted) as due order by due.place limit 4 * wanted) as due
    cross join lateral (
      select deliveries.org_id, deliveries.id
      from rag.deliveries
      where deliveries.org_id = due.org_id and deliveries.id = due.id
        and deliveries.state in ('waiting', 'running') and deliveries.due_at <= now()
      for update skip locked
    ) as deliveries
    limit wanted
  ), claimed as (
    update rag.deliveries as claimed
    set state = case when claimed.attempts < 16 then 'running' else 'failed' end,
      lease = case when claimed.attempts < 16 then gen_random_uuid() end,
      error = case when claimed.attempts < 16 then claimed.error else 'failed' end,
      finished_at = case when claimed.attempts >= 16 then clock_timestamp() end,
      attempts = claimed.attempts + 1, due_at = clock_timestamp() + make_interval(secs => lease_seconds)
    from locked
    where claimed.org_id = locked.org_id and claimed.id = locked.id
    returning claimed.*
  )
  select claimed.org_id, claimed.id, claimed.lease, claimed.attempts, claimed.event_id, claimed.event,
    claimed.object, claimed.created_at, endpoints.url, endpoints.secret,
    case when endpoints.old_secret_until > now() then endpoints.old_secret end
  from claimed
  join rag.endpoints on endpoints.org_id = claimed.org_id and endpoints.webhook_id = claimed.webhook_id
  where claimed.lease is not null;
end;
$$;

-- What became of an attempt: error null is delivered. retry_seconds: after which to try again; null: never. Nothing is
-- changed by whoever has lost the lease. An address that fails is left alone for as long as it has failed, between
-- five seconds and an hour; after five days of it, or when it says that it is gone, its webhook is turned off.
create function public.rag_end_delivery(
  org_id uuid, delivery_id uuid, lease uuid, response_status integer default null, error text default null,
  retry_seconds integer default null
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  webhook constant uuid := (
    select deliveries.webhook_id from rag.deliveries
    where deliveries.org_id = rag_end_delivery.org_id and deliveries.id = delivery_id);
  endpoint rag.endpoints;
  since timestamptz;
begin
  -- In the order in which whoever changes or deletes a webhook locks them.
  perform from rag.webhooks
  where webhooks.org_id = rag_end_delivery.org_id and webhooks.id = webhook
  for no key update;
  select * into endpoint
  from rag.endpoints
  where endpoints.org_id = rag_end_delivery.org_id and endpoints.webhook_id = webhook
  for update;
  update rag.deliveries
  set state = case when error is null then 'done' when retry_seconds is null then 'failed' else 'waiting' end,
    lease = null, response_status = rag_end_delivery.response_status, error = rag_end_delivery.error,
    due_at = clock_timestamp() + make_interval(secs => coalesce(retry_seconds, 0)),
    finished_at = case when error is null or retry_seconds is null then clock_timestamp() end
  where deliveries.org_id = rag_end_delivery.org_id and deliveries.id = delivery_id
    and deliveries.state = 'running' and deliveries.lease = rag_end_delivery.lease;
  if not found then
    return false;
  end if;

  if error is not null then
    -- Attempts are a day apart at most: a failure after a longer silence is a new one.
    since := coalesce(
      case when endpoint.rests_until > clock_timestamp() - interval '26 hours' then endpoint.failing_since end,
      clock_timestamp());
  end if;
  if error is not null or endpoint.failing_since is not null then
    update rag.endpoints
    set failing_since = since, rests_until = case when since is not null then clock_timestamp()
      + least(greatest(clock_timestamp() - since, interval '5 seconds'), interval '1 hour') end
    where endpoints.org_id = rag_end_delivery.org_id and endpoints.webhook_id = webhook;
  end if;
  if response_status = 410 or since < clock_timestamp() - interval '5 days' then
    update rag.webhooks set enabled = false, updated_at = clock_timestamp()
    where webhooks.org_id = rag_end_delivery.org_id and webhooks.id = webhook and webhooks.enabled;
  end if;
  return true;
end;
$$;

revoke all on function rag.clear_deliveries(), rag.due_deliveries(integer),
  public.rag_claim_deliveries(integer, integer),
  public.rag_end_delivery(uuid, uuid, uuid, integer, text, integer)
  from public, anon, authenticated, service_role;
grant execute on function rag.clear_deliveries(), rag.due_deliveries(integer),
  public.rag_claim_deliveries(integer, integer),
  public.rag_end_delivery(uuid, uuid, uuid, integer, text, integer) to rag_worker;

-- What an org's admins do with webhooks. All of it runs as its caller; for everybody else there are none.

-- What a list shows of a webhook. (Its secret is nobody's to read.)
create type rag.webhook as (
  id uuid, org_id uuid, url text, description text, events text[], collection_id uuid, enabled boolean,
  failing_since timestamptz, created_at timestamptz, updated_at timestamptz
);

-- Those that the caller keeps, or the one.
create function public.rag_list_webhooks(webhook_id uuid default null)
returns setof rag.webhook
language sql stable security invoker set search_path = ''
as $$
  select webhooks.id, webhooks.org_id, endpoints.url, endpoints.description, webhooks.events,
    webhooks.collection_id, webhooks.enabled, endpoints.failing_since, webhooks.created_at, webhooks.updated_at
  from rag.webhooks
  join rag.endpoints on endpoints.org_id = webhooks.org_id and endpoints.webhook_id = webhooks.id
  where webhooks.org_id = any (array(select rag.current_org_ids()))
    and (rag_list_webhooks.webhook_id is null or webhooks.id = rag_list_webhooks.webhook_id)
  order by webhooks.created_at, webhooks.id;
$$;

-- The one of that id; PT404 for one that the caller does not keep.
create function rag.webhook_of(webhook_id uuid)
returns rag.webhook
language plpgsql stable security invoker set search_path = ''
as $$
declare
  found_webhook rag.webhook;
begin
  select * into found_webhook from public.rag_list_webhooks(webhook_of.webhook_id) where webhook_id is not null;
  if not found then
    raise exception 'there is no such webhook' using errcode = 'PT404', detail = 'webhook_not_found';
  end if;
  return found_webhook;
end;
$$;

-- A new webhook of the caller's only org, unless it is named. collection_id: only what happens in and to that one.
-- PT403 for who is no admin of it, PT400 for the twenty-first.
create function public.rag_create_webhook(
  url text, secret text, events text[], collection_id uuid default null, description text default null,
  org_id uuid default null
)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  home rag.collections;
  made uuid;
begin
  if collection_id is not null then
    home := rag.collection_of(collection_id);
    org_id := coalesce(org_id, home.org_id);
  end if;
  org_id := rag.org_meant(org_id);
  if org_id not in (select rag.admin_org_ids()) or rag.bound_collection() is not null then
    raise exception 'webhooks are for the org''s admins' using errcode = 'PT403', detail = 'admin_required';
  elsif home.org_id <> org_id then
    raise exception 'there is no such collection' using errcode = 'PT404', detail = 'collection_not_found';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('rag.webhooks ' || org_id::text, 0));
  if 20 <= (select count(*) from rag.webhooks where webhooks.org_id = rag_create_webhook.org_id) then
    raise exception 'there are 20 webhooks already; delete one first'
      using errcode = 'PT400', detail = 'too_many_webhooks';
  end if;
  insert into rag.webhooks (org_id, collection_id, events) values (org_id, collection_id, events)
  returning id into made;
  insert into rag.endpoints (org_id, webhook_id, url, description, secret)
  values (org_id, made, url, description, secret);
  return query select * from public.rag_list_webhooks(made);
end;
$$;

-- Null leaves a field as it is. A webhook that is turned on again begins anew.
create function public.rag_update_webhook(
  webhook_id uuid, url text default null, events text[] default null, description text default null,
  enabled boolean default null
)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  present constant rag.webhook := rag.webhook_of(webhook_id);
  anew constant boolean := coalesce(enabled, url is not null);
begin
  update rag.webhooks as renewed
  set events = coalesce(rag_update_webhook.events, renewed.events),
    enabled = coalesce(rag_update_webhook.enabled, renewed.enabled), updated_at = clock_timestamp()
  where renewed.org_id = present.org_id and renewed.id = present.id;
  update rag.endpoints as renewed
  set url = coalesce(rag_update_webhook.url, renewed.url),
    description = coalesce(rag_update_webhook.description, renewed.description),
    failing_since = case when not anew then renewed.failing_since end,
    rests_until = case when not anew then renewed.rests_until end
  where renewed.org_id = present.org_id and renewed.webhook_id = present.id;
  return query select * from public.rag_list_webhooks(webhook_id);
end;
$$;

-- Another secret; the one before signs beside it for so long.
create function public.rag_rotate_webhook(webhook_id uuid, secret text, overlap_seconds integer default 86400)
returns setof rag.webhook
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  present constant rag.webhook := rag.webhook_of(webhook_id);
begin
  if overlap_seconds is null or overlap_seconds not between 0 and 604800 then
    raise exception 'overlap_seconds must be between 0 and 604800'
      using errcode = 'PT400', detail = 'invalid_overlap';
  end if;
  update rag.endpoints as renewed
  set secret = rag_rotate_webhook.secret,
    old_secret_until = now() + make_interval(secs => overlap_seconds)
  where renewed.org_id = present.org_id and renewed.webhook_id = present.id;
  return query select * from public.rag_list_webhooks(webhook_id);
end;
$$;

create function public.rag_delete_webhook(webhook_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  gone constant rag.webhook := rag.webhook_of(webhook_id);
begin
  delete from rag.webhooks where webhooks.org_id = gone.org_id and webhooks.id = gone.id;
end;
$$;

-- {"total", "deliveries": [...]}: what was sent, or is to be, the newest first.
create function public.rag_list_deliveries(
  webhook_id uuid, "limit" integer default 20, "offset" integer default 0
)
returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  webhook constant rag.webhook := rag.webhook_of(webhook_id);
begin
  perform rag.check_page("limit", "offset", 'desc', 'created_at', array['created_at']);
  return (
    with page as (
      select deliveries.id, deliveries.event_id, deliveries.event, deliveries.object, deliveries.state,
        deliveries.attempts, deliveries.response_status, deliveries.error, deliveries.created_at,
        deliveries.finished_at, deliveries.due_at
      from rag.deliveries
      where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
      order by deliveries.created_at desc, deliveries.id
      limit "limit" offset "offset"
    )
    select jsonb_build_object(
      'total', (select count(*) from rag.deliveries
        where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id),
      'deliveries', coalesce(jsonb_agg(to_jsonb(page) order by page.created_at desc, page.id), '[]'))
    from page);
end;
$$;

-- Have one sent again that has ended, however it ended. PT404 for one that there is not, PT409 for one that is still
-- under way, and while the webhook is off.
create function public.rag_repeat_delivery(webhook_id uuid, delivery_id uuid)
returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  webhook constant rag.webhook := rag.webhook_of(webhook_id);
begin
  if not webhook.enabled then
    raise exception 'the webhook is off' using errcode = 'PT409', detail = 'webhook_disabled';
  end if;
  update rag.deliveries
  set state = 'waiting', attempts = 0, due_at = now(), response_status = null, error = null, finished_at = null
  where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
    and deliveries.id = delivery_id and deliveries.state in ('done', 'failed');
  if found then
    return;
  elsif exists (
    select from rag.deliveries
    where deliveries.org_id = webhook.org_id and deliveries.webhook_id = webhook.id
      and deliveries.id = delivery_id)
  then
    raise exception 'it is still under way' using errcode = 'PT409', detail = 'delivery_under_way';
  end if;
  raise exception 'there is no such delivery' using errcode = 'PT404', detail = 'delivery_not_found';
end;
$$;

revoke all on function rag.webhook_of(uuid), public.rag_list_webhooks(uuid),
  public.rag_create_webhook(text, text, text[], uuid, text, uuid),
  public.rag_update_webhook(uuid, text, text[], text, boolean), public.rag_rotate_webhook(uuid, text, integer),
  public.rag_delete_webhook(uuid), public.rag_list_deliveries(uuid, integer, integer),
  public.rag_repeat_delivery(uuid, uuid)
  from public, anon, service_role;
grant execute on function rag.webhook_of(uuid), public.rag_list_webhooks(uuid),
  public.rag_create_webhook(text, text, text[], uuid, text, uuid),
  public.rag_update_webhook(uuid, text, text[], text, boolean), public.rag_rotate_webhook(uuid, text, integer),
  public.rag_delete_webhook(uuid), public.rag_list_deliveries(uuid, integer, integer),
  public.rag_repeat_delivery(uuid, uuid)
  to authenticated;
