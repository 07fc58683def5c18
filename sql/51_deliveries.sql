-- What the worker does with the outbox of webhooks: it claims what is due, sends it, and says what came of it. All of
-- it under the worker's own role, in no user's name.

-- Deliveries that are due, leased, with where they go and what they are signed with: of each address as many as of any
-- other, those first that wait longest; of one where nothing has arrived of late, one to try it with. What ended a
-- month ago is forgotten.
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
  delete from rag.deliveries
  using (
    select old.org_id, old.id
    from rag.deliveries as old
    where old.finished_at < now() - interval '30 days'
    limit 1000
    for update skip locked
  ) as forgotten
  where deliveries.org_id = forgotten.org_id and deliveries.id = forgotten.id;

  return query
  with due as materialized (
    select found.org_id, found.id, found.due_at, row_number() over (
      partition by found.org_id, found.webhook_id order by found.due_at, found.id) as turn
    from rag.endpoints
    join rag.webhooks on webhooks.org_id = endpoints.org_id and webhooks.id = endpoints.webhook_id and webhooks.enabled
    cross join lateral (
      select deliveries.org_id, deliveries.webhook_id, deliveries.id, deliveries.due_at
      from rag.deliveries
      where deliveries.org_id = endpoints.org_id and deliveries.webhook_id = endpoints.webhook_id
        and deliveries.state in ('waiting', 'running') and deliveries.due_at <= clock_timestamp()
      order by deliveries.due_at, deliveries.id
      limit case when endpoints.failing_since is null then wanted else 1 end
    ) as found
    where coalesce(endpoints.rests_until, '-infinity') <= clock_timestamp()
  ), locked as materialized (
    select deliveries.org_id, deliveries.id
    from (select due.* from due order by due.turn, due.due_at, due.id limit 4 * wanted) as due
    cross join lateral (
      select deliveries.org_id, deliveries.id
      from rag.deliveries
      where deliveries.org_id = due.org_id and deliveries.id = due.id
        and deliveries.state in ('waiting', 'running') and deliveries.due_at <= clock_timestamp()
      for update skip locked
    ) as deliveries
    limit wanted
  ), claimed as (
    update rag.deliveries as claimed
    set state = 'running', attempts = claimed.attempts + 1, lease = gen_random_uuid(),
      due_at = clock_timestamp() + make_interval(secs => lease_seconds)
    from locked
    where claimed.org_id = locked.org_id and claimed.id = locked.id
    returning claimed.*
  )
  select claimed.org_id, claimed.id, claimed.lease, claimed.attempts, claimed.event_id, claimed.event,
    claimed.object, claimed.created_at, endpoints.url, endpoints.secret,
    case when endpoints.old_secret_until > now() then endpoints.old_secret end
  from claimed
  join rag.endpoints on endpoints.org_id = claimed.org_id and endpoints.webhook_id = claimed.webhook_id;
end;
$$;

-- What became of an attempt: error null is delivered. retry_seconds: after which to try again; null: never. Nothing is
-- changed by whoever has lost the lease. An address that fails is left alone for as long as it has failed, between
-- five seconds and an hour; after five days, or when it says that it is gone, its webhook is turned off.
create function public.rag_end_delivery(
  org_id uuid, delivery_id uuid, lease uuid, response_status integer default null, error text default null,
  retry_seconds integer default null
)
returns boolean
language plpgsql volatile security invoker set search_path = ''
as $$
#variable_conflict use_variable
declare
  ended rag.deliveries;
  endpoint rag.endpoints;
  failing interval;
begin
  -- The address before the delivery, as who deletes a webhook locks them.
  select endpoints.* into endpoint
  from rag.deliveries
  join rag.endpoints on endpoints.org_id = deliveries.org_id and endpoints.webhook_id = deliveries.webhook_id
  where deliveries.org_id = rag_end_delivery.org_id and deliveries.id = delivery_id
  for update of endpoints;
  update rag.deliveries
  set state = case when error is null then 'done' when retry_seconds is null then 'failed' else 'waiting' end,
    lease = null, response_status = rag_end_delivery.response_status, error = rag_end_delivery.error,
    due_at = clock_timestamp() + make_interval(secs => coalesce(retry_seconds, 0)),
    finished_at = case when error is null or retry_seconds is null then clock_timestamp() end
  where deliveries.org_id = rag_end_delivery.org_id and deliveries.id = delivery_id
    and deliveries.state = 'running' and deliveries.lease = rag_end_delivery.lease
  returning deliveries.* into ended;
  if ended.id is null then
    return false;
  elsif error is null then
    update rag.endpoints set failing_since = null, rests_until = null
    where endpoints.org_id = ended.org_id and endpoints.webhook_id = ended.webhook_id
      and endpoints.failing_since is not null;
    return true;
  end if;

  failing := clock_timestamp() - coalesce(endpoint.failing_since, clock_timestamp());
  update rag.endpoints
  set failing_since = coalesce(endpoints.failing_since, clock_timestamp()),
    rests_until = clock_timestamp() + least(greatest(failing, interval '5 seconds'), interval '1 hour')
  where endpoints.org_id = ended.org_id and endpoints.webhook_id = ended.webhook_id;
  if response_status = 410 or failing > interval '5 days' then
    update rag.webhooks set enabled = false, updated_at = clock_timestamp()
    where webhooks.org_id = ended.org_id and webhooks.id = ended.webhook_id and webhooks.enabled;
    update rag.deliveries
    set state = 'failed', lease = null, error = 'webhook_disabled', finished_at = clock_timestamp()
    where deliveries.org_id = ended.org_id and deliveries.webhook_id = ended.webhook_id
      and deliveries.state in ('waiting', 'running');
  end if;
  return true;
end;
$$;

revoke all on function public.rag_claim_deliveries(integer, integer),
  public.rag_end_delivery(uuid, uuid, uuid, integer, text, integer)
  from public, anon, authenticated, service_role;
grant execute on function public.rag_claim_deliveries(integer, integer),
  public.rag_end_delivery(uuid, uuid, uuid, integer, text, integer) to rag_worker;
