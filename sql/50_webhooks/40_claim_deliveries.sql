-- Functions that the worker calls to claim and end deliveries, under its own role.
-- shared/documents/webhook_delivery_attempts.py sends them, and decides when to try again.

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
  ) as expired
  where deliveries.org_id = expired.org_id and deliveries.id = expired.id;

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
  ) as undeliverable
  where deliveries.org_id = undeliverable.org_id and deliveries.id = undeliverable.id;

  update rag.endpoints set old_secret = null, old_secret_id = null
  where (old_secret is not null or old_secret_id is not null) and old_secret_until <= now();
$$;

comment on function rag.clear_deliveries is
  'Delete deliveries that ended a month ago, those that wait for disabled webhooks, and old '
  'secrets.';

create function rag.due_deliveries(max_items integer)
returns table (org_id uuid, id uuid, rank bigint)
language sql stable security invoker set search_path = ''
as $$
  with recursive busy (org_id, webhook_id) as (
    -- The next address with due deliveries, by the index: there may be many deliveries for few addresses.
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
    select delivery.*, row_number() over (partition by delivery.org_id, delivery.webhook_id order by delivery.due_at) as turn
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
      limit case when endpoints.failing_since is null then max_items else 1 end
    ) as delivery
    where coalesce(endpoints.paused_until, '-infinity') <= now()
      and busy.org_id <> all (array(select rag.paused_org_ids()))
  ), of_orgs as (
    select due.*, row_number() over (partition by due.org_id order by due.turn, due.due_at) as org_turn
    from due
  )
  select of_orgs.org_id, of_orgs.id, row_number() over (order by of_orgs.org_turn, of_orgs.due_at)
  from of_orgs;
$$;

comment on function rag.due_deliveries is
  'Due deliveries in the order of their claim: the same number of every org that is not paused, and of every address '
  'of an org, the longest waiting first. For an address that has failed recently, only one delivery.';

create function public.rag_claim_deliveries(max_items integer default 16, lease_seconds integer default 60)
returns table (
  org_id uuid, delivery_id uuid, lease uuid, attempts integer, event_id uuid, event text, object jsonb,
  created_at timestamptz, url text, secret text, old_secret text
)
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_column
begin
  perform rag.check_claim(max_items, lease_seconds);
  perform rag.clear_deliveries();

  return query
  with locked as materialized (
    select deliveries.org_id, deliveries.id
    from (select due.* from rag.due_deliveries(max_items) as due order by due.rank limit 4 * max_items) as due
    cross join lateral (
      select deliveries.org_id, deliveries.id
      from rag.deliveries
      where deliveries.org_id = due.org_id and deliveries.id = due.id
        and deliveries.state in ('waiting', 'running') and deliveries.due_at <= now()
      for update skip locked
    ) as deliveries
    limit max_items
  ), claimed as (
    update rag.deliveries as claimed
    set state = case when claimed.attempts < rag.max_attempts() then 'running' else 'failed' end,
      lease = case when claimed.attempts < rag.max_attempts() then gen_random_uuid() end,
      error = case when claimed.attempts < rag.max_attempts() then claimed.error else 'failed' end,
      finished_at = case when claimed.attempts >= rag.max_attempts() then clock_timestamp() end,
      attempts = claimed.attempts + 1, due_at = clock_timestamp() + make_interval(secs => lease_seconds)
    from locked
    where claimed.org_id = locked.org_id and claimed.id = locked.id
    returning claimed.*
  )
  select claimed.org_id, claimed.id, claimed.lease, claimed.attempts, claimed.event_id, claimed.event,
    claimed.object, claimed.created_at, endpoints.url,
    coalesce(endpoints.secret, rag.secret_in_vault(endpoints.secret_id)),
    case when endpoints.old_secret_until > now()
      then coalesce(endpoints.old_secret, rag.secret_in_vault(endpoints.old_secret_id)) end
  from claimed
  join rag.endpoints on endpoints.org_id = claimed.org_id and endpoints.webhook_id = claimed.webhook_id
  where claimed.lease is not null;
end;
$$;

comment on function public.rag_claim_deliveries is
  'Lease due deliveries, for the worker, with their address and the secrets that sign them. After '
  'rag.max_attempts() attempts without a result a delivery fails.';

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
  -- In the order in which changing and deleting a webhook lock them.
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
      case when endpoint.paused_until > clock_timestamp() - interval '26 hours' then endpoint.failing_since end,
      clock_timestamp());
  end if;
  if error is not null or endpoint.failing_since is not null then
    update rag.endpoints
    set failing_since = since, paused_until = case when since is not null then clock_timestamp()
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

comment on function public.rag_end_delivery is
  'End a delivery attempt. error: null for a delivered event. retry_seconds: the pause before the next attempt, '
  'null for none. A worker that has lost the lease changes nothing. An address that fails gets no delivery for as '
  'long as it has failed, between five seconds and an hour. After five days of failures, or after a 410, its '
  'webhook is disabled.';
